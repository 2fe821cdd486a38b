"""Text derived from the schema: tables for the embedded engine, constraints for Neo4j, writes."""

from collections.abc import Container, Iterable
from typing import Final

import pyarrow as pa

from teller.graph.schema import NODES, RELATIONS, Column, Node, Relation

EMBEDDED_TYPES: Final = {
    pa.int64(): "INT64",
    pa.string(): "STRING",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOL",
}

EVERY: Final = frozenset(c.name for kind in (*NODES, *RELATIONS) for c in kind.columns)

_EACH: Final = "UNWIND range(0, $rows - 1) AS i"


def embedded_ddl() -> tuple[str, ...]:
    """Give the statements that make an empty embedded graph, nodes first."""
    return (*map(_node_table, NODES), *map(_relation_table, RELATIONS))


def neo4j_ddl() -> tuple[str, ...]:
    """Give the statements that make ids unique and runs quick to find in Neo4j; safe to repeat."""
    unique = (
        f"CREATE CONSTRAINT {n.label.lower()}_id IF NOT EXISTS FOR (n:{n.label}) "
        "REQUIRE n.id IS UNIQUE"
        for n in NODES
    )
    by_run = (
        f"CREATE INDEX {n.label.lower()}_run_id IF NOT EXISTS FOR (n:{n.label}) ON (n.run_id)"
        for n in NODES
    )
    return (*unique, *by_run)


def create_nodes(node: Node, names: Container[str] = EVERY) -> str:
    """Give the write of `$rows` that must not be there yet, with the named columns."""
    return f"UNWIND $rows AS r CREATE (:{node.label} {_map(_named(node.columns, names))})"


def merge_nodes(node: Node) -> str:
    """Give the write of `$rows` that leaves nodes as they are when their id is there."""
    rest = [c for c in node.columns if c.name != "id"]
    return f"UNWIND $rows AS r MERGE (n:{node.label} {{id: r.id}}) ON CREATE SET {_set('n', rest)}"


def update_nodes(node: Node, names: Container[str], empty: Container[str] = ()) -> str:
    """Give the write that sets the named columns of nodes that are there, the `empty` to null."""
    columns = [c for c in _named(node.columns, names) if c.name != "id"]
    said = _set("n", [c for c in columns if c.name not in empty])
    none = ", ".join(f"n.{c.name} = NULL" for c in columns if c.name in empty)
    match = f"UNWIND $rows AS r MATCH (n:{node.label} {{id: r.id}})"
    return f"{match} SET {', '.join(part for part in (said, none) if part)}"


def create_node_columns(node: Node, names: Container[str] = EVERY) -> str:
    """Give the write of `$rows` nodes, each named column a list: what Neo4j takes fastest."""
    return f"{_EACH} CREATE (:{node.label} {_lists(_named(node.columns, names))})"


def create_relation_columns(
    relation: Relation, src: str, dst: str, names: Container[str] = EVERY
) -> str:
    """Give the write of `$rows` relations that must not be there yet, each column a list."""
    made = _lists(_named(relation.columns, names), " ")
    ends = f"MATCH (a:{src} {{id: $src[i]}}) MATCH (b:{dst} {{id: $dst[i]}})"
    return f"{_EACH} {ends} CREATE (a)-[:{relation.type}{made}]->(b)"


def merge_relations(relation: Relation, src: str, dst: str, names: Container[str] = EVERY) -> str:
    """Give the write of `$rows` between two labels that changes nothing when done twice."""
    keys = [c for c in relation.columns if c.name in relation.key]
    rest = [c for c in _named(relation.columns, names) if c.name not in relation.key]
    merge = f"{_ends(src, dst)} MERGE (a)-[x:{relation.type}{_map(keys, ' ')}]->(b)"
    return f"{merge} SET {_set('x', rest)}" if rest else merge


def _node_table(node: Node) -> str:
    return f"CREATE NODE TABLE {node.label}({_typed(node.columns)}, PRIMARY KEY(id))"


def _relation_table(relation: Relation) -> str:
    ends = ", ".join(f"FROM {a.label} TO {b.label}" for a, b in relation.ends)
    columns = f", {_typed(relation.columns)}" if relation.columns else ""
    return f"CREATE REL TABLE {relation.type}({ends}{columns})"


def _named(columns: Iterable[Column], names: Container[str]) -> list[Column]:
    return [c for c in columns if c.name in names]


def _typed(columns: Iterable[Column]) -> str:
    return ", ".join(f"{c.name} {EMBEDDED_TYPES[c.type]}" for c in columns)


def _map(columns: Iterable[Column], lead: str = "") -> str:
    pairs = ", ".join(f"{c.name}: r.{c.name}" for c in columns)
    return f"{lead}{{{pairs}}}" if pairs else ""


def _lists(columns: Iterable[Column], lead: str = "") -> str:
    pairs = ", ".join(f"{c.name}: ${c.name}[i]" for c in columns)
    return f"{lead}{{{pairs}}}" if pairs else ""


def _set(variable: str, columns: Iterable[Column]) -> str:
    return ", ".join(f"{variable}.{c.name} = r.{c.name}" for c in columns)


def _ends(src: str, dst: str) -> str:
    # two MATCH clauses, not one with a comma: that one scans the whole label for each row
    return f"UNWIND $rows AS r MATCH (a:{src} {{id: r.src}}) MATCH (b:{dst} {{id: r.dst}})"
