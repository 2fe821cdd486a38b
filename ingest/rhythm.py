"""The rhythm of an engine's lines: pauses between two of them while requests ran all the time.

An engine prints a line every few steps or seconds while it works. A line that comes much later than
the engine's lines usually do, with requests running before and after it, tells of a pause; the
throughput that it states must bear that out, else the log was cut there.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.records import SAMPLES

NAME: Final = "engine.gap_ns"
MANY_TIMES: Final = 2.5  # as long as the engine's lines are usually apart
LEAST_NS: Final = 3_000_000_000  # lines have whole seconds
FEW: Final = 4  # intervals that are needed to know what is usual
USUAL: Final = 25  # percentile: pauses themselves must not be the usual
MOST: Final = 64  # the longest; what pauses more often has another rhythm
MOST_TOKENS: Final = 2.5  # times as many as usual in one interval: more lines stood there once

KEYS: Final = ["input_id", "line", "text"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def with_gaps(samples: pa.Table) -> pa.Table:
    """Add a sample for each pause of an engine, at the line that ended it.

    Its value is the time since the line before in ns, its text the tokens a second that it states.
    """
    lines = _lines(samples)
    if lines.num_rows <= FEW:
        return samples
    order = [("input_id", "ascending"), ("process", "ascending"), ("text", "ascending"),
             ("line", "ascending")]  # fmt: skip
    lines = lines.sort_by(order)
    series = numbered(lines)
    time, running = lines["time_ns"].to_numpy(), lines["value"].to_numpy()
    rate = pc.fill_null(lines["rate"], np.nan).to_numpy()
    late = np.zeros(len(time), bool)
    gap = np.diff(time, prepend=time[:1])
    follows = np.diff(series, prepend=-1) == 0
    works = follows & (running > 0) & np.r_[False, running[:-1] > 0] & (gap >= 0) & ~np.isnan(rate)
    for one in np.unique(series[works & (gap >= LEAST_NS)]):
        own = works & (series == one)
        if own.sum() >= FEW:
            usual = max(float(np.percentile(gap[own], USUAL)), 1.0)
            tokens = np.median((gap * rate)[own])
            late |= (
                own
                & (gap >= max(MANY_TIMES * usual, LEAST_NS))
                & (gap * rate <= MOST_TOKENS * tokens)
            )
    if late.sum() > MOST:
        late &= gap >= np.sort(gap[late])[-MOST]
    return pa.concat_tables([samples, _found(lines, late, gap)]) if late.any() else samples


def _lines(samples: pa.Table) -> pa.Table:
    """Give the lines that state how many requests run; those of prefill have no rate of tokens."""
    timed = samples.filter(
        pc.and_(samples["time_ns"].is_valid(), pc.and_(samples["line"].is_valid(),
                                                       samples["value"].is_valid()))
    )  # fmt: skip
    timed = plain(timed)
    running = timed.filter(pc.equal(timed["name"], "engine.running"))
    rate = timed.filter(pc.equal(timed["name"], "engine.generation_tokens_per_s"))
    rate = rate.select([*KEYS, "value"]).group_by(KEYS).aggregate([("value", "max")])
    rate = rate.rename_columns([*KEYS, "rate"])
    return running.join(rate, keys=KEYS, join_type="left outer").combine_chunks()


def plain(samples: pa.Table) -> pa.Table:
    """Give samples whose process and text are words, "" where there is none."""
    for name in ("process", "text"):
        at = samples.schema.get_field_index(name)
        words = pc.fill_null(samples[name].cast(pa.string()), "")
        samples = samples.set_column(at, name, words)
    return samples


def numbered(lines: pa.Table) -> Ints:
    """Give each line the number of its file, process and engine together."""
    new = np.zeros(lines.num_rows, bool)
    for name in ("input_id", "process", "text"):
        codes = lines[name].combine_chunks().dictionary_encode()
        codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
        number = np.asarray(codes.indices.to_numpy(zero_copy_only=False), np.int64)
        new |= np.diff(number, prepend=-1) != 0
    return np.cumsum(new).astype(np.int64)


def _found(lines: pa.Table, late: npt.NDArray[np.bool_], gap: Ints) -> pa.Table:
    kept = lines.filter(pa.array(late)).drop_columns(["rate"])
    rates = lines["rate"].to_numpy()[late]
    made = {
        "name": pa.repeat(pa.scalar(NAME), kept.num_rows),
        "value": pa.array(gap[late].astype(np.float64)),
        "text": pa.array([f"{rate:g}" for rate in rates.tolist()], pa.string()),
    }
    names = [*SAMPLES.names, *(n for n in kept.column_names if n not in SAMPLES.names)]
    return pa.table({n: made.get(n, kept[n]) for n in names})
