"""Requests as graph rows, and the iterations that served each."""

import numpy as np
import pyarrow as pa

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly
from teller.ingest.rows import node_rows, relation_rows

Tables = dict[str, pa.Table]


def tables(run: Assembly) -> Tables:
    """Give requests, and which iterations served each."""
    asked, served = run.asking.table, run.asking.served
    own = np.array(
        [ids.node_id(run.key, "Request", n) for n in asked["name"].to_pylist()], np.int64
    )
    columns = {"id": own} | {name: asked[name] for name in asked.column_names}
    who, step, by, sure = served.pairs()
    dst = ids.node_ids(run.key, "Iteration", step)
    return {
        "Request": node_rows(schema.REQUEST, run.run_id, len(own), columns),
        "SERVED_IN.Request.Iteration": relation_rows(
            schema.SERVED_IN, own[who], dst, {"tied_by": by, "confidence": sure}
        ),
    }
