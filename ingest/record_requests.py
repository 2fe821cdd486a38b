"""Requests: what clients, logs and telemetry say adds up, and the iterations that served each."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import ids, schema
from teller.ingest.assembly import Assembly
from teller.ingest.rows import node_rows, relation_rows

Ints = npt.NDArray[np.int64]
Tables = dict[str, pa.Table]

MOST_ITERATIONS: Final = 512  # a longer request keeps its first and last, and others between
LAST_WORD: Final = ("start_ns", "min"), ("first_token_ns", "min"), ("end_ns", "max")
LARGEST: Final = ("prompt_tokens", "output_tokens", "ttft_ns", "itl_p50_ns", "queue_ns",
                  "preemptions")  # fmt: skip


def tables(run: Assembly) -> Tables:
    """Give requests, and which iterations served each."""
    rows = run.rows.requests.filter(pc.is_valid(run.rows.requests["name"]))
    asked = [*LAST_WORD, *((c, "max") for c in LARGEST), ("status", "max")]
    whole = rows.group_by("name", use_threads=False).aggregate(asked)
    columns = {c.removesuffix("_min").removesuffix("_max"): whole[c] for c in whole.column_names}
    own = np.array(
        [ids.node_id(run.key, "Request", n) for n in whole["name"].to_pylist()], np.int64
    )
    first, start = columns["first_token_ns"], columns["start_ns"]
    columns["ttft_ns"] = pc.coalesce(columns["ttft_ns"], pc.subtract(first, start))
    columns["first_token_ns"] = pc.coalesce(first, pc.add(start, columns["ttft_ns"]))
    made = {"Request": node_rows(schema.REQUEST, run.run_id, len(own), {"id": own} | columns)}
    return made | {"SERVED_IN.Request.Iteration": _served(run, own, columns)}


def _served(run: Assembly, own: Ints, columns: dict[str, pa.ChunkedArray]) -> pa.Table:
    """Tie each request to the iterations between its start and its end."""
    iterations = run.stepped.iterations.sort_by("start_ns")
    begin, finish = iterations["start_ns"].to_numpy(), iterations["end_ns"].to_numpy()
    known = pc.and_(columns["start_ns"].is_valid(), columns["end_ns"].is_valid())
    at = np.flatnonzero(known.combine_chunks().to_numpy(zero_copy_only=False))
    start = pc.fill_null(columns["start_ns"], 0).to_numpy()[at]
    end = pc.fill_null(columns["end_ns"], 0).to_numpy()[at]
    first = np.searchsorted(finish, start)
    last = np.searchsorted(begin, end, side="right")
    count = np.clip(last - first, 0, MOST_ITERATIONS)
    src = np.repeat(own[at], count)
    nth = np.arange(len(src)) - np.repeat(np.cumsum(count) - count, count)
    # evenly from the first to the last: all of them where there are no more than that
    stride = np.repeat((last - first - 1) / np.maximum(count - 1, 1), count)
    served = np.repeat(first, count) + np.rint(nth * stride).astype(np.int64)
    index = iterations["step_index"].to_numpy()
    dst = ids.node_ids(run.key, "Iteration", index[served] if len(src) else served)
    return relation_rows(schema.SERVED_IN, src, dst)
