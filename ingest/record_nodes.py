"""Records as graph rows: log lines with their templates, side facts, and what they are about."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly
from teller.ingest.line_spans import inside
from teller.ingest.record_rows import row_ids
from teller.ingest.rows import node_rows, relation_rows
from teller.ingest.who import UNKNOWN_HOST

Ints = npt.NDArray[np.int64]
Tables = dict[str, pa.Table]


def tables(run: Assembly) -> Tables:
    """Give all tables of lines and side facts."""
    return _lines(run) | _samples(run)


def host_ids(run: Assembly, hosts: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Give the id of each host; null where there is none."""
    words = _plain(hosts).dictionary_encode()
    known = [
        ids.node_id(run.key, "Host", h) if h != UNKNOWN_HOST else None
        for h in words.dictionary.to_pylist()
    ]
    return pa.array(known, pa.int64()).take(words.indices)


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.cast(pa.string())


def _lines(run: Assembly) -> Tables:
    rows = run.rows.lines
    own = pc.add(rows["base"], rows["place"]).combine_chunks()
    words = _plain(rows["template"]).dictionary_encode()
    texts = words.dictionary.to_pylist()
    template_ids = [ids.node_id("", "LogTemplate", t) for t in texts]
    tied = run.ties
    names = {"process", "level", "origin", "text", "params", "request", "rank", "host", "line"}
    columns = {n: rows[n] for n in names | {"input_id"}} | {
        "id": own,
        "time_ns": tied.time_ns,
        "step_index": tied.step_index,
        "placed_by": tied.placed_by,
        "tied_by": tied.tied_by,
        "confidence": tied.confidence,
    }
    templates = node_rows(schema.LOG_TEMPLATE, 0, len(texts), {"id": template_ids, "text": texts})
    matches = pa.array(template_ids, pa.int64()).take(words.indices)
    ends = {
        "MATCHES.LogLine.LogTemplate": (schema.MATCHES, matches),
        "FROM_RANK.LogLine.Rank": (schema.FROM_RANK, rank_ids(run, rows["rank"])),
        "FROM_HOST.LogLine.Host": (schema.FROM_HOST, host_ids(run, rows["host"])),
        "DURING.LogLine.Step": (schema.DURING, _step_ids(run)),
        "INSIDE.LogLine.Span": (
            schema.INSIDE,
            inside(rows, tied, run.parts, run.line.axes, run.bases()),
        ),
    }
    return {
        "LogLine": node_rows(schema.LOG_LINE, run.run_id, rows.num_rows, columns),
        "LogTemplate": templates,
    } | {name: _pairs(relation, own, other) for name, (relation, other) in ends.items()}


def _step_ids(run: Assembly) -> pa.Array:
    """Give the id of the step that each line is tied to."""
    tied = run.ties.step_rank.is_valid()
    index, rank = (pc.fill_null(c, 0).to_numpy() for c in (run.ties.step_index, run.ties.step_rank))
    own = pa.array(run.step_ids(rank, index), pa.int64())
    return pc.if_else(tied, own, pa.scalar(None, pa.int64()))


def rank_ids(run: Assembly, ranks: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Give the id of each rank; null where there is none, or no file of the run is of it."""
    told = ranks.combine_chunks() if isinstance(ranks, pa.ChunkedArray) else ranks
    there = pc.is_in(told, pa.array({*run.ranks.tolist(), *run.cast.persons}, pa.int64()))
    whole = run.rank_ids(pc.fill_null(told, 0).to_numpy())
    return pc.if_else(there, pa.array(whole, pa.int64()), pa.scalar(None, pa.int64()))


def _pairs(relation: schema.Relation, src: pa.Array, dst: pa.Array) -> pa.Table:
    keep = dst.is_valid()
    return relation_rows(relation, src.filter(keep), dst.filter(keep))


def _samples(run: Assembly) -> Tables:
    rows = run.rows.samples
    own = pa.array(row_ids(run.key, "Sample", rows, "name"), pa.int64())
    names = [c.name for c in schema.SAMPLE.own]
    device = _device_ids(run, rows)
    rank = pc.if_else(device.is_valid(), pa.scalar(None, pa.int64()), rank_ids(run, rows["rank"]))
    told = pc.or_(device.is_valid(), rank.is_valid())
    host = pc.if_else(told, pa.scalar(None, pa.int64()), host_ids(run, rows["host"]))
    return {
        "Sample": node_rows(
            schema.SAMPLE, run.run_id, rows.num_rows, {"id": own} | {n: rows[n] for n in names}
        ),
        "ABOUT.Sample.Rank": _pairs(schema.ABOUT, own, rank),
        "ABOUT.Sample.Device": _pairs(schema.ABOUT, own, device),
        "ABOUT.Sample.Host": _pairs(schema.ABOUT, own, host),
    }


def _device_ids(run: Assembly, rows: pa.Table) -> pa.Array:
    """Give the device that a sample is about, where it names one."""
    index = rows["device_index"].combine_chunks()
    host = pc.fill_null(_plain(rows["host"]), UNKNOWN_HOST)
    name = pc.binary_join_element_wise(host, index.cast(pa.string()), ":").dictionary_encode()
    known = [ids.node_id(run.key, "Device", n) for n in name.dictionary.to_pylist()]
    return pa.array(known, pa.int64()).take(name.indices)


def device_names(run: Assembly) -> list[tuple[str, int]]:
    """Give host and index of each device that samples are about."""
    rows = run.rows.samples
    pairs = rows.group_by(["host", "device_index"]).aggregate([])
    known = pairs.filter(pc.is_valid(pairs["device_index"])).to_pylist()
    return sorted((p["host"] or UNKNOWN_HOST, p["device_index"]) for p in known)
