"""Keep findings: in the archive, which is the truth, and in the graph, to be asked for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa

from teller.graph import ids, schema, targets
from teller.graph.archive import Archive, RunEntry
from teller.graph.finding import Finding
from teller.graph.workspace import Workspace

Tables = dict[str, pa.Table]

SHOWN_LABELS = {n.label for _, n in schema.SHOWN_BY.ends}


def keep(workspace: Workspace, found: Mapping[int, Sequence[Finding]], ruleset: str) -> None:
    """Put what a rule set says of runs in the place of what it said before."""
    changed = {
        run: findings
        for run, findings in found.items()
        if list(findings) != workspace.archive.findings(run, ruleset)
    }
    for run in found.keys() - changed.keys():
        if not workspace.archive.was_judged(run):  # that nothing was found is kept as well
            workspace.archive.save_findings(run, ruleset, ())
    if not changed:
        return
    stale = {run: workspace.archive.findings(run, ruleset) for run in changed}
    for run, findings in changed.items():
        workspace.archive.save_findings(run, ruleset, findings)
    with workspace.changing() as store:
        for run, findings in changed.items():
            store.remove(schema.FINDING.label, [f.id for f in stale[run]])
            key = workspace.archive.entry(run).key
            store.append(run, tables(key, run, findings), skip_lost=True)


def rest(archive: Archive, entry: RunEntry) -> Tables:
    """Give what was said of a run before, and its targets, so that a rebuilt graph has them."""
    said = tables(entry.key, entry.run_id, archive.findings(entry.run_id))
    return said | targets.tables(entry)


def tables(key: str, run: int, findings: Sequence[Finding]) -> Tables:
    """Give the rows of findings and of all that they point at."""
    made: Tables = {
        "Finding": _table(schema.FINDING.arrow, [_row(f) for f in findings]),
        "IN_RUN.Finding.Run": _ends(schema.IN_RUN, ((f.id, run) for f in findings)),
    }
    for label in ("Rank", "Host", "Device", "Link", "ProcessGroup", "Operator"):
        pairs = [(f.id, i) for f in findings for i in _blamed(key, label, f)]
        made[f"BLAMES.Finding.{label}"] = _ends(schema.BLAMES, pairs)
    for label in sorted(SHOWN_LABELS):
        shown = dict.fromkeys(
            (f.id, e.id, e.role) for f in findings for e in f.evidence if e.kind == label
        )
        made[f"SHOWN_BY.Finding.{label}"] = _table(
            schema.SHOWN_BY.arrow, [{"src": a, "dst": b, "role": role} for a, b, role in shown]
        )
    return {name: table for name, table in made.items() if table.num_rows}


def _row(finding: Finding) -> dict[str, object]:
    said = finding.to_json()
    who = finding.culprit
    names = [
        *who.operators,
        *(f"rank {r}" for r in who.ranks),
        *who.devices,
        *who.hosts,
        *who.groups,
        *who.components,
    ]
    return {
        "id": finding.id,
        "run_id": finding.run,
        "kind": schema.FINDING.label,
        "class": finding.klass,
        "case_class": finding.case_class,
        "title": finding.title,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "culprit_kind": who.kind,
        "culprit": ", ".join(names),
        "components": ",".join(who.components),
        "excess_ns": finding.cost.excess_ns,
        "share": finding.cost.share,
        "text": finding.text,
        "start_ns": finding.start_ns,
        "end_ns": finding.end_ns,
        "ruleset": finding.ruleset,
        "detail": msgspec.json.encode(said).decode(),
    }


def _blamed(key: str, label: str, finding: Finding) -> Iterator[int]:
    who = finding.culprit
    if label == "Rank":
        yield from (ids.rank_id(key, rank) for rank in who.ranks)
    elif label == "Link":
        yield from (ids.node_id(key, label, a, b) for a, b in who.links)
    elif label == "Operator":
        yield from (ids.node_id("", label, name) for name in who.operators)
    else:
        names = {"Host": who.hosts, "Device": who.devices, "ProcessGroup": who.groups}[label]
        yield from (ids.node_id(key, label, name) for name in names)


def _ends(relation: schema.Relation, pairs: Iterable[tuple[int, int]]) -> pa.Table:
    rows = [{"src": a, "dst": b} for a, b in dict.fromkeys(pairs)]
    return _table(relation.arrow, rows)


def _table(wanted: pa.Schema, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=wanted)
