"""Records of all files of a run as one table a kind: ranks and hosts filled in, one time axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import ids
from teller.ingest.cast import Cast
from teller.ingest.parts import DatedRecords, Part
from teller.ingest.records import TABLES, TIME_COLUMNS
from teller.ingest.rhythm import with_gaps
from teller.ingest.spells import with_spells
from teller.ingest.timeline import Timeline

Ints = npt.NDArray[np.int64]

NONE: Final = -1
# Added to every table: the number of the file, its input, and what names its rows for good.
EXTRA: Final = (("file", pa.int64()), ("input_id", pa.int64()), ("base", pa.int64()))


@dataclass(frozen=True, slots=True)
class Rows:
    """All records of a run, by kind; columns of `records.TABLES` and `file, input_id, base`."""

    lines: pa.Table
    samples: pa.Table
    members: pa.Table
    joins: pa.Table
    paths: pa.Table
    requests: pa.Table


def rows_of(
    dated: Sequence[DatedRecords],
    cast: Cast,
    inputs: Sequence[int],
    key: str,
    line: Timeline,
    parts: Sequence[Part],
) -> Rows:
    """Put the records of all files together; `inputs` are the ids of their inputs."""
    offsets = _host_offsets(line, parts)
    made = {}
    for name, schema in TABLES.items():
        tables = []
        for file, one in enumerate(dated):
            table: pa.Table = getattr(one.part.records, name)
            if not table.num_rows:
                continue
            table = _filled(table, file, one, cast)
            table = _on_axis(table, TIME_COLUMNS.get(name, ()), one, line, offsets)
            base = ids.place_base(key, None, f"records {one.part.host}", one.part.head)
            size = table.num_rows
            for column, value in (("file", file), ("input_id", inputs[file]), ("base", base)):
                table = table.append_column(column, pa.repeat(pa.scalar(value, pa.int64()), size))
            tables.append(table)
        whole = pa.schema([*schema, *(pa.field(*e) for e in EXTRA)])
        made[name] = (
            pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
            if tables
            else whole.empty_table()
        )
    made["samples"] = with_spells(with_gaps(made["samples"]))
    return Rows(**made)


def _filled(table: pa.Table, file: int, one: DatedRecords, cast: Cast) -> pa.Table:
    """Fill in ranks by process and hosts by file, rank or process."""
    host = pc.fill_null(table["host"].combine_chunks().cast(pa.string()), "").dictionary_encode()
    codes = np.stack(
        [
            host.indices.to_numpy().astype(np.int64),
            pc.fill_null(table["pid"], NONE).to_numpy(),
            pc.fill_null(table["rank"], NONE).to_numpy(),
        ]
    )
    distinct, which = np.unique(codes, axis=1, return_inverse=True)
    ranks, hosts = [], []
    for code, pid, told in distinct.T.tolist():
        name = host.dictionary[code].as_py()
        rank = told if told != NONE else cast.rank(file, name, pid if pid != NONE else None)
        rank = rank if rank is not None else one.part.records.facts.rank
        person = cast.persons.get(rank) if rank is not None else None
        ranks.append(rank)
        hosts.append(name or cast.host_of[file] or (person.host if person else "") or None)
    at = pa.array(which.reshape(-1))
    for column, values in (
        ("rank", pa.array(ranks, pa.int64())),
        ("host", pa.array(hosts, pa.string())),
    ):
        place = table.column_names.index(column)
        table = table.set_column(place, column, values.take(at))
    return table


def _on_axis(
    table: pa.Table,
    columns: Sequence[str],
    one: DatedRecords,
    line: Timeline,
    offsets: Mapping[str, int],
) -> pa.Table:
    """Put times on the run's axis, by the clock of the host they were taken on; else drop them."""
    host = table["host"].combine_chunks().dictionary_encode()
    moves = pa.array([offsets.get(h, 0) for h in host.dictionary.to_pylist()], pa.int64())
    offset = pc.fill_null(moves.take(host.indices), 0) if len(moves) else 0
    for name in columns:
        at = table.column_names.index(name)
        time = table[name].combine_chunks()
        if one.shift_ns is None:
            time = pa.nulls(len(time), pa.int64())
        else:
            time = pc.add(pc.add(time, one.shift_ns - line.t0_epoch_ns), offset)
        table = table.set_column(at, name, time)
    return table


def _host_offsets(line: Timeline, parts: Sequence[Part]) -> dict[str, int]:
    """Give what alignment found of each host's clock, from the captures taken there."""
    found: dict[str, list[int]] = {}
    for axis, part in zip(line.axes, parts, strict=True):
        if line.anchored and axis.clock.residual_ns is not None:
            found.setdefault(part.identity.host, []).append(axis.clock.offset_ns)
    return {host: int(np.median(offsets)) for host, offsets in found.items()}


def row_ids(key: str, label: str, rows: pa.Table, words: str) -> Ints:
    """Name rows by file, line, a word and which of these it is: a grown file keeps its ids."""
    word = rows[words].combine_chunks().cast(pa.string()).dictionary_encode()
    hashes = [ids.node_id("", words, w) for w in word.dictionary.to_pylist()]
    named = np.array(hashes or [0], np.int64)[pc.fill_null(word.indices, 0).to_numpy()]
    base = rows["base"].to_numpy()
    place = pc.fill_null(rows["line"], NONE).to_numpy()
    order = np.lexsort((place, named, base))
    same = np.r_[
        False,
        (base[order][1:] == base[order][:-1])
        & (named[order][1:] == named[order][:-1])
        & (place[order][1:] == place[order][:-1]),
    ][: len(order)]
    at = np.arange(len(order))
    start = np.maximum.accumulate(np.where(same, 0, at))
    nth = np.empty(len(order), np.int64)
    nth[order] = at - start
    return ids.node_ids(key, label, base, place, named, nth)
