"""Which lines of a long log are kept, and how many there were of those that are not."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.strings import Flags, flags, ints, order_in_group

ALL_LINES: Final = 200_000  # up to here everything is kept
ALL_BYTES: Final = 1 << 26
MANY_LINES: Final = 400_000  # from here on a block keeps a tenth
OF_TEMPLATE: Final = 200  # lines a template and block after that
UNDERSTOOD: Final = 2000
GRAVE_LINES: Final = 4000
GRAVE: Final = pa.array(["warning", "error", "fatal"])
SECOND: Final = 1_000_000_000


@dataclass(slots=True)
class Thinning:
    """Thins the lines of one file block by block."""

    kept: int = 0
    left_out: int = 0
    _bytes: int = 0
    _counts: list[pa.Table] = field(default_factory=list)

    def thin(self, lines: pa.Table) -> pa.Table:
        """Give the lines of a block that are kept."""
        self._count(lines)
        free = self._free(lines)
        if free == len(lines):
            self.kept += free
            return lines
        keep: Flags = np.ones(len(lines), np.bool_)
        keep[free:] = self._chosen(lines.slice(free))
        self.kept += int(keep.sum())
        self.left_out += int((~keep).sum())
        return lines.filter(pa.array(keep))

    def _free(self, lines: pa.Table) -> int:
        """Give how many lines at the beginning are kept whatever they are."""
        if self.left_out:
            return 0
        sizes = self._bytes + np.cumsum(ints(pc.binary_length(lines["text"])))
        free = int(np.searchsorted(sizes, ALL_BYTES, "right"))
        self._bytes = int(sizes[-1]) if len(sizes) else self._bytes
        return max(0, min(free, ALL_LINES - self.kept))

    def per_second(self) -> pa.Table:
        """Give the number of messages a process and second: `process`, `time_ns`, `messages`."""
        every = pa.concat_tables(self._counts)
        grouped = every.group_by(["process", "time_ns"], use_threads=False)
        summed = grouped.aggregate([("messages", "sum")])
        return summed.rename_columns({"messages_sum": "messages"})

    def _chosen(self, lines: pa.Table) -> Flags:
        part = 1 if self.kept < MANY_LINES else 10
        number = order_in_group(ints(lines["template"]))
        grave = flags(pc.is_in(lines["level"], GRAVE))
        keep = number < OF_TEMPLATE // part
        keep |= flags(lines["understood"]) & (number < UNDERSTOOD // part)
        keep |= grave & (np.cumsum(grave) <= GRAVE_LINES // part)
        return keep

    def _count(self, lines: pa.Table) -> None:
        second = pc.multiply(pc.divide(lines["time_ns"], SECOND), SECOND)
        timed = pa.table({"process": lines["process"], "time_ns": second}).drop_null()
        grouped = timed.group_by(["process", "time_ns"], use_threads=False)
        counts = grouped.aggregate([([], "count_all")]).rename_columns({"count_all": "messages"})
        at = counts.schema.get_field_index("process")
        words = counts["process"].cast(pa.string())  # blocks have words of their own
        self._counts.append(counts.set_column(at, "process", words))
