"""The blocks of docs/notebooks.md run as they stand, on the made run."""

import re
from pathlib import Path
from typing import Any

import pytest

from teller.graph import neo4j_address
from teller.graph.keep import rest
from teller.graph.neo4j import Neo4jStore
from teller.graph.project import project
from teller.graph.shared import SharedWorkspace
from teller.graph.workspace import Workspace

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notebooks.md"


@pytest.mark.neo4j
def test_the_page_runs_as_it_stands(
    workspace: Workspace, neo4j_store: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = neo4j_store.address
    said = {"URI": at.uri, "USER": at.user, "PASSWORD": at.password, "DATABASE": at.database}
    for name, value in said.items():
        monkeypatch.setenv(getattr(neo4j_address, name), value)
    monkeypatch.setenv("TELLER_WORKSPACE", str(workspace.folder))
    runs = [entry.run_id for entry in workspace.entries()]
    with SharedWorkspace(
        workspace.folder, at, write=True, project=project, rest=rest
    ) as place:  # fmt: skip
        place.push(runs)

    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(block, names)
    names["old"].service.connector.close()

    assert [(s["step_index"], s["dur_ns"]) for s in names["slowest"][:2]] == [(7, 10**9)] * 2
    assert names["late"].num_rows == 10
    assert names["found"].column_names == ["title", "severity"]
    assert sorted(r["host"] for r in names["records"]) == ["node-0", "node-1"]
    assert names["ranks"] == [{"rank": r, "host": f"node-{r}"} for r in (0, 1)]
    assert names["first"]["host"] == "node-0"
