"""The page of docs that lists what the graph may hold."""

import sys
from collections.abc import Iterable, Iterator

from teller.graph.cypher import EMBEDDED_TYPES
from teller.graph.schema import COMMON, NODES, RELATIONS, SCHEMA_VERSION, Column, Relation

HEAD = f"""# The graph

Version {SCHEMA_VERSION}. Written from `graph/schema.py` by

```
python -m teller.graph.schema_page > docs/schema.md
```

A test holds that the two agree. Labels, relations and columns are the same in every engine.

Times are `INT64` nanoseconds since the run's time 0 (`Run.t0_epoch_ns`). Ids are `INT64`, and
strings in JSON, URLs and HTML, where numbers above 2⁵³ are rounded. What all runs share has
`run_id` 0.
"""


def render() -> str:
    """Give the page as Markdown."""
    parts = [HEAD, *_nodes(), *_relations()]
    return "\n".join(parts)


def _nodes() -> Iterator[str]:
    yield "## Nodes\n\nEvery node has these columns in front:\n"
    yield _table(COMMON)
    for node in NODES:
        yield f"### {node.label}\n\n{node.doc}\n"
        yield _table(node.own)


def _relations() -> Iterator[str]:
    yield "## Relations\n\nRead from start to end. Where two nodes can be joined more than once,"
    yield "*key* names the columns that tell these apart; they are never null.\n"
    for relation in RELATIONS:
        yield f"### {relation.type}\n\n{relation.doc}\n\n{_arrows(relation)}\n"
        if relation.key:
            yield f"Key: {', '.join(f'`{k}`' for k in relation.key)}.\n"
        if relation.columns:
            yield _table(relation.columns)


def _arrows(relation: Relation) -> str:
    pairs = (f"(:{a.label})-[:{relation.type}]->(:{b.label})" for a, b in relation.ends)
    return "\n".join(["```", *pairs, "```"])


def _table(columns: Iterable[Column]) -> str:
    rows = (f"| `{c.name}` | {EMBEDDED_TYPES[c.type]} | {c.doc} |" for c in columns)
    return "\n".join(["| column | type | what it says |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(render())
