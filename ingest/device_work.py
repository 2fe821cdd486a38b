"""Device work of one source with the time at which the host asked for it."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.source import RUNTIME

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ABSENT: Final = -1


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Work in stream order, sorted by start; `launch_ns` is the start of its call, or its own."""

    row: Ints  # in the span table
    name: Ints  # index in the dictionary of names
    lane: Ints  # index in the dictionary of lanes
    start_ns: Ints
    end_ns: Ints
    launch_ns: Ints
    launched: Flags  # whether the call is known

    def share_inside(self, start: Ints, end: Ints) -> float:
        """Give the share of device time that was asked for inside one of the sorted windows."""
        whose = np.searchsorted(start, self.launch_ns, side="right") - 1
        inside = (whose >= 0) & (self.launch_ns < end[np.maximum(whose, 0)])
        duration = self.end_ns - self.start_ns
        total = int(duration.sum())
        return float(duration[inside].sum() / total) if total else 0.0


def device_work(spans: pa.Table) -> DeviceWork:
    """Give the device work of a span table whose columns are in one chunk each."""
    row = np.flatnonzero(spans["stream"].chunk(0).is_valid().to_numpy(zero_copy_only=False))
    start = spans["start_ns"].to_numpy()[row]
    row = row[np.argsort(start, kind="stable")]
    start = spans["start_ns"].to_numpy()[row]
    calls, call_start = _calls(spans)
    wanted = _correlation(spans)[row]
    launch, launched = start.copy(), np.zeros(len(row), np.bool_)
    if len(calls) and len(row):
        at = np.minimum(np.searchsorted(calls, wanted), len(calls) - 1)
        launched = (calls[at] == wanted) & (wanted != ABSENT)
        launch = np.where(launched, call_start[at], start)
    return DeviceWork(
        row,
        codes_of(spans["name"].chunk(0))[row],
        codes_of(spans["lane"].chunk(0))[row],
        start,
        spans["end_ns"].to_numpy()[row],
        launch,
        launched,
    )


def codes_of(words: pa.DictionaryArray) -> Ints:
    """Give the dictionary indices of a column without nulls."""
    codes: Ints = words.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return codes


def _correlation(spans: pa.Table) -> Ints:
    known: Ints = pc.fill_null(spans["correlation"], ABSENT).to_numpy()
    return known


def _calls(spans: pa.Table) -> tuple[Ints, Ints]:
    """Give correlation ids of API calls, sorted, and their starts."""
    layer = spans["layer"].chunk(0)
    runtime = pc.index(layer.dictionary, RUNTIME).as_py()
    correlation = _correlation(spans)
    row = np.flatnonzero((codes_of(layer) == runtime) & (correlation != ABSENT))
    row = row[np.argsort(correlation[row], kind="stable")]
    return correlation[row], spans["start_ns"].to_numpy()[row]
