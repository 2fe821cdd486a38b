"""What a run's captures lack, said of each file: place, what, and what to do."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow.compute as pc

from teller.ingest.assembly import Assembly
from teller.ingest.source import Remark

SKEW_WORTH_A_WORD_NS: Final = 1_000_000
START_WORTH_A_WORD_NS: Final = 1_000_000_000
START_SHARE: Final = 0.1  # of the longest window


def remarks(run: Assembly) -> Iterator[Remark]:
    """Give all that is lacking, source by source."""
    if len(run.parts) > 1:
        yield from _clocks(run)
        yield from _lost_collectives(run)
        yield from _windows(run)
    yield from _missing_ranks(run)
    yield from _launches(run)
    yield from _unannotated(run)
    yield from _graphs(run)


def _clocks(run: Assembly) -> Iterator[Remark]:
    one_file = len({part.digest for part in run.parts}) == 1  # and so one clock
    for part, axis in zip(run.parts, run.line.axes, strict=True):
        offset, rank = axis.clock.offset_ns, part.identity.rank
        # Where no time is UTC each source counts from its own start: that is no skew.
        if abs(offset) >= SKEW_WORTH_A_WORD_NS and run.line.anchored:
            side = "behind" if offset > 0 else "ahead of"
            yield Remark(
                part.shaped.facts.path,
                f"rank {rank}",
                f"clock skew: the clock of rank {rank} is {abs(offset) / 1e6:.3f} ms {side} the "
                f"others'; aligned by the ends of {axis.clock.matched} collectives, "
                f"{(axis.clock.residual_ns or 0) / 1e3:.1f} µs are left",
                "nothing to do for this diagnosis; synchronise the hosts' clocks (PTP or chrony)",
            )
        elif axis.clock.residual_ns is None and not one_file:
            yield Remark(
                part.shaped.facts.path,
                f"rank {rank}",
                f"the clock of rank {rank} cannot be tied to the others': it shares no matched "
                "operation that all ranks leave together (all-reduce, all-gather, reduce-scatter, "
                "barrier); times across ranks are as good as the hosts' clocks",
                "record the same steps on all ranks, with communication",
            )


def _lost_collectives(run: Assembly) -> Iterator[Remark]:
    """Name ranks that lack collectives which others have, between their first and last."""
    members = run.line.timed.members
    if not members.num_rows:
        return
    counts = members.group_by(["group", "source"]).aggregate([("number", "count")])
    group, source = counts["group"].to_pylist(), counts["source"].to_numpy()
    count = counts["number_count"].to_numpy()
    for name in sorted(set(group)):
        here = np.array([g == name for g in group])
        most = int(count[here].max())
        for i, own in zip(source[here], count[here], strict=True):
            if own < most:
                part = run.parts[int(i)]
                rank = part.identity.rank
                yield Remark(
                    part.shaped.facts.path,
                    f"rank {rank}, group {name or 'unnamed'}",
                    f"rank {rank} has {own} collectives where another rank has {most}: "
                    f"{most - own} records were lost, or the windows differ; the others were "
                    "matched with gaps allowed",
                    "give the profiler larger buffers; start and stop all ranks at one step",
                )


def _windows(run: Assembly) -> Iterator[Remark]:
    """Name ranks whose steps were recorded at other times than those of the first rank."""
    if not run.line.anchored:
        return
    seen = []
    for part, axis in zip(run.parts, run.line.axes, strict=True):
        # a rank may be idle while its profiler runs: what counts is when its steps are there
        if len(part.shaped.steps):
            begun, ended = part.shaped.steps["start_ns"], part.shaped.steps["end_ns"]
            ends = pc.min(begun).as_py(), pc.max(ended).as_py()
            seen.append((part, axis.moment(ends[0]), axis.moment(ends[1])))
    if len(seen) < 2:
        return
    first, begun, ended = min(seen, key=lambda one: one[1])
    long = max(end - start for _, start, end in seen)
    for part, start, _ in seen:
        rank, path = part.identity.rank, part.shaped.facts.path
        if start > ended:
            yield Remark(
                path,
                f"rank {rank}",
                f"the steps of rank {rank} begin {(start - ended) / 1e9:.3f} s after those of "
                f"rank {first.identity.rank} ended: no moment is on both",
                "record all ranks over the same time",
            )
        elif start - begun > max(START_WORTH_A_WORD_NS, START_SHARE * long):
            yield Remark(
                path,
                f"rank {rank}",
                f"the steps of rank {rank} begin {(start - begun) / 1e9:.3f} s after those of "
                f"rank {first.identity.rank}: what lies before is on some ranks only",
                "start the profilers of all ranks together, or leave the beginning out",
            )


def _unannotated(run: Assembly) -> Iterator[Remark]:
    """Name ranks that have spans, but no annotation where other ranks have some."""
    named = [len(part.shaped.steps) > 0 for part in run.parts]
    for part, has in zip(run.parts, named, strict=True):
        if not has and any(named):
            rank = part.identity.rank
            yield Remark(
                part.shaped.facts.path,
                f"rank {rank}",
                f"rank {rank} has no steps, unlike other ranks: its process annotates nothing, or "
                "what it annotates was not recorded",
                "switch annotations on for every rank, and nvtx in --trace",
            )


def _missing_ranks(run: Assembly) -> Iterator[Remark]:
    world = max((p.shaped.facts.world_size or 0 for p in run.parts), default=0)
    missing = sorted(set(range(world)) - set(run.ranks.tolist()))
    if missing:
        some = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        yield Remark(
            run.parts[0].shaped.facts.path,
            "header",
            f"the run has {world} ranks; {len(missing)} are not here: rank {some}",
            "put the files of all ranks into one folder",
        )


def _launches(run: Assembly) -> Iterator[Remark]:
    for part in run.parts:
        one, rank = part.shaped, part.identity.rank
        if one.device_count and not one.correlated:
            yield Remark(
                one.facts.path,
                f"rank {rank}",
                f"none of the {one.device_count} device rows carries a correlation id: they cannot "
                "be joined to the API calls that launched them",
                "record again with a current profiler; device times themselves are right",
            )
        elif not one.device_count and any(p.shaped.device_count for p in run.parts):
            yield Remark(
                one.facts.path,
                f"rank {rank}",
                f"rank {rank} has no device work, unlike other ranks: lost, or not recorded",
                "record CUDA activity on every rank",
            )


def _graphs(run: Assembly) -> Iterator[Remark]:
    for part in run.parts:
        one = part.shaped
        rows = pc.sum(one.paces.slice(0, 1)["graph_rows"]).as_py() or 0
        if rows:
            yield Remark(
                one.facts.path,
                "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                f"{rows} CUDA graph replays are recorded as a whole (graph-level trace): the "
                "kernels inside each graph are not in this file",
                "record a short window with --cuda-graph-trace=node for single kernels",
            )
