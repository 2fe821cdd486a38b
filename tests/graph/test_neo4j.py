"""What is peculiar to a server: its address, its errors, what a query must not do there."""

import socket
from collections.abc import Callable

import pyarrow as pa
import pytest

from teller.errors import BadUsage, QueryRefused, TellerError
from teller.graph import neo4j_address
from teller.graph.neo4j import Neo4jStore
from teller.graph.neo4j_address import Address, address
from teller.graph.store import StoreUnreadable

MakeRun = Callable[[int], dict[str, pa.Table]]


def test_an_address_is_a_uri_and_the_environment() -> None:
    said = {"TELLER_NEO4J_USER": "ann", "TELLER_NEO4J_PASSWORD": "hush"}
    assert address("neo4j+s://graph.example/team", said) == Address(
        "neo4j+s://graph.example:7687", "ann", "hush", "team"
    )
    assert address("bolt://bob:p%40ss@[::1]:7690", said) == Address(
        "bolt://[::1]:7690", "bob", "p@ss", "neo4j"
    )
    assert "hush" not in repr(address("neo4j://h", said))
    assert not neo4j_address.is_address("embedded")


@pytest.mark.parametrize("text", ["http://h", "neo4j://", "bolt://h:port", "neo4j"])
def test_what_is_no_address_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(BadUsage) as said:
        address(text.replace("//h", "//u:hush@h"), {})
    assert "hush" not in str(said.value)


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))  # taken, but nobody listens
        uri = f"bolt://127.0.0.1:{one.getsockname()[1]}"
        with pytest.raises(StoreUnreadable, match=rf"{uri} does not answer .*; start the server"):
            Neo4jStore(address(uri, {}))


@pytest.mark.neo4j
def test_a_wrong_password_or_database_is_named(neo4j_server: Address) -> None:
    uri = neo4j_server.uri
    with pytest.raises(BadUsage, match="does not let user neo4j in; set TELLER_NEO4J_USER") as said:
        Neo4jStore(Address(uri, "neo4j", "wrong-one"))
    assert "wrong-one" not in str(said.value)
    elsewhere = Address(uri, neo4j_server.user, neo4j_server.password, "elsewhere")
    with pytest.raises(BadUsage, match="no database 'elsewhere'; set TELLER_NEO4J_DATABASE"):
        Neo4jStore(elsewhere)


@pytest.mark.neo4j
@pytest.mark.parametrize(
    "text",
    [
        "WITH 1 AS one LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
        "WITH 1 AS one \\u004cOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
        "RETURN '\\u0027 AS a UNION LOAD CSV FROM \"file:///etc/passwd\" AS a RETURN a //'",
        "MATCH (n:Span) CALL dbms.listConfig() YIELD name RETURN name",
        "MATCH (n:Span) CALL dbms . listConfig ( ) YIELD name RETURN name",
        "MATCH (n:Span) CALL `dbms`.`listConfig`() YIELD name RETURN name",
        "MATCH (n:Span) CALL { CREATE (:Span {id: 1}) } RETURN n.id",
        "MATCH (n:Span) FOREACH (i IN [1] | CREATE (:Span {id: i}))",
        "MATCH (n:Span) REMOVE n.name RETURN n.id",
    ],
)
def test_a_query_only_reads_the_graph(neo4j_store: Neo4jStore, text: str) -> None:
    with pytest.raises(QueryRefused):
        neo4j_store.query(text)
    assert neo4j_store.query("MATCH (n:Span) RETURN count(*) AS n")["n"].to_pylist() == [0]


@pytest.mark.neo4j
def test_a_query_that_does_not_end_is_stopped(neo4j_store: Neo4jStore) -> None:
    with (
        Neo4jStore(neo4j_store.address, timeout_s=0.5) as hasty,
        pytest.raises(QueryRefused, match=r"stopped after 0\.5 s"),
    ):
        hasty.query("UNWIND range(1, 1000000000) AS i RETURN sum(i % 7) AS n")


@pytest.mark.neo4j
@pytest.mark.parametrize(("value", "error"), [(2**70, BadUsage), ({1, 2}, BadUsage)])
def test_a_value_that_cannot_be_sent_is_told(
    neo4j_store: Neo4jStore, value: object, error: type[TellerError]
) -> None:
    with pytest.raises(error):
        neo4j_store.query("RETURN $x AS x", {"x": value})


@pytest.mark.neo4j
def test_columns_have_their_types_also_where_all_is_null_or_nothing_is_found(
    neo4j_store: Neo4jStore, make_run: MakeRun
) -> None:
    asked = (
        "MATCH (s:Step) WHERE s.run_id = $run RETURN s.id AS id, s.phase AS phase, "
        "s.p_abnormal AS p, s.batch_size AS size, count(*) AS n ORDER BY id"
    )
    wanted = [pa.int64(), pa.string(), pa.float64(), pa.int64(), pa.int64()]
    neo4j_store.append(3, make_run(3))
    assert neo4j_store.query(asked, {"run": 3}).schema.types == wanted
    assert neo4j_store.query(asked, {"run": 3}).num_rows == 4
    assert neo4j_store.query(asked, {"run": 4}).schema.types == wanted


@pytest.mark.neo4j
def test_nodes_relations_and_paths_come_as_maps(neo4j_store: Neo4jStore, make_run: MakeRun) -> None:
    neo4j_store.append(3, make_run(3))
    [row] = neo4j_store.query(
        "MATCH p = (r:Rank {rank: 1})-[h:ON_HOST]->(n:Host) RETURN n, h, p, date('2026-01-02') AS d"
    ).to_pylist()
    assert row["n"] == {
        "_LABEL": "Host", "id": 35501, "run_id": 3, "kind": "Host", "name": "node-1",
    }  # fmt: skip
    assert row["h"] == {"_LABEL": "ON_HOST"}
    assert [n["id"] for n in row["p"]["_NODES"]] == [35401, 35501]
    assert row["d"] == "2026-01-02"
