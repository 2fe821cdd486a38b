"""What changed in the operators of two runs, family by family and one by one, at like load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from teller.graph.difference import Change, Section
from teller.models.differ_steps import Both, Pair, change
from teller.models.measured import Measured, floats, texts

Floats = npt.NDArray[np.float64]
Key = tuple[str, ...]

MOST: Final = 40  # of a phase, those whose time differs most
COLUMNS: Final[tuple[tuple[Section, tuple[str, ...]], ...]] = (
    ("family", ("family", "device")),
    ("operator", ("operator", "device")),
)


@dataclass(frozen=True, slots=True)
class Grid:
    """Own time and calls a rank, a row a key and a column a step."""

    place: dict[Key, int]
    own_ns: Floats
    calls: Floats

    def own(self, key: Key) -> Floats:
        """Give the own time of a key, step by step; zeros where the run does not have it."""
        return self._row(key, self.own_ns)

    def called(self, key: Key) -> Floats:
        """Give the calls of a key, step by step."""
        return self._row(key, self.calls)

    def _row(self, key: Key, table: Floats) -> Floats:
        at = self.place.get(key)
        return np.zeros(table.shape[1]) if at is None else np.asarray(table[at], np.float64)


def grid(run: Measured, columns: Sequence[str]) -> Grid:
    """Sum up a run's operators by the named columns and by step."""
    table = run.operators
    words = [texts(table[c].cast(pa.string())) for c in columns]
    keys = list(zip(*words, strict=True))
    place = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    row = np.array([place[key] for key in keys], np.int64)
    shape = len(place), len(run.step_index)
    flat = row * shape[1] + run.places(table)
    own, calls = (
        np.bincount(flat, floats(table[name]), shape[0] * shape[1]).reshape(shape) / run.rank_count
        for name in ("own_ns", "calls")
    )
    return Grid(place, own, calls)


def operators(pair: Pair) -> Iterator[Change]:
    """Give families, and then operators: those whose time differs most."""
    for section, columns in COLUMNS:
        grids = [grid(m, columns) for m in pair.runs]
        for phase, here in pair.phases():
            looked = (here[0] & pair.usual.looked_into, here[1] & pair.now.looked_into)
            for key in _weightiest(grids, looked):
                place = "device" if key[-1] == "true" else "host"
                where = place if pair.sliced else f"{phase}, {place}"
                yield _compared(pair, grids, key, looked, section, where)


def _weightiest(grids: Sequence[Grid], here: Both) -> list[Key]:
    """Give the keys whose mean time a step differs most."""
    keys = list(dict.fromkeys(k for g in grids for k in g.place))
    means = np.array(
        [
            [g.own(k)[h].mean() if h.any() else 0.0 for k in keys]
            for g, h in zip(grids, here, strict=True)
        ]
    )
    order = np.argsort(-np.abs(means[1] - means[0]), kind="stable")[:MOST]
    return [keys[i] for i in order if means[:, i].any()]


def _compared(
    pair: Pair, grids: Sequence[Grid], key: Key, here: Both, section: Section, where: str
) -> Change:
    """Compare a key's time a step, or its time a call where there are no steps."""
    own, calls = [g.own(key) for g in grids], [g.called(key) for g in grids]
    each = [
        np.divide(o, c, out=np.full(len(o), np.nan), where=c > 0)
        for o, c in zip(own, calls, strict=True)
    ]
    found = change(section, key[0], where, "ns", pair.contrast(each if pair.sliced else own, here))
    a_step = None if pair.sliced else pair.medians(calls, here)
    found = replace(found, each=pair.medians(each, here), calls=a_step)
    there = [bool(c[h].any()) for c, h in zip(calls, here, strict=True)]
    return found if all(there) else replace(found, told="gone" if there[0] else "new")
