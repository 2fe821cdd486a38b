"""The graph in a notebook that uses py2neo, and what is missing is told."""

import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from teller.errors import BadUsage
from teller.graph import neo4j_address, notebook
from teller.graph.neo4j import Neo4jStore
from teller.graph.store import StoreUnreadable

MakeRun = Callable[[int], dict[str, pa.Table]]


@pytest.fixture
def at_server(neo4j_store: Neo4jStore, monkeypatch: pytest.MonkeyPatch) -> Neo4jStore:
    """Give an empty store, and name its server in the environment."""
    at = neo4j_store.address
    monkeypatch.setenv(neo4j_address.URI, at.uri)
    monkeypatch.setenv(neo4j_address.USER, at.user)
    monkeypatch.setenv(neo4j_address.PASSWORD, at.password)
    monkeypatch.setenv(neo4j_address.DATABASE, at.database)
    return neo4j_store


@pytest.fixture
def py2neo() -> Iterator[Callable[[], Any]]:
    """Give `open_py2neo`; what it opened is closed."""
    opened: list[Any] = []

    def give() -> Any:
        opened.append(notebook.open_py2neo())
        return opened[-1]

    yield give
    for graph in opened:
        graph.service.connector.close()


@pytest.mark.neo4j
def test_py2neo_asks_matches_and_creates(
    at_server: Neo4jStore, make_run: MakeRun, py2neo: Callable[[], Any]
) -> None:
    from py2neo.bulk import create_nodes

    at_server.append(3, make_run(3))
    graph = py2neo()
    assert graph.run("MATCH (s:Span) RETURN count(s) AS n").evaluate() == 24
    big = graph.run("RETURN $x AS x", x=2**53 + 1).evaluate()
    assert big == 2**53 + 1
    assert [n["host"] for n in graph.nodes.match("Rank").order_by("_.rank")] == ["node-0", "node-1"]
    create_nodes(graph.auto(), [{"id": 1, "run_id": 4}, {"id": 2, "run_id": 4}], labels={"Host"})
    found = at_server.query("MATCH (h:Host) WHERE h.run_id = 4 RETURN h.id AS id ORDER BY id")
    assert found["id"].to_pylist() == [1, 2]


def test_a_package_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(neo4j_address.URI, "neo4j://h")
    monkeypatch.setitem(sys.modules, "py2neo", None)
    with pytest.raises(BadUsage, match=r"pip install 'teller-rca\[py2neo\]', or take open_graph"):
        notebook.open_py2neo()


def test_an_address_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(neo4j_address.URI, raising=False)
    with pytest.raises(BadUsage, match="set TELLER_NEO4J_URI"):
        notebook.open_py2neo()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its open sockets
def test_a_server_that_does_not_answer_py2neo_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))  # taken, but nobody listens
        uri = f"bolt://127.0.0.1:{one.getsockname()[1]}"
        with pytest.raises(StoreUnreadable, match=rf"{uri} does not answer"):
            notebook.open_py2neo(uri)
