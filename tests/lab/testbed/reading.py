"""Reads a run folder as a user would, and asks the graph for what a test compares."""

from pathlib import Path
from typing import Any

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent


def ingested(folder: Path, place: Path) -> Workspace:
    workspace = Workspace(place, project=project, rest=rest)
    pipeline.ingest([folder], workspace, Options(), Silent())
    return workspace


def ask(workspace: Workspace, query: str) -> list[dict[str, Any]]:
    with workspace.reader() as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
    return rows


def who(workspace: Workspace) -> list[tuple[int, str]]:
    rows = ask(workspace, "MATCH (r:Rank) RETURN r.rank AS rank, r.host AS host ORDER BY rank")
    return [(row["rank"], row["host"]) for row in rows]


def step_numbers(workspace: Workspace, rank: int) -> list[int]:
    rows = ask(
        workspace, f"MATCH (t:Step) WHERE t.rank = {rank} RETURN t.step_index AS n ORDER BY n"
    )
    return [row["n"] for row in rows]
