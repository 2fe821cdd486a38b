"""A load that is cut off, by a kill or by the server's end, is made whole by doing it again."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from neo4j import Driver

from teller.graph.archive import RunEntry
from teller.graph.neo4j import Neo4jStore, connect
from teller.graph.neo4j_address import Address
from teller.graph.shared import SharedWorkspace
from teller.graph.tables import TABLES, fit
from teller.graph.workspace import Files, Workspace
from tests.graph.alike import Graph, graph
from tests.graph.killing import ended, killed, moments, started, wait_for

pytestmark = [pytest.mark.neo4j, pytest.mark.slow]

RUN = 3
SPANS = 6_000
MOMENTS = 10  # of kills, one in each tenth of the load
PUSH = """
import sys
from pathlib import Path
from teller.graph.neo4j_address import address
from teller.graph.shared import SharedWorkspace

def project(kept, scratch):
    return {p.name.removesuffix(".parquet"): [p] for p in kept.iterdir()}

with SharedWorkspace(Path(sys.argv[1]), address(sys.argv[2]), write=True, project=project) as w:
    w.push([int(sys.argv[3])])
"""


@pytest.fixture
def workspace(tmp_path: Path, make_table: Callable[..., pa.Table]) -> Path:
    """Give a workspace with one run of 6 000 spans below each other, in 30 steps."""
    ids = np.arange(SPANS, dtype=np.int64)
    steps = [{"id": 100_000 + s, "run_id": RUN, "rank": 0, "step_index": s} for s in range(30)]
    tables = {
        "Run": make_table("Run", [{"id": RUN, "run_id": RUN, "name": "long"}]),
        "Rank": make_table("Rank", [{"id": 200_000, "run_id": RUN, "rank": 0}]),
        "Operator": make_table("Operator", [{"id": 7, "run_id": 0, "name": "gemm"}]),
        "Step": make_table("Step", steps),
        "Span": pa.table({"id": ids, "run_id": np.full(SPANS, RUN), "start_ns": ids * 10,
                          "name": [f"span {i}" for i in range(SPANS)]}),
        "CHILD.Span.Span": pa.table({"src": ids[:-1], "dst": ids[1:]}),
        "IN_STEP.Span.Step": pa.table({"src": ids, "dst": 100_000 + ids % 30}),
        "HAS_RANK.Run.Rank": make_table("HAS_RANK.Run.Rank", [{"src": RUN, "dst": 200_000}]),
    }  # fmt: skip
    with Workspace(tmp_path / "workspace", write=True) as made:
        staged = made.archive.stage()
        for name, table in tables.items():
            pq.write_table(fit(table, TABLES[name].kind), staged / f"{name}.parquet")
        made.archive.commit(RunEntry(RUN, "key", "long", "here", "", 1, ""), staged)
    return tmp_path / "workspace"


def by_name(kept: Path, scratch: Path) -> Files:
    return {p.name.removesuffix(".parquet"): [p] for p in kept.iterdir()}


def counting(driver: Driver) -> Callable[[], int]:
    """Give what counts the nodes and relations on the server."""
    text = "MATCH (n) RETURN count(n) AS n UNION ALL MATCH ()-[r]->() RETURN count(r) AS n"
    return lambda: sum(record["n"] for record in driver.execute_query(text).records)


def pushing(folder: Path, at: Address) -> subprocess.Popen[str]:
    """Start a program that copies the run, or what is missing of it."""
    return started(at, PUSH, str(folder), at.uri, str(RUN))


def undisturbed(folder: Path, store: Neo4jStore) -> Graph:
    """Give the graph as it is when nothing is cut off, and take it away again."""
    with SharedWorkspace(folder, store.address, write=True, project=by_name) as whole:
        whole.push([RUN])
        wanted = graph(store)
        whole.remove(RUN)
    assert len(wanted["CHILD.Span.Span"]) == SPANS - 1
    assert not any(graph(store)[label] for label in wanted if label != "Operator")
    return wanted


def test_a_push_killed_at_any_of_ten_moments_and_done_again_ends_in_the_graph_of_one_push(
    workspace: Path, neo4j_store: Neo4jStore
) -> None:
    at, wanted = neo4j_store.address, undisturbed(workspace, neo4j_store)
    hit = 0
    with connect(at) as driver:
        for moment in moments(3 * SPANS, MOMENTS, seed=5):
            hit += killed(moment, counting(driver), pushing(workspace, at))
            if neo4j_store.runs():  # it is told only when it is whole
                assert graph(neo4j_store) == wanted
            with SharedWorkspace(workspace, at, write=True, project=by_name) as again:
                again.push([RUN])
                assert graph(neo4j_store) == wanted
                again.remove(RUN)
    assert hit >= MOMENTS - 2  # the last may come to its end first


def test_a_server_that_is_started_again_during_a_load_ends_in_the_same_graph(
    workspace: Path, neo4j_home: tuple[Path, Callable[[], Address]]
) -> None:
    start = neo4j_home[1]
    at = start()
    with Neo4jStore(at) as store:
        wanted = undisturbed(workspace, store)
    process = pushing(workspace, at)
    with ended(process):
        with connect(at) as driver:
            wait_for(SPANS // 2, counting(driver), process)
        assert start() == at
        said = process.communicate()[1]
    assert process.returncode == 0 or "do the same again" in said
    last = pushing(workspace, at)
    assert (last.communicate()[1], last.returncode) == ("", 0)
    with Neo4jStore(at) as store:
        assert graph(store) == wanted
