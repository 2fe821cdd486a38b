"""What the page for Cypher needs beside the page: words to complete, examples, a graph of rows."""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from teller.errors import BadUsage
from teller.graph import queries, schema

NODES: Final = 300  # of a graph that is drawn
_KEYWORDS: Final = (
    "MATCH", "OPTIONAL MATCH", "WHERE", "WITH", "RETURN", "ORDER BY", "LIMIT", "SKIP", "UNWIND",
    "DISTINCT", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "STARTS WITH", "CONTAINS",
    "ENDS WITH", "DESC", "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "count", "sum", "avg", "min",
    "max", "collect", "coalesce",
)  # fmt: skip


@cache
def words() -> dict[str, list[str]]:
    """Give what the editor completes, from the schema."""
    columns = {c.name for node in schema.NODES for c in node.columns}
    columns |= {c.name for relation in schema.RELATIONS for c in relation.columns}
    return {
        "labels": [node.label for node in schema.NODES],
        "relations": [relation.type for relation in schema.RELATIONS],
        "columns": sorted(columns), "keywords": list(_KEYWORDS), "parameters": ["run", "limit"],
    }  # fmt: skip


@cache
def examples() -> dict[str, str]:
    """Give queries to start from by their names: ours, and the named queries of a run."""
    said = tomllib.loads(files("teller.ui").joinpath("examples.toml").read_text(encoding="utf-8"))
    found = {one["name"]: one["text"].strip() for one in said["example"]}
    for name in queries.names():
        query = queries.get(name)
        if set(query.parameters) <= {"run", "limit"}:
            found[f"named: {name}"] = query.text.strip()
    return found


def parameters(text: str) -> dict[str, Any]:
    """Give the parameters that a person wrote as JSON: {"rank": 3}."""
    if not text.strip():
        return {}
    try:
        said = json.loads(text)
    except ValueError as err:
        raise BadUsage(f'parameters are JSON, as in {{"rank": 3}}: {err}') from err
    if not isinstance(said, dict):
        raise BadUsage('parameters are one object, as in {"rank": 3}')
    return said


def snippet(text: str, given: Mapping[str, Any], folder: str, store: str) -> str:
    """Give Python that asks the same in a notebook."""
    where = repr(store) if store else f"workspace=Path({folder!r})"
    path = "" if store else "from pathlib import Path\n\n"
    return (
        f"{path}from teller.graph.notebook import open_graph\n\n"
        f'query = """{_quoted(text)}"""\n'
        f"with open_graph({where}) as graph:\n"
        f"    found = graph.query(query, {dict(given)!r})\n"
        "found.to_pylist()[:10]\n"
    )


def _quoted(text: str) -> str:
    escaped = text.strip().replace("\\", "\\\\").replace('"""', r"\"\"\"")
    return f"{escaped} " if escaped.endswith('"') else escaped


def ends(found: pa.Table) -> tuple[str, str] | None:
    """Give the two columns that could be the ends of edges: named so, else the first two."""
    names = found.column_names
    for pair in (("source", "target"), ("src", "dst"), ("a", "b"), ("src_rank", "dst_rank")):
        if set(pair) <= set(names):
            return pair
    flat = [
        f.name for f in found.schema if pa.types.is_string(f.type) or pa.types.is_integer(f.type)
    ]
    return (flat[0], flat[1]) if len(flat) >= 2 else None


def graph(found: pa.Table, first: str, last: str) -> tuple[list[str], list[tuple[int, int, int]]]:
    """Give nodes, and edges as two places and a count; the most met nodes where there are many."""
    pairs = [
        (str(a), str(b))
        for a, b in zip(found[first].to_pylist(), found[last].to_pylist(), strict=True)
        if a is not None and b is not None
    ]
    met: dict[str, int] = {}
    for name in (name for pair in pairs for name in pair):
        met[name] = met.get(name, 0) + 1
    nodes = sorted(met, key=lambda name: (-met[name], name))[:NODES]
    place = {name: at for at, name in enumerate(nodes)}
    edges: dict[tuple[int, int], int] = {}
    for a, b in pairs:
        if a in place and b in place:
            key = (place[a], place[b])
            edges[key] = edges.get(key, 0) + 1
    return nodes, [(a, b, count) for (a, b), count in edges.items()]


def spread(count: int, edges: list[tuple[int, int, int]]) -> npt.NDArray[np.float64]:
    """Give a place for each node: joined ones near each other (Fruchterman and Reingold, 1991)."""
    turn = np.arange(count) * 2.399963  # the golden angle: an even start, the same each time
    at = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.sqrt(np.arange(count) + 1)[:, None]
    near = 1.5
    a = np.array([e[0] for e in edges], np.int64)
    b = np.array([e[1] for e in edges], np.int64)
    for heat in np.linspace(np.sqrt(count) / 2, 0.02, 80):
        apart = at[:, None] - at[None]
        far = np.maximum(np.linalg.norm(apart, axis=2), 0.01)
        move = (apart * (near**2 / far**2)[:, :, None]).sum(axis=1)
        if len(edges):
            along = at[a] - at[b]
            pull = along * (np.linalg.norm(along, axis=1) / near)[:, None]
            np.add.at(move, a, -pull)
            np.add.at(move, b, pull)
        move -= 0.05 * at  # parts that hang on nothing stay in sight
        size = np.maximum(np.linalg.norm(move, axis=1), 1e-9)
        at = at + move * (np.minimum(size, heat) / size)[:, None]
    placed: npt.NDArray[np.float64] = at
    return placed
