"""Series of metrics as samples: a name of the vocabulary, a text, and whom it is about."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.secrets import redact
from teller.ingest.readers.prometheus_names import (
    DEVICE,
    ENGINE_LABELS,
    ENGINES,
    MEANINGS,
    SUMMED,
    Meaning,
)
from teller.ingest.readers.side_tables import rows, samples
from teller.ingest.records import SAMPLES

_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_COUNT: Final = re.compile(r"\d{1,9}")
_HOST_LABELS: Final = ("Hostname", "hostname", "nodename", "node", "kubernetes_node")
_BLANK: Final = 9.2e18  # DCGM's words for "no value" are numbers of this size
_NONE_BELOW: Final = {"engine.prefix_hit_ratio": 0.0, "gpu.xid": 1.0}  # "off" and "no error"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Told:
    """What a series is: everything of its samples but value, time and line."""

    name: str
    factor: float
    text: str | None
    process: str
    host: str | None
    device_index: int | None


@dataclass(slots=True)
class Series:
    """Knows each series by its name and labels; `host` is what the file says of the whole."""

    host: str = ""
    _known: dict[str, int] = field(default_factory=dict)
    _told: list[_Told] = field(default_factory=list)
    _said: set[tuple[str, str]] = field(default_factory=set)

    def samples(self, found: pa.Table) -> pa.Table:
        """Give samples of rows with name, labels, value, line and time_ns."""
        keys = pc.binary_join_element_wise(found["name"], found["labels"], "{").combine_chunks()
        keys = keys.dictionary_encode()
        lines = np.asarray(found["line"])
        _, first = np.unique(np.asarray(keys.indices), return_index=True)
        extra: list[pa.Table] = []
        ids = []
        for key, at in zip(keys.dictionary.to_pylist(), first, strict=True):
            if key not in self._known:
                extra += self._extra(key, int(lines[at]), found["time_ns"][int(at)].as_py())
                self._known[key] = len(self._told)
                self._told.append(_told(key))
            ids.append(self._known[key])
        which = pa.array(ids, pa.int64()).take(keys.indices)
        told = [self._told[i] for i in ids]
        text = pc.utf8_trim(found["value"].combine_chunks(), "+")
        factor = pa.array([t.factor for t in told], pa.float64()).take(keys.indices)
        value = pc.multiply(pc.cast(text, pa.float64()), factor)
        columns: dict[str, object] = {
            column: pa.array([getattr(t, column) for t in told]).take(keys.indices)
            for column in ("name", "text", "process", "host", "device_index")
        }
        made = rows(SAMPLES, len(which), columns | {
            "value": value, "line": found["line"], "time_ns": found["time_ns"],
        })  # fmt: skip
        return pa.concat_tables([_summed(_sane(made), which), *extra])

    def _extra(self, key: str, line: int, time_ns: int | None) -> list[pa.Table]:
        """Give what a series' labels say once: engine, model, host, size of the KV cache."""
        metric, labels = _parts(key)
        if metric == "node_uname_info":
            self.host = labels.get("nodename", "")
        said: list[tuple[str, float | None, str]] = []
        for engine, prefix in ENGINES.items():
            if metric.startswith(prefix) and not metric.startswith("nv_gpu_"):
                said.append(("engine.name", None, engine))
                model = labels.get("model_name") or labels.get("model")
                said += [("engine.model", None, model)] if model else []
        size = labels.get("block_size", ""), labels.get("num_gpu_blocks", "")
        if metric == "vllm:cache_config_info" and all(_COUNT.fullmatch(one) for one in size):
            said.append(("engine.kv_tokens", float(int(size[0]) * int(size[1])), _engine(labels)))
        fresh = [one for one in said if (one[0], one[2]) not in self._said]
        self._said |= {(name, text) for name, _, text in fresh}
        return [
            samples(name, 1, value=value, text=text, line=line, time_ns=time_ns)
            for name, value, text in fresh
        ]


def _parts(key: str) -> tuple[str, Labels]:
    """Give a metric's name, as its engine wrote it, and its labels."""
    metric, _, rest = key.partition("{")
    metric = re.sub(r"^ray_vllm[:_]", "vllm:", metric)
    return metric, dict(_LABEL.findall(rest))


def _told(key: str) -> _Told:
    metric, labels = _parts(key)
    meaning = _meaning(metric, labels)
    host = next((labels[name] for name in _HOST_LABELS if labels.get(name)), None)
    process = _process(labels)
    if meaning is None:
        text = redact(key.partition("{")[2])
        return _Told(f"prom:{metric}", 1.0, text, process, host, _device(labels))
    index = _device(labels) if meaning.about == DEVICE else None
    return _Told(meaning.name, meaning.factor, _text(meaning, labels), process, host, index)


def _meaning(metric: str, labels: Labels) -> Meaning | None:
    given = MEANINGS.get(metric.removesuffix("_total"), ())
    fits = (m for m in given if m.only is None or labels.get(m.only[0]) == m.only[1])
    return next(fits, None)


def _text(meaning: Meaning, labels: Labels) -> str:
    if meaning.text == ENGINE_LABELS:
        return _engine(labels)
    return meaning.fixed or " ".join(labels[name] for name in meaning.text if labels.get(name))


def _engine(labels: Labels) -> str:
    number = next((labels[name] for name in ENGINE_LABELS if labels.get(name)), "")
    return f"engine {number}" if number else ""


def _process(labels: Labels) -> str:
    """Give the place of a process in its engine, as logs print it: "DP0 TP1"; "" without one."""
    told = {word: labels.get(f"{word.lower()}_rank", "") for word in ("DP", "PP", "TP")}
    if told["PP"] == "0":
        told["PP"] = ""  # logs leave it out where there is one stage
    return " ".join(f"{word}{number}" for word, number in told.items() if number)


def _device(labels: Labels) -> int | None:
    number = labels.get("gpu", "")
    return int(number) if re.fullmatch(r"\d{1,4}", number) else None


def _sane(made: pa.Table) -> pa.Table:
    """Put null where a value says that there is none."""
    value = made["value"].combine_chunks()
    none = pc.or_(pc.is_nan(value), pc.greater_equal(value, _BLANK))
    for name, least in _NONE_BELOW.items():
        none = pc.or_(none, pc.and_(pc.equal(made["name"], name), pc.less(value, least)))
    at = SAMPLES.get_field_index("value")
    return made.set_column(at, SAMPLES.field(at), pc.if_else(none, None, value))


def _summed(made: pa.Table, series: pa.Array) -> pa.Table:
    """Add up series that are one figure in one scrape; leave out rows without a value."""
    keep = np.asarray(pc.is_valid(made["value"]))
    part = np.asarray(pc.is_in(made["name"], pa.array(SUMMED))) & keep
    if not part.any():
        return made.filter(pa.array(keep))
    which, some = np.asarray(series)[part], made.filter(pa.array(part))
    # a series stands once in a scrape: its how-manieth row is the number of the scrape
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.diff(which[order], prepend=-1))
    scrape = np.empty(len(which), np.int64)
    sizes = np.diff(np.append(starts, len(which)))
    scrape[order] = np.arange(len(which)) - np.repeat(starts, sizes)
    keys = ["name", "text", "process", "host"]
    sums = some.append_column("scrape", pa.array(scrape)).group_by([*keys, "scrape"]).aggregate(
        [("value", "sum"), ("line", "min"), ("time_ns", "min")]
    )  # fmt: skip
    one = rows(SAMPLES, sums.num_rows, {name: sums[name] for name in keys} | {
        "value": sums["value_sum"], "line": sums["line_min"], "time_ns": sums["time_ns_min"],
    })  # fmt: skip
    return pa.concat_tables([made.filter(pa.array(keep & ~part)), one])
