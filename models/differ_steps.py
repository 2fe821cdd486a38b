"""What changed in the steps of two runs, at like load: their time, gaps, launches, collectives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.difference import Change, Section
from teller.models.contrast import LEAST, Contrast, Figures, contrast, medians, strata
from teller.models.measured import PHASES, Measured, floats, texts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Both = tuple[Flags, Flags]

LAUNCHES: Final = ("launch", "graph_launch")


@dataclass(frozen=True, slots=True)
class Pair:
    """The usual run and the other, and the stratum of the load of each of their steps."""

    usual: Measured
    now: Measured
    strata: tuple[Ints, Ints]
    threshold: float
    sliced: bool  # the steps are slices of the capture

    @classmethod
    def of(cls, usual: Measured, now: Measured, threshold: float, *, sliced: bool) -> "Pair":
        """Set two runs side by side."""
        keys = strata(usual.loads.keys(), now.loads.keys())
        return cls(usual, now, keys, threshold, sliced)

    @property
    def runs(self) -> tuple[Measured, Measured]:
        """Give both, the usual one first."""
        return self.usual, self.now

    def phases(self) -> Iterator[tuple[str, Both]]:
        """Give each phase that both runs have, with its steps in each."""
        for code, name in enumerate(PHASES):
            here = (self.usual.loads.phase == code, self.now.loads.phase == code)
            if here[0].any() and here[1].any():
                yield name, here

    def contrast(self, values: Sequence[Floats], here: Both) -> Contrast:
        """Compare a value a step over the steps that are named; NaN is no value."""
        return contrast(*self._figures(values, here), self.threshold)

    def medians(self, values: Sequence[Floats], here: Both) -> tuple[float, float] | None:
        """Give the medians of a value a step at like load."""
        return medians(*self._figures(values, here))

    def _figures(self, values: Sequence[Floats], here: Both) -> tuple[Figures, Figures]:
        kept = [h & ~np.isnan(v) for v, h in zip(values, here, strict=True)]
        usual, now = (
            Figures(v[k], s[k]) for v, k, s in zip(values, kept, self.strata, strict=True)
        )
        return usual, now


def change(
    section: Section, name: str, where: str, unit: str, found: Contrast,
    worse: Literal["more", "less", ""] = "more",
) -> Change:  # fmt: skip
    """Give a change out of a contrast."""
    return Change(
        section, name, where, unit, found.usual, found.now, found.low, found.high,
        found.usual_count, found.now_count, found.told, worse,
    )  # fmt: skip


def step_times(pair: Pair) -> Iterator[Change]:
    """Give the time of steps, by phase over all like loads, and then load by load."""
    if pair.sliced:
        return
    values = [floats(m.steps["step_ns"]) for m in pair.runs]
    for phase, here in pair.phases():
        whole = change("step", f"{phase} step", "at like load", "ns", pair.contrast(values, here))
        yield replace(whole, decides=True)
        usual, now = (s[h] for s, h in zip(pair.strata, here, strict=True))
        common = np.intersect1d(usual, now).tolist()
        for stratum in common if len(common) > 1 else ():
            alike = tuple(h & (s == stratum) for h, s in zip(here, pair.strata, strict=True))
            of_load = (alike[0], alike[1])
            if min(a.sum() for a in of_load) >= LEAST:
                found = pair.contrast(values, of_load)
                yield change("step", f"{phase} step", load_of(pair.runs, of_load), "ns", found)


def load_of(runs: Sequence[Measured], inside: Sequence[Flags]) -> str:
    """Give the load of steps in words: "batch 4–5, context 512–1,020"."""
    said = []
    for label in ("batch", "tokens", "context"):
        parts = [getattr(m.loads, label)[i] for m, i in zip(runs, inside, strict=True)]
        value = np.concatenate(parts)
        value = value[~np.isnan(value)]
        if len(value):
            low, high = f"{value.min():,.0f}", f"{value.max():,.0f}"
            said.append(f"{label} {low}" if low == high else f"{label} {low}–{high}")
    return ", ".join(said) or "load not known"


def paces(pair: Pair) -> Iterator[Change]:
    """Give what lies between the work of a step: gaps on the device, launches, time between."""
    if pair.sliced:
        return
    between = [m.between_ns for m in pair.runs]
    by_step = [_paces_of(m) for m in pair.runs]
    for phase, here in pair.phases():
        yield change("pace", "time between steps", phase, "ns", pair.contrast(between, here))
        looked = (here[0] & pair.usual.looked_into, here[1] & pair.now.looked_into)
        for name, unit in (
            ("gaps on the device", "ns"), ("device operations", "count"), ("launches", "count")
        ):  # fmt: skip
            values = [of[name] for of in by_step]
            if any(v[h].any() for v, h in zip(values, looked, strict=True)):
                found = pair.contrast(values, looked)
                yield change("pace", name, phase, unit, found, "more" if unit == "ns" else "")


def _paces_of(run: Measured) -> dict[str, Floats]:
    """Give gaps, device rows and launches of each step, for one rank in the mean of all."""
    table = run.operators
    at = run.places(table)
    device = np.array(table["device"].to_pylist(), bool)
    launch = pc.is_in(table["family"].cast("string"), value_set=pa.array(LAUNCHES))
    calls = floats(table["calls"])
    return {
        "gaps on the device": run.summed(at[device], floats(table["gap_ns"])[device]),
        "device operations": run.summed(at[device], calls[device]),
        "launches": run.summed(at, np.where(launch.to_numpy(), calls, 0)),
    }


def collectives(pair: Pair) -> Iterator[Change]:
    """Give the pure time of a call at equal size, and the waiting in a step at like load."""
    kinds = [_kinds(m) for m in pair.runs]
    looked = (pair.usual.looked_into, pair.now.looked_into)
    for kind in sorted(set(kinds[0]) & set(kinds[1])):
        tables = [
            m.collectives.filter(pa.array([k == kind for k in of], pa.bool_()))
            for m, of in zip(pair.runs, kinds, strict=True)
        ]
        pure = contrast(_pure(tables[0]), _pure(tables[1]), pair.threshold)
        yield change("collective", kind, "pure time of a call, at equal size", "ns", pure)
        if not pair.sliced:
            waits = [
                m.summed(m.places(t), floats(t["wait_ns"]))
                for m, t in zip(pair.runs, tables, strict=True)
            ]
            found = pair.contrast(waits, looked)
            yield change("collective", kind, "waiting in a step, at like load", "ns", found)


def _pure(table: pa.Table) -> Figures:
    """Give the pure time of a call in each step and size; the size is the stratum."""
    table = table.sort_by("step_index")
    calls = floats(table["calls"])
    known = calls > 0
    size = np.nan_to_num(floats(table["size_bytes"]), nan=-1).astype(np.int64)
    return Figures(floats(table["pure_ns"])[known] / calls[known], size[known])


def _kinds(run: Measured) -> list[str]:
    """Name the kind and group of each row of collectives: "all_reduce, tp of 2 ranks"."""
    table = run.collectives
    names = zip(
        texts(table["op"]), texts(table["parallelism"]), table["world_size"].to_pylist(),
        strict=True,
    )  # fmt: skip
    return [f"{op}, {kind or 'group'} of {size or '?'} ranks" for op, kind, size in names]
