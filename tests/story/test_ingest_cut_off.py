"""An ingest into a server that is killed is made whole by doing it again."""

from pathlib import Path

import pytest

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.neo4j import Neo4jStore, connect
from teller.graph.project import project
from teller.graph.shared import SharedWorkspace
from teller.pipeline import Options, Silent
from tests.graph.alike import Graph, graph
from tests.graph.killing import CLI, killed, moments, started

pytestmark = [pytest.mark.neo4j, pytest.mark.slow]

KILLS = 3


def ingested(folder: Path, kept: Path, store: Neo4jStore) -> Graph:
    """Give the graph after an ingest that nobody cuts off, and take it away again."""
    place = SharedWorkspace(kept, store.address, project=project, rest=rest)
    [run] = pipeline.ingest([folder], place, Options(), Silent()).runs
    found = graph(store)
    with place.writer() as writer:
        writer.remove(run.id)
    return found


def test_an_ingest_killed_at_any_moment_and_done_again_ends_in_the_graph_of_one(
    folder: Path, tmp_path: Path, neo4j_store: Neo4jStore
) -> None:
    at = neo4j_store.address
    wanted = ingested(folder, tmp_path / "whole", neo4j_store)
    rows = sum(map(len, wanted.values()))
    hit = 0
    with connect(at) as driver:

        def there() -> int:
            text = "MATCH (n) RETURN count(n) AS n UNION ALL MATCH ()-[r]->() RETURN count(r) AS n"
            return sum(record["n"] for record in driver.execute_query(text).records)

        for number, moment in enumerate(moments(rows, KILLS, seed=5)):
            kept = tmp_path / str(number)
            words = ("ingest", str(folder), "--workspace", str(kept), "--store", at.uri)
            hit += killed(moment, there, started(at, CLI, *words))
            assert ingested(folder, kept, neo4j_store) == wanted
    assert hit >= KILLS - 1
