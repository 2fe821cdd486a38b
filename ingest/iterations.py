"""Steps of all ranks as one table, and iterations: the same step over all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.replicas import replicas
from teller.ingest.scores import Load, load_of, score_steps
from teller.ingest.shape import Shaped
from teller.ingest.timeline import Timeline

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stepped:
    """Steps of all sources (columns of the Step label, and `source`), their loads, iterations."""

    steps: pa.Table
    loads: tuple[Load, ...]
    iterations: pa.Table  # columns of the Iteration label without id


def steps_of(
    sources: Sequence[Shaped], ranks: Sequence[int], line: Timeline, shifts: Sequence[int]
) -> Stepped:
    """Put all steps on the run's axis and score them."""
    tables = [_on_axis(i, one, ranks[i], line, shifts[i]) for i, one in enumerate(sources)]
    replica = replicas([one.facts.places for one in sources], line.timed.members)
    loads = [load_of(t, of) for t, of in zip(tables, replica.tolist(), strict=True)]
    steps = pa.concat_tables([_ON_AXIS.empty_table(), *tables])
    bucket = np.concatenate([load.bucket for load in loads]) if loads else np.zeros(0, np.int64)
    scored = score_steps(
        steps["source"].to_numpy(), replica[steps["source"].to_numpy()],
        steps["step_index"].to_numpy(), steps["dur_ns"].to_numpy(), _periods(steps),
        steps["wait_ns"].to_numpy(), steps["host_ns"].to_numpy(), bucket,
    )  # fmt: skip
    steps = steps.append_column("own_ns", pa.array(scored.own_ns))
    steps = steps.append_column("excess_ns", pa.array(scored.excess_ns))
    return Stepped(steps, tuple(loads), _iterations(steps, line.timed.members, shifts))


def _on_axis(number: int, one: Shaped, rank: int, line: Timeline, shift: int) -> pa.Table:
    """Give the steps of one source with the run's times and numbers."""
    table, axis = one.steps, line.axes[number]
    index = table["step_index"].to_numpy()
    start = axis.run_time(table["start_ns"].to_numpy())
    end = axis.run_time(table["end_ns"].to_numpy())
    size = len(index)
    columns = {
        "source": pa.array(np.full(size, number)),
        "rank": pa.array(np.full(size, rank)),
        "step_index": pa.array(index + shift, pa.int64()),
        "phase": table["phase"].cast(pa.string()),
        "start_ns": pa.array(start),
        "end_ns": pa.array(end),
        "dur_ns": pa.array(end - start),
        "wait_ns": pa.array(_waits(line.timed.members, number, index)),
        "host_ns": table["host_ns"],
        "found_by": pa.repeat(pa.scalar(one.found_by), size),
        "confidence": pa.array(np.full(size, one.confidence)),
    }
    loads = ("token_count", "batch_size", "context_tokens")
    return pa.table(columns | {name: table[name].cast(pa.int64()) for name in loads})


_ON_AXIS = pa.schema(
    [
        ("source", pa.int64()),
        ("rank", pa.int64()),
        ("step_index", pa.int64()),
        ("phase", pa.string()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("dur_ns", pa.int64()),
        ("wait_ns", pa.int64()),
        ("host_ns", pa.int64()),
        ("found_by", pa.string()),
        ("confidence", pa.float64()),
        ("token_count", pa.int64()),
        ("batch_size", pa.int64()),
        ("context_tokens", pa.int64()),
    ]
)


def _periods(steps: pa.Table) -> Ints:
    """Give each step the time since the end of the one before on its source."""
    source, start = steps["source"].to_numpy(), steps["start_ns"].to_numpy()
    end, dur = steps["end_ns"].to_numpy(), steps["dur_ns"].to_numpy()
    order = np.lexsort((start, source))
    period = dur.copy()
    later, earlier = order[1:], order[:-1]
    follows = source[later] == source[earlier]
    since = end[later] - end[earlier]
    period[later[follows]] = since[follows]
    passed: Ints = np.maximum(period, 0)
    return passed


def _waits(members: pa.Table, source: int, index: Ints) -> Ints:
    """Sum what the source waited in the collectives of each of its steps."""
    own = members.filter(
        pc.and_(pc.equal(members["source"], source), pc.is_valid(members["step_index"]))
    )
    total = np.zeros(len(index), np.int64)
    if not own.num_rows or not len(index):
        return total
    order = np.argsort(index, kind="stable")
    at = order[
        np.minimum(np.searchsorted(index[order], own["step_index"].to_numpy()), len(index) - 1)
    ]
    same = index[at] == own["step_index"].to_numpy()
    # What other work of the device covered did not hold the step up.
    exposed = np.maximum(own["wait_ns"].to_numpy() - own["covered_ns"].to_numpy(), 0)
    np.add.at(total, at[same], exposed[same])
    return total


def _iterations(steps: pa.Table, members: pa.Table, shifts: Sequence[int]) -> pa.Table:
    names = ("step_index", "start_ns", "end_ns", "dur_ns", "skew_ns", "last_rank")
    if not steps.num_rows:
        return pa.table({n: pa.array([], pa.int64()) for n in names})
    sums = (
        steps.group_by("step_index")
        .aggregate(
            [
                ("start_ns", "min"),
                ("end_ns", "max"),
                ("end_ns", "min"),
            ]
        )
        .sort_by("start_ns_min")
    )
    index = sums["step_index"].to_numpy()
    start, end = sums["start_ns_min"].to_numpy(), sums["end_ns_max"].to_numpy()
    before = np.r_[start[0], np.maximum.accumulate(end)[:-1]]
    skew, last = _skews(steps, members, shifts, index)
    ending = end - sums["end_ns_min"].to_numpy()
    return pa.table(
        {
            "step_index": pa.array(index),
            "start_ns": pa.array(start),
            "end_ns": pa.array(end),
            "dur_ns": pa.array(np.maximum(end - np.maximum(before, start), 0)),
            "skew_ns": pa.array(np.where(last >= 0, skew, ending)),
            "last_rank": pa.array(last, mask=last < 0),
        }
    )


def _skews(
    steps: pa.Table, members: pa.Table, shifts: Sequence[int], index: Ints
) -> tuple[Ints, Ints]:
    """Give how late the latest ranks were in each iteration, summed, and the one latest in sum."""
    skew, last = np.zeros(len(index), np.int64), np.full(len(index), -1)
    lateness = members.filter(
        pc.and_(pc.is_valid(members["step_index"]), pc.greater(members["late_ns"], 0))
    )
    if not lateness.num_rows:
        return skew, last
    source = lateness["source"].to_numpy()
    step = lateness["step_index"].to_numpy() + np.asarray(shifts, np.int64)[source]
    order = np.argsort(index, kind="stable")
    at = order[np.minimum(np.searchsorted(index[order], step), len(index) - 1)]
    rank, late = lateness["rank"].to_numpy(), lateness["late_ns"].to_numpy()
    known = index[at] == step
    key, inverse = np.unique(np.stack([at[known], rank[known]]), axis=1, return_inverse=True)
    total = np.bincount(inverse, weights=late[known]).astype(np.int64)
    rising = np.lexsort((total, key[0]))
    final = rising[np.r_[key[0][rising][1:] != key[0][rising][:-1], True]]
    skew[key[0][final]], last[key[0][final]] = total[final], key[1][final]
    return skew, last
