"""A `Reading` out of the tables of an Nsight Systems export, one source for each process."""

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers import nsys_calls, nsys_remarks
from teller.ingest.readers.nsys_facts import Export, Named, read_export, read_gpus, read_names
from teller.ingest.readers.nsys_ranks import Place, place_all
from teller.ingest.readers.nsys_spans import API, Events, read_events
from teller.ingest.readers.nsys_tables import Tables
from teller.ingest.source import Facts, Reading, Remark, Source


def reading(tables: Tables, form: str) -> Reading:
    """Give all processes of an export, with what was wrong with it."""
    events = read_events(tables)
    export = read_export(tables, events.spans.first_ns)
    processes = events.processes
    named = read_names(tables, events.names, processes)
    busy = [who for who in processes if events.has_device_rows(who)] or processes
    places = place_all(named, export.environments, busy)
    sources, remarks = [], []
    for who in processes:
        source, found = _source(tables, form, events, export, who, named[who], places[who])
        sources.append(source)
        remarks += found
    if not sources:
        remarks.append(nsys_remarks.nothing_used(tables))
    remarks += [*export.remarks, *nsys_remarks.mended(tables.path, events)]
    remarks += nsys_remarks.diagnostics(tables)
    return Reading(tuple(sources), tuple(dict.fromkeys((*tables.remarks, *remarks))))


def _source(
    tables: Tables, form: str, events: Events, export: Export, who: int, named: Named, place: Place
) -> tuple[Source, list[Remark]]:
    spans = events.spans.spans(who)
    called = nsys_calls.build(events.calls.of(who), spans)
    pid = named.pid if who > 0 else None
    rank, rank_source = place.rank, place.source
    if rank is None and called.rank is not None:
        rank, rank_source = called.rank, "payload"
    facts = Facts(
        path=tables.path, format=form, pid=pid or None, rank=rank, rank_source=rank_source,
        host=export.host, host_source=export.host_source,
        world_size=place.world or called.world, places=place.places, epoch_ns=export.epoch_ns,
        device_index=_main_device(spans), groups=called.groups,
        gpus=read_gpus(tables, named.pid), product=export.product, process_name=named.name,
        options=_options(export, events, who), event_count=spans.num_rows,
    )  # fmt: skip
    return Source(facts, spans, called.calls), _remarks(tables.path, events, who, named, called)


def _options(export: Export, events: Events, who: int) -> dict[str, str]:
    graphs = events.graph_launches(who)
    mode = "graph" if graphs else export.graph_mode
    options = {"cuda_graph_trace": mode} if mode in ("graph", "node") else {}
    return options | ({"graph_launches": str(graphs)} if graphs else {})


def _main_device(spans: pa.Table) -> int | None:
    used = spans.filter(pc.is_valid(spans["stream"]))["device_index"]
    counted = pc.value_counts(used.drop_null()).to_pylist()
    return max(counted, key=lambda one: one["counts"])["values"] if counted else None


def _remarks(
    path: str, events: Events, who: int, named: Named, called: nsys_calls.Called
) -> list[Remark]:
    found = []
    if failures := events.failures.get(who):
        found.append(nsys_remarks.failed_calls(path, named.pid, failures))
    if events.spans.rows[API][who] and not events.has_device_rows(who):
        found.append(nsys_remarks.no_device_rows(path, named.pid))
    if called.unread:
        found.append(nsys_remarks.unread_payloads(path, named.pid, called.unread))
    return found
