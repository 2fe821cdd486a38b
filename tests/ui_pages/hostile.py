"""A run with names and lines as an attacker would write them: Markdown, HTML, LaTeX, links."""

import json
from pathlib import Path

from teller.graph import ids
from teller.graph.finding import Cost, Culprit, Evidence, Finding
from teller.graph.keep import keep, rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent, ingest

OUT = "http://attacker.invalid/x.png"
NAMES = (
    f"![pixel]({OUT})",
    f"<img src={OUT} onerror=alert(1)>",
    "__name__ *bold* `code` ~~gone~~",
    "$\\frac{1}{2}$ and $$x^2$$",
    f"[link]({OUT}) {OUT} www.attacker.invalid a@attacker.invalid",
    ":red[colour] :material/home: :smile: <script>alert(2)</script>",
)
LINE = f"INFO 11-29 22:43:12 [engine.py:7] {NAMES[0]} {NAMES[1]} {NAMES[2]}"
RUN_NAME = f"night {NAMES[2]} {NAMES[0]}"
STEPS = 6


def write_traces(run: Path, later_us: int = 0) -> None:
    """Write the traces of both ranks, recorded that much later."""
    run.mkdir(parents=True)
    for rank in (0, 1):
        said = json.dumps(_trace(rank, later_us))
        (run / f"rank{rank}.pt.trace.json").write_text(said)


def make_hostile(folder: Path, workspace: Path) -> None:
    """Write the run, read it into the workspace, and say a finding about it."""
    run = folder / "run"
    write_traces(run)
    (run / "rank0.log").write_text("".join(f"{LINE} {n}\n" for n in range(3)))
    _manifest(run)
    place = Workspace(workspace, project=project, rest=rest)
    got = ingest([run], place, Options(deployment=f"shop {NAMES[2]}"), Silent())
    assert len(got.runs) == 1, got
    with place.writer(project, rest) as writer:
        keep(writer, {got.runs[0].id: [_finding(writer, got.runs[0].id)]}, "rules-1")


def _trace(rank: int, later_us: int) -> dict[str, object]:
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}
    ]
    for step in range(STEPS):
        start = 1_764_456_192_000_000 + later_us + step * 10_000
        events.append(_span(f"ProfilerStep#{step}", "user_annotation", start, 9_000))
        events += [
            _span(name, "cpu_op", start + 100 + at * 1_300, 1_000 + 900 * (rank and at == 0))
            for at, name in enumerate(NAMES)
        ]
    world = {"rank": rank, "world_size": 2}
    return {"schemaVersion": 1, "distributedInfo": world, "traceEvents": events}


def _span(name: str, kind: str, start_us: int, long_us: int) -> dict[str, object]:
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 7, "ts": start_us,
            "dur": long_us}  # fmt: skip


def _manifest(run: Path) -> None:
    said = {
        "schema": "teller.run/1", "run": RUN_NAME, "created": "2026-11-29T22:43:12Z",
        "tool": "hand", "hosts": [{"name": "node-*a*"}],
        "ranks": [{"rank": rank, "host": "node-*a*", "pid": 1} for rank in (0, 1)],
        "files": [
            *({"path": f"rank{rank}.pt.trace.json", "kind": "kineto", "rank": rank,
               "host": "node-*a*"} for rank in (0, 1)),
            {"path": "rank0.log", "kind": "log", "rank": 0, "host": "node-*a*"},
        ],
    }  # fmt: skip
    (run / "manifest.json").write_text(json.dumps(said))


def _finding(place: Workspace, run: int) -> Finding:
    with place.reader() as graph:
        spans = graph.query(
            "MATCH (s:Span) WHERE s.run_id = $run AND s.rank = 1 AND s.name STARTS WITH '!' "
            "RETURN s.id AS id, s.step_index AS step ORDER BY step", {"run": run},
        ).to_pylist()  # fmt: skip
    shown = spans[1]
    return Finding(
        id=ids.node_id(str(run), "Finding", "hostile"), run=run, klass="slow_operator",
        case_class="slow_operator_one_rank", title=f"{NAMES[0]} is slow on rank 1", severity="high",
        confidence=0.9, culprit=Culprit("operator", ranks=(1,), operators=(NAMES[0],)),
        text=f"From step 1 on, {NAMES[0]} takes longer. {NAMES[1]} and {NAMES[3]} wait.",
        next_step=f"Look at {NAMES[4]}", ruleset="rules-1", first_step=shown["step"], last_step=5,
        step_count=5, start_ns=0, end_ns=50_000_000, cost=Cost(4_500_000, 0.4, 0.009),
        numbers={"ratio": 1.9},
        evidence=(Evidence("cause", "Span", shown["id"], "rank1.json:3", f"{NAMES[1]} took long"),),
        against=(NAMES[2],), not_checked=(NAMES[5],), voices={"rules": 0.9},
    )  # fmt: skip
