"""What an analyst's query may take, and what it gives."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from teller.errors import BadUsage

if TYPE_CHECKING:
    import pyarrow as pa

ROWS: Final = 10_000
TIME_S: Final = 60.0
MEMORY_BYTES: Final = 2 << 30
ANSWER_BYTES: Final = 64 << 20  # one row may hold a list of everything
WHOLE_BYTES: Final = 1 << 30  # where all rows are asked for, to be written to a file


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may take: rows given (0: all), seconds, and bytes of memory."""

    rows: int = ROWS
    time_s: float = TIME_S
    memory_bytes: int = MEMORY_BYTES
    answer_bytes: int | None = None  # None: by the rows

    def __post_init__(self) -> None:
        """Refuse what would be no limit, or let nothing through."""
        if self.rows < 0:
            raise BadUsage(f"{self.rows} rows: give a number from 1, or 0 for all")
        if not 0 < self.time_s <= 86_400:  # neither is a number that is none
            raise BadUsage(f"{self.time_s:g} seconds: give more than 0, and a day at most")
        if self.memory_bytes < 1 << 28:
            raise BadUsage(f"{self.memory_bytes} bytes: a query needs 256 MiB to run in")

    @property
    def most_bytes(self) -> int:
        """Give the most that an answer may hold."""
        if self.answer_bytes is not None:
            return self.answer_bytes
        return ANSWER_BYTES if self.rows else min(WHOLE_BYTES, self.memory_bytes // 2)


@dataclass(frozen=True, slots=True)
class Found:
    """What an engine gave: rows, and whether there are more."""

    table: "pa.Table"
    truncated: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its rows, whether there are more, how long it took, and what is to be said."""

    table: "pa.Table"
    truncated: bool
    seconds: float
    notices: tuple[str, ...] = ()


def too_large(limit_bytes: int) -> str:
    """Say that an answer is larger than it may be."""
    return (
        f"the answer is larger than {limit_bytes / (1 << 20):g} MiB: ask for fewer rows or "
        "columns, or count them in the query"
    )
