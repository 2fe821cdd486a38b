"""What the workspace keeps of a run, as the objects that every surface renders."""

from typing import TYPE_CHECKING

import pyarrow as pa

from teller.graph.schema import Node
from teller.graph.tables import GraphTable

if TYPE_CHECKING:
    from teller.graph.store import Store


def table(graph: "Store", wanted: GraphTable, run_id: int) -> pa.Table:
    """Give one table of the graph for a run, with what all runs share."""
    names = [column.name for column in wanted.kind.columns]
    if isinstance(wanted.kind, Node):
        start = f"MATCH (n:{wanted.kind.label})"
        given = [f"n.{name} AS {name}" for name in names]
    else:
        start = f"MATCH (n:{wanted.src})-[r:{wanted.kind.type}]->(m:{wanted.dst})"
        given = ["n.id AS src", "m.id AS dst", *(f"r.{name} AS {name}" for name in names)]
    text = f"{start} WHERE n.run_id IN [$run, 0] RETURN {', '.join(given)}"
    return graph.query(text, {"run": run_id})
