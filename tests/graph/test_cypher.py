"""The text that the schema derives: as recorded, and as the engine takes it."""

import os
import re
from pathlib import Path

import pytest

from teller.graph import cypher, schema, schema_page
from teller.graph.schema import NODES, RELATIONS, Node, Relation
from teller.graph.store import Store
from teller.graph.tables import TABLES, GraphTable

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"

TEXTS = {
    "embedded": ";\n".join(cypher.embedded_ddl()),
    "neo4j": ";\n".join(cypher.neo4j_ddl()),
    "create_nodes": cypher.create_nodes(schema.SPAN),
    "merge_nodes": cypher.merge_nodes(schema.HOST_NODE),
    "update_nodes": cypher.update_nodes(
        schema.STEP, {"id", "p_abnormal", "excess_ns", "phase"}, {"phase"}
    ),
    "create_node_columns": cypher.create_node_columns(schema.HOST_NODE),
    "create_relation_columns": cypher.create_relation_columns(schema.NEXT, "Span", "Span"),
    "merge_bare_relations": cypher.merge_relations(schema.CHILD, "Span", "Span"),
    "merge_keyed_relations": cypher.merge_relations(schema.TALKED_TO, "Rank", "Rank"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_cypher_is_as_recorded(name: str) -> None:
    path = HERE / "golden" / f"{name}.cypher"
    if os.environ.get("TELLER_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEXTS[name] + "\n")
    assert path.read_text() == TEXTS[name] + "\n"


def test_the_schema_page_is_what_the_schema_says() -> None:
    page = DOCS / "schema.md"
    if os.environ.get("TELLER_UPDATE_GOLDEN"):
        page.write_text(schema_page.render())
    assert page.read_text() == schema_page.render()


def test_every_name_is_taken_unquoted(store: Store) -> None:
    for kind in (*NODES, *RELATIONS):
        columns = ", ".join(f"x.{c.name} AS {c.name}" for c in kind.columns)
        if isinstance(kind, Node):
            found = store.query(f"MATCH (x:{kind.label}) RETURN {columns}")
        else:
            found = store.query(f"MATCH ()-[x:{kind.type}]->() RETURN {columns or 'count(*)'}")
        assert found.column_names == [c.name for c in kind.columns] or not kind.columns


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_generated_write_names_every_column_once(table: GraphTable) -> None:
    kind = table.kind
    texts = (
        (cypher.create_nodes(kind), cypher.merge_nodes(kind), cypher.create_node_columns(kind))
        if isinstance(kind, Node)
        else (
            cypher.create_relation_columns(kind, table.src, table.dst),
            cypher.merge_relations(kind, table.src, table.dst),
        )
    )
    for text in texts:
        named = re.findall(r"(?:\br\.|\$)(\w+)", text.partition(" AS ")[2])
        assert sorted(named) == sorted(kind.arrow.names)


def test_one_column_name_has_one_type() -> None:
    types: dict[str, object] = {}
    kinds: tuple[Node | Relation, ...] = (*NODES, *RELATIONS)
    for column in (column for kind in kinds for column in kind.columns):
        assert types.setdefault(column.name, column.type) == column.type, column.name
