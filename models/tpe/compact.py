"""A run for the graph with few spans: most steps stand there as fragments only."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from teller.graph import project, schema
from teller.graph.tables import TABLES
from teller.models.tpe import fragments
from teller.models.tpe.encode import encode
from teller.models.tpe.trees import of_run
from teller.models.tpe.vocabulary import Vocabulary

SPAN = schema.SPAN.label
OPERATOR = schema.OPERATOR.label


def compact(
    generation: Path, scratch: Path, vocabulary: Vocabulary, kept: Collection[int]
) -> Mapping[str, Sequence[Path]]:
    """Give the Parquet files of a run by table name, as `graph.project.project` does.

    All steps get their fragments; spans, with all that hangs on them, are there for the step
    numbers in `kept` and outside steps. `graph.project.step_tables` gives those of one more step.
    """
    files = dict(project.project(generation, scratch))
    spans = [_spans_of(path, kept) for path in files[SPAN]]
    own = pa.concat_arrays([table["id"].combine_chunks() for table in spans])
    made = {SPAN: spans}
    for name, paths in files.items():
        if SPAN in (TABLES[name].src, TABLES[name].dst):
            made[name] = [_between(pq.read_table(p), TABLES[name].src, TABLES[name].dst, own)
                          for p in paths]  # fmt: skip
    run = msgspec.json.decode((generation / project.SOURCES).read_bytes(), type=project.Sources)
    said = fragments.tables(run.key, encode(of_run(generation), vocabulary), vocabulary)
    made |= {name: [table] for name, table in said.items()}
    made[OPERATOR] = [_joined(pq.read_table(files[OPERATOR][0]), said[OPERATOR])]
    return files | {name: _written(name, tables, scratch) for name, tables in made.items()}


def _spans_of(path: Path, kept: Collection[int]) -> pa.Table:
    table = pq.read_table(path)
    step = table["step_index"]
    wanted = pc.is_in(step, pa.array(sorted(kept), pa.int64()))
    return table.filter(pc.or_(wanted, pc.is_null(step)))


def _between(table: pa.Table, src: str, dst: str, own: pa.Array) -> pa.Table:
    """Give the rows whose spans are there."""
    for end, label in (("src", src), ("dst", dst)):
        if label == SPAN:
            table = table.filter(pc.is_in(table[end], own))
    return table


def _joined(first: pa.Table, second: pa.Table) -> pa.Table:
    new = ~np.isin(second["id"].to_numpy(), first["id"].to_numpy())
    return pa.concat_tables([first, second.filter(pa.array(new))])


def _written(name: str, tables: Sequence[pa.Table], scratch: Path) -> list[Path]:
    paths = []
    for number, table in enumerate(tables):
        paths.append(scratch / f"{name}.compact.{number}.parquet")
        pq.write_table(table, paths[-1], store_schema=False)
    return paths
