"""The tables of one run in the archive, as models read them: by columns, each once."""

from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from teller.graph.project import EXPECTED, MEMBERS, SOURCES, TABLES, Sources

Ints = npt.NDArray[np.int64]


class Archived:
    """One run, by the folder of its generation."""

    def __init__(self, generation: Path) -> None:
        """Look into a generation's folder; reading raises OSError where it is gone."""
        self.folder = generation

    def table(self, name: str) -> pa.Table:
        """Give a table of the graph, such as `Step` or `DURING.LogLine.Step`."""
        return pq.read_table(self.folder / TABLES / f"{name}.parquet")

    @cached_property
    def steps(self) -> pa.Table:
        """Give the Step label."""
        return self.table("Step")

    @cached_property
    def ranks(self) -> pa.Table:
        """Give the Rank label."""
        return self.table("Rank")

    @cached_property
    def expected(self) -> pa.Table:
        """Give what operators took in each step, and what they should have taken."""
        return pq.read_table(self.folder / EXPECTED)

    @cached_property
    def members(self) -> pa.Table:
        """Give each rank's part in each collective, with step numbers of the run."""
        table = pq.read_table(self.folder / MEMBERS)
        run = msgspec.json.decode((self.folder / SOURCES).read_bytes(), type=Sources)
        shift = np.array([s.step_shift for s in run.sources] or [0], np.int64)
        moved = filled(table["step_index"], -1)
        moved = np.where(moved >= 0, moved + shift[ints(table["source"])], -1)
        at = table.column_names.index("step_index")
        return table.set_column(at, "step_index", pa.array(moved))


def ints(column: pa.ChunkedArray) -> Ints:
    """Give a column without nulls as numbers."""
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers


def filled(column: pa.ChunkedArray, missing: int) -> Ints:
    """Give a column as numbers, with one that stands for null."""
    numbers: Ints = column.fill_null(missing).to_numpy().astype(np.int64, copy=False)
    return numbers
