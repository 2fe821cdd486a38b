"""What is told of requests, column by column: stated by the most exact source, else worked out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Columns = Mapping[str, pa.Array]
Options = list[tuple[int, pa.Array]]  # source, and what it says

TIMES: Final = ("start_ns", "first_token_ns", "end_ns")
FIGURES: Final = ("prompt_tokens", "output_tokens", "ttft_ns", "itl_p50_ns", "queue_ns",
                  "preemptions")  # fmt: skip
FINE_NS: Final = 1_000_000
NONE: Final = -1


def figures(
    names: pa.Array,
    told: Sequence[Columns],
    words: Sequence[str],
    *,
    preempted: pa.Array,
    worked_on: pa.Array,
) -> pa.Table:
    """Give one row a request; `told` holds what each source says, the most exact first.

    `told_by` says which source won for what. `coarse_ns` is how fine the time of the end is.
    """
    made: dict[str, pa.Array] = {}
    won: dict[str, Ints] = {}

    def choose(column: str, options: Options) -> None:
        made[column], won[column] = _first(options)

    derived = len(words)  # the source of what is worked out from several
    for column in (*TIMES, "prompt_tokens", "output_tokens"):
        choose(column, _stated(told, column))
    choose("ttft_ns", [*_with(told, "ttft_ns", _ttft), (derived, _ttft(made))])
    first = pc.add(made["start_ns"], made["ttft_ns"])
    choose("first_token_ns", [*_stated(told, "first_token_ns"), (derived, first)])
    choose("itl_p50_ns", [*_with(told, "itl_p50_ns", _itl), (derived, _itl(made))])
    late = pc.greater(worked_on, made["first_token_ns"])  # then ranges name only some steps
    seen = pc.if_else(pc.fill_null(late, False), pa.scalar(None, pa.int64()), worked_on)
    queue = _queue(made["start_ns"], won["start_ns"], told, seen)
    choose("queue_ns", [*_stated(told, "queue_ns"), (derived, queue)])
    choose("preemptions", [*_stated(told, "preemptions"), (derived, preempted)])
    choose("status", _status(told))
    shown = {c: won[c] for c in ("status", *TIMES, *FIGURES)}
    coarse = _of(told, "coarse_ns", won["end_ns"])
    said = _told_by(shown, (*words, "worked out"))
    return pa.table({"name": names} | made | {"told_by": said, "coarse_ns": coarse})


def _stated(told: Sequence[Columns], column: str) -> Options:
    return [(source, columns[column]) for source, columns in enumerate(told)]


def _with(told: Sequence[Columns], column: str, work: Callable[[Columns], pa.Array]) -> Options:
    """Give what each source states, and after it what its own figures amount to."""
    return [o for source, c in enumerate(told) for o in ((source, c[column]), (source, work(c)))]


def _ttft(columns: Columns) -> pa.Array:
    return _positive(pc.subtract(columns["first_token_ns"], columns["start_ns"]))


def _itl(columns: Columns) -> pa.Array:
    """Give the mean time between tokens: it stands in for the median where only ends are known."""
    gaps = _positive(pc.subtract(columns["output_tokens"], 1))
    spent = _positive(pc.subtract(columns["end_ns"], columns["first_token_ns"]))
    return pc.divide(spent, pc.if_else(pc.greater(gaps, 0), gaps, None))


def _queue(start: pa.Array, by: Ints, told: Sequence[Columns], worked_on: pa.Array) -> pa.Array:
    """Give the time from a request's start to the first step that ranges show working on it."""
    coarse = pc.fill_null(_of(told, "coarse_ns", by), 0)
    own = np.not_equal(by, len(told) - 1)  # a range does not show when the request came
    sure = pc.and_(pc.less_equal(coarse, FINE_NS), pa.array(own))
    waited = _positive(pc.subtract(worked_on, start))
    return pc.if_else(sure, waited, pa.scalar(None, pa.int64()))


def _status(told: Sequence[Columns]) -> Options:
    """Give ends before what still runs: a source may have stopped watching before the end."""
    ended = [o for s, c in enumerate(told) for o in ((s, c["failed"]), (s, c["ok"]))]
    return ended + _stated(told, "running")


def _positive(value: pa.Array) -> pa.Array:
    return pc.if_else(pc.greater_equal(value, 0), value, pa.scalar(None, pa.int64()))


def _first(options: Options) -> tuple[pa.Array, Ints]:
    """Give the first value that there is, and whose it is."""
    size = len(options[0][1])
    won = np.full(size, NONE)
    for source, values in reversed(options):
        won[values.is_valid().to_numpy(zero_copy_only=False)] = source
    return pc.coalesce(*(values for _, values in options)), won


def _of(told: Sequence[Columns], column: str, by: Ints) -> pa.Array:
    """Give a column of the source that won another one."""
    found = pa.nulls(len(by), pa.int64())
    for source, columns in enumerate(told):
        found = pc.if_else(pa.array(by == source), columns[column], found)
    return found


def _told_by(won: Mapping[str, Ints], words: Sequence[str]) -> pa.Array:
    """Say which source each figure is from: "client: start_ns, end_ns; log: status"."""
    columns, base = list(won), len(words) + 1
    keys = sum((won[c] + 1) * base**place for place, c in enumerate(columns))
    kinds, which = np.unique(keys, return_inverse=True)
    said = []
    for key in kinds.tolist():
        kind = [key // base**place % base - 1 for place in range(len(columns))]
        by = {w: [c for c, k in zip(columns, kind, strict=True) if k == i]
              for i, w in enumerate(words)}  # fmt: skip
        said.append("; ".join(f"{w}: {', '.join(own)}" for w, own in by.items() if own))
    return pa.array(said, pa.string()).take(pa.array(which))
