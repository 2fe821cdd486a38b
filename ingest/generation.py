"""Write an assembled run as one generation of the archive."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq

from teller.graph import project
from teller.ingest import nodes, traffic
from teller.ingest.assembly import Assembly
from teller.ingest.source import Remark

SKEW_WORTH_A_WORD_NS: Final = 1_000_000


def write(run: Assembly, folder: Path) -> None:
    """Move the sources' spans in, and write all else beside them."""
    (folder / "spans").mkdir(parents=True)
    (folder / project.TABLES).mkdir()
    sources = []
    for number, (part, axis) in enumerate(zip(run.parts, run.line.axes, strict=True)):
        name = f"spans/{number:05d}.parquet"
        shutil.move(part.shaped.spans, folder / name)
        sources.append(project.SpanSource(
            file=name, rank=part.identity.rank, base=run.base(part),
            input_id=run.input_id(part.digest), shift_ns=axis.shift_ns,
            offset_ns=axis.clock.offset_ns, drift_ppm=axis.clock.drift_ppm,
            drift_at_ns=axis.clock.at_ns, t0_ns=axis.t0_ns, step_shift=run.shifts[number]))
    said = project.Sources(run.key, run.run_id, tuple(sources))
    (folder / project.SOURCES).write_bytes(msgspec.json.encode(said))
    pq.write_table(run.expected, folder / project.EXPECTED, compression="lz4")
    pq.write_table(run.line.timed.members, folder / project.MEMBERS, compression="lz4")
    for name, table in (nodes.tables(run) | traffic.tables(run)).items():
        pq.write_table(table, folder / project.TABLES / f"{name}.parquet", compression="lz4")


def clock_remarks(run: Assembly) -> Iterator[Remark]:
    """Say whose clock was put right, or could not be tied to the others'."""
    if len(run.parts) < 2:
        return
    for part, axis in zip(run.parts, run.line.axes, strict=True):
        offset, rank = axis.clock.offset_ns, part.identity.rank
        if abs(offset) >= SKEW_WORTH_A_WORD_NS:
            ahead = "ahead of" if offset < 0 else "behind"
            yield Remark(
                part.shaped.facts.path, f"rank {rank}",
                f"clock skew: the clock of rank {rank} is {abs(offset) / 1e6:.3f} ms {ahead} the "
                f"others'; aligned by the ends of {axis.clock.matched} collectives, "
                f"{(axis.clock.residual_ns or 0) / 1e3:.1f} µs are left",
                "nothing to do for this diagnosis; synchronise the hosts' clocks (PTP or chrony)")
