"""Write an assembled run as one generation of the archive."""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from teller.graph import project
from teller.ingest import (
    nodes,
    quality,
    record_groups,
    record_nodes,
    record_paths,
    record_requests,
    stored,
    stuck,
    traffic,
)
from teller.ingest.assembly import Assembly


def write(run: Assembly, manifest: str, folder: Path) -> None:
    """Write all small tables, and move the sources' spans in beside them.

    Spans are moved last: a log line is looked up in them while tables are made.
    """
    (folder / project.TABLES).mkdir(parents=True)
    told = replace(run, remarks=(*run.remarks, *quality.remarks(run)))
    told = replace(told, rows=stuck.with_facts(told))
    for name, table in _tables(told).items():
        pq.write_table(table, folder / project.TABLES / f"{name}.parquet", compression="lz4")
    pq.write_table(run.expected, folder / project.EXPECTED, compression="lz4")
    pq.write_table(run.line.timed.members, folder / project.MEMBERS, compression="lz4")
    sources = _sources(run, folder)
    said = project.Sources(run.key, run.run_id, sources)
    (folder / project.SOURCES).write_bytes(msgspec.json.encode(said))
    stored.save(run, manifest, [s.file for s in sources], folder)


def _sources(run: Assembly, folder: Path) -> tuple[project.SpanSource, ...]:
    (folder / "spans").mkdir()
    sources = []
    for number, (part, axis) in enumerate(zip(run.parts, run.line.axes, strict=True)):
        name = f"spans/{number:05d}.parquet"
        shutil.move(part.shaped.spans, folder / name)
        sources.append(
            project.SpanSource(
                file=name,
                rank=part.identity.rank,
                base=run.base(part),
                input_id=run.input_id(part.digest),
                shift_ns=axis.shift_ns,
                offset_ns=axis.clock.offset_ns,
                drift_ppm=axis.clock.drift_ppm,
                drift_at_ns=axis.clock.at_ns,
                t0_ns=axis.t0_ns,
                step_shift=run.shifts[number],
            )
        )
    return tuple(sources)


def _tables(run: Assembly) -> dict[str, pa.Table]:
    """Give all small tables: those of captures, and what records add to each."""
    made = nodes.tables(run) | traffic.tables(run)
    made |= record_groups.group_tables(run, made)
    made |= record_groups.collective_tables(run, made)
    made |= record_paths.tables(run, made)
    for name, table in (record_nodes.tables(run) | record_requests.tables(run)).items():
        made[name] = pa.concat_tables([made[name], table]) if name in made else table
    return made
