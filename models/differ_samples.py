"""What changed in what engines and clients report: iterations, throughput, requests, settings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.difference import Change, Section, Setting
from teller.graph.store import Store
from teller.models.contrast import Contrast, Figures, buckets, contrast, strata
from teller.models.differ_steps import Pair, change
from teller.models.measured import floats

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Worse = Literal["more", "less", ""]

RUNNING: Final = ("engine.running", "engine.batch_size")
STEP_LOADS: Final = ("engine.batch_size", "engine.running", "engine.step_tokens")
# Figures that decide whether a run is slower, at like load: the load, and which way is worse.
DECIDING: Final[tuple[tuple[str, Section, str, tuple[str, ...], Worse], ...]] = (
    ("step.host_ns", "step", "ns", STEP_LOADS, "more"),
    ("step.device_ns", "step", "ns", STEP_LOADS, "more"),
    ("engine.generation_tokens_per_s", "throughput", "per_s", RUNNING, "less"),
)
# What else engines report: it says whether the loads are alike, and how the engine bears them.
REPORTED: Final[tuple[tuple[str, str, Worse], ...]] = (
    ("engine.running", "count", ""),
    ("engine.waiting", "count", ""),
    ("engine.batch_size", "count", ""),
    ("engine.prompt_tokens_per_s", "per_s", ""),
    ("engine.kv_usage_ratio", "ratio", ""),
    ("engine.prefix_hit_ratio", "ratio", "less"),
    ("engine.accept_ratio", "ratio", "less"),
    ("engine.preemptions", "count", "more"),
    ("engine.cuda_graph", "ratio", "less"),
)
REQUESTS: Final = (
    ("ttft_ns", "time to first token"),
    ("itl_p50_ns", "time between tokens"),
    ("queue_ns", "time in the queue"),
)
VALUED: Final = (
    "engine.kv_tokens", "engine.max_model_tokens", "engine.max_concurrency",
)  # fmt: skip
NAMED: Final = (
    "engine.name", "engine.version", "engine.model", "nccl.version", "nccl.network", "nccl.nic",
)  # fmt: skip
ASSIGNED: Final = ("engine.option", "nccl.env")  # text NAME=VALUE
_SETTINGS: Final = """
MATCH (q:Sample) WHERE q.run_id = $run AND q.name IN $names
RETURN DISTINCT q.name AS name, q.text AS text, q.value AS value
"""


def reported(pair: Pair) -> Iterator[Change]:
    """Give iterations and throughput as engines report them at like load, and then their loads."""
    tables = [m.samples for m in pair.runs]
    for name, section, unit, loads, worse in DECIDING:
        found = [_with_loads(t, name, loads) for t in tables]
        if all(len(value) for value, _ in found):
            codes = strata(found[0][1], found[1][1])
            usual, now = (Figures(f[0], c) for f, c in zip(found, codes, strict=True))
            said = change(
                section, name, "at like load", unit, contrast(usual, now, pair.threshold), worse
            )
            yield replace(said, decides=True)
    for name, unit, worse in REPORTED:
        values = [floats(t.filter(pc.equal(t["name"], name))["value"]) for t in tables]
        if all(len(v) for v in values):
            yield change("load", name, "", unit, _whole(values, pair.threshold), worse)


def requests(pair: Pair) -> Iterator[Change]:
    """Give what requests took, for prompts and answers of like length."""
    tables = [m.requests for m in pair.runs]
    if not all(t.num_rows for t in tables):
        return
    keys = [
        np.column_stack([buckets(floats(t[c]), 1) for c in ("prompt_tokens", "output_tokens")])
        for t in tables
    ]
    codes = strata(keys[0], keys[1])
    for column, name in REQUESTS:
        values = [floats(t[column]) for t in tables]
        usual, now = (
            Figures(v[~np.isnan(v)], c[~np.isnan(v)]) for v, c in zip(values, codes, strict=True)
        )
        if len(usual.value) and len(now.value):
            found = contrast(usual, now, pair.threshold)
            yield change("request", name, "for requests of like length", "ns", found)


def settings(store: Store, usual: int, now: int) -> tuple[Setting, ...]:
    """Give the versions, options and variables that are not the same in both runs."""
    before, after = _settings(store, usual), _settings(store, now)
    return tuple(
        Setting(name, before.get(name, ()), after.get(name, ()))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _settings(store: Store, run: int) -> dict[str, tuple[str, ...]]:
    names = [*VALUED, *NAMED, *ASSIGNED]
    rows = store.query(_SETTINGS.replace("$run", str(run)), {"names": names}).to_pylist()
    found: dict[str, set[str]] = {}
    for row in rows:
        name, text = row["name"], row["text"] or ""
        if name in ASSIGNED:
            option, _, value = text.partition("=")
            found.setdefault(f"{name} {option}", set()).add(value)
        elif name in VALUED:
            found.setdefault(name, set()).add(f"{row['value']:,.0f}")
        else:
            found.setdefault(name, set()).add(text)
    return {name: tuple(sorted(values)) for name, values in found.items()}


def _with_loads(table: pa.Table, name: str, loads: Sequence[str]) -> tuple[Floats, Ints]:
    """Give the values of a figure, and the loads that the same line reports, in buckets."""
    mine = table.filter(pc.equal(table["name"], name))
    keys = []
    for load in loads:
        of_load = table.filter(pc.equal(table["name"], load))
        kinds = pc.unique(of_load["text"].fill_null("")).to_pylist()
        for kind in sorted(kinds) if load == "engine.step_tokens" else [None]:
            rows = of_load
            if kind is not None:
                rows = of_load.filter(pc.equal(of_load["text"].fill_null(""), kind))
            keys.append(buckets(_of_line(mine, rows), 2))
    value = floats(mine["value"])
    return value, np.column_stack([np.zeros(len(value), np.int64), *keys])


def _of_line(mine: pa.Table, rows: pa.Table) -> Floats:
    """Give for each row of one table the value that the other has at its line, else NaN."""
    columns = [
        np.column_stack([t[c].fill_null(-1).to_numpy() for c in ("input_id", "line")])
        for t in (mine, rows)
    ]
    ask, have = strata(columns[0], columns[1])
    found = np.full(max([-1, *ask.tolist(), *have.tolist()]) + 1, np.nan)
    found[have] = floats(rows["value"])
    return np.asarray(found[ask], np.float64)


def _whole(values: Sequence[Floats], threshold: float) -> Contrast:
    usual, now = (Figures(v, np.zeros(len(v), np.int64)) for v in values)
    return contrast(usual, now, threshold)
