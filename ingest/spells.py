"""Spells in which an engine runs nothing: idle, or with requests that wait and are not admitted."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.records import SAMPLES
from teller.ingest.rhythm import KEYS, numbered, plain

IDLE: Final = "engine.idle_ns"
BLOCKED: Final = "engine.blocked_ns"
MOST: Final = 8  # of a kind: the longest

Ints = npt.NDArray[np.int64]


def with_spells(samples: pa.Table) -> pa.Table:
    """Add a sample for each of the longest spells, at its first line.

    Its value is the time until the first line of another state, or until the last line, in ns (null
    in a log without times), its text the engine. One line alone is no spell of waiting requests.
    """
    lines = _lines(samples)
    if not lines.num_rows:
        return samples
    series = numbered(lines)
    running, waiting = lines["value"].to_numpy(), lines["waiting"].to_numpy()
    state = np.where(running > 0, 0, np.where(waiting > 0, 2, 1))
    follows = np.diff(series, prepend=-1) == 0
    starts = np.flatnonzero(~(follows & (np.diff(state, prepend=-1) == 0)))
    nexts = np.r_[starts[1:], len(series)]
    inside = np.r_[series[starts[1:]] == series[starts[:-1]], False]
    until = np.where(inside, np.minimum(nexts, len(series) - 1), nexts - 1)
    time, timed = (
        pc.fill_null(lines["time_ns"], 0).to_numpy(),
        lines["time_ns"].is_valid().to_numpy(),
    )
    lasts = np.where(timed[until] & timed[starts], time[until] - time[starts], np.nan)
    count = nexts - starts
    added = []
    for name, kind in ((IDLE, 1), (BLOCKED, 2)):
        own = np.flatnonzero((state[starts] == kind) & ((count > 1) | (kind == 1)))
        order = np.lexsort((-count[own], -np.nan_to_num(lasts[own])))
        own = np.sort(own[order[:MOST]])
        added.append(_samples(lines.take(pa.array(starts[own])), name, lasts[own]))
    return pa.concat_tables([samples, *added])


def _lines(samples: pa.Table) -> pa.Table:
    """Give the lines that state both how many requests run and how many wait, in order."""
    told = samples.filter(pc.and_(samples["line"].is_valid(), samples["value"].is_valid()))
    told = plain(told)
    running = told.filter(pc.equal(told["name"], "engine.running"))
    waiting = told.filter(pc.equal(told["name"], "engine.waiting")).select([*KEYS, "value"])
    waiting = waiting.group_by(KEYS).aggregate([("value", "max")])
    waiting = waiting.rename_columns([*KEYS, "waiting"])
    joined = running.join(waiting, keys=KEYS, join_type="inner").combine_chunks()
    return joined.sort_by([(n, "ascending") for n in ("input_id", "process", "text", "line")])


def _samples(rows: pa.Table, name: str, lasts: npt.NDArray[np.float64]) -> pa.Table:
    made = {
        "name": pa.repeat(pa.scalar(name), rows.num_rows),
        "value": pa.array(lasts, pa.float64(), from_pandas=True),  # NaN is null
    }
    rows = rows.drop_columns(["waiting"])
    names = [*SAMPLES.names, *(n for n in rows.column_names if n not in SAMPLES.names)]
    return pa.table({n: made.get(n, rows[n]) for n in names})
