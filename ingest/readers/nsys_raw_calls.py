"""Communication calls as they are found, table by table, before payloads are spread over them."""

from collections import defaultdict
from typing import Final

import pyarrow as pa

from teller.ingest.readers.nsys_rows import Ints, picked, split

RAW: Final = pa.schema([
    pa.field("place", pa.int64()), pa.field("op", pa.string()), pa.field("dtype", pa.string()),
    pa.field("lane", pa.string()), pa.field("start", pa.int64()), pa.field("end", pa.int64()),
    pa.field("correlation", pa.int64()), pa.field("payload", pa.string()),
])  # fmt: skip


class RawCalls:
    """Calls so far, by owner: host ranges have a lane, device work has a correlation."""

    def __init__(self) -> None:
        self.parts: dict[int, list[pa.RecordBatch]] = defaultdict(list)

    def add(self, owner: Ints, place: Ints, op: pa.Array, **optional: pa.Array) -> None:
        """Add calls; columns that are not given are null."""
        columns = {"place": pa.array(place), "op": op} | optional
        arrays = [
            columns[f.name] if f.name in columns else pa.nulls(len(place), f.type) for f in RAW
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=RAW)
        for who, rows in split(owner):
            self.parts[who].append(picked(batch, rows))

    def of(self, owner: int) -> pa.Table:
        """Give all calls of a process."""
        return pa.Table.from_batches(self.parts.get(owner, []), RAW)
