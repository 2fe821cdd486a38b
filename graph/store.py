"""The promise of a place that keeps the graph; `tests/graph/test_store.py` holds engines to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from teller.errors import TellerError


class StoreUnreadable(TellerError):
    """The files of a store are missing, damaged or of another version."""


@dataclass(frozen=True, slots=True)
class Can:
    """What an engine can do. A new field must default to what the weakest engine can."""

    snapshot: bool = False  # a read-only store shows one state for as long as it is open


class Store(Protocol):
    """A place that keeps the graph of any number of runs.

    * Tables go by name (`teller.graph.tables.TABLES`) and have the columns of `fit`.
    * An id stands for one node for good. Two rows with one id are a collision: a load names label
      and id and is refused; `append` takes the row that is there for the same and leaves it.
    * Rows of a run have its id as `run_id`. Rows with 0 are shared: they may be there already,
      and neither a load nor a drop changes them.
    * Ends of a relation must be there, or come in the same call.
    * Integers are exact, nulls stay nulls, text is any Unicode.
    * A store may be used by several threads; what `query` gives belongs to the caller.
    """

    @property
    def can(self) -> Can:
        """Tell what the engine can do."""

    def load(self, run_id: int, files: Mapping[str, Sequence[Path]]) -> None:
        """Load a whole run that is not there yet, from Parquet files by table name.

        A load that fails may leave a part of the run behind, which `drop` removes.
        """

    def append(
        self, run_id: int, tables: Mapping[str, pa.Table], *, skip_lost: bool = False
    ) -> None:
        """Add the rows that are not there yet; all of them or none.

        With `skip_lost`, relations whose ends are not there are passed over, not refused.
        """

    def update(self, label: str, table: pa.Table) -> None:
        """Set the given columns of the nodes whose `id` is there; other ids are passed over."""

    def remove(self, label: str, ids: Sequence[int]) -> None:
        """Remove these nodes with their relations; ids that are not there are passed over."""

    def drop(self, run_id: int) -> None:
        """Remove a run with all its relations; a run that is not there is no error."""

    def runs(self) -> list[int]:
        """Give the ids of the runs that are there, ascending."""

    def counts(self) -> dict[str, int]:
        """Give the number of rows of every table of the schema."""

    def query(self, text: str, params: Mapping[str, object] | None = None) -> pa.Table:
        """Answer one reading statement; every `$name` in it must be given, and nothing else."""

    def close(self) -> None:
        """Let go of the files. Closing twice is no error; any other use after it is."""

    def __enter__(self) -> Self:
        """Give the store."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
