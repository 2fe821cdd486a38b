"""How many facts of one file are kept: those of huge logs grow with the file, memory does not.

Up to a number all are kept. Beyond it, of a figure's values in an interval the first, last, least
and greatest stay; the more there are, the longer the interval. The rest is counted.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.strings import Flags, Ints, ints
from teller.ingest.records import Learned

SECOND: Final = 1_000_000_000
ALL: Final = 200_000  # samples of a file: up to here all are kept
INTERVALS: Final = (  # up to so many samples kept, the interval
    (300_000, SECOND),
    (500_000, 10 * SECOND),
    (700_000, 60 * SECOND),
    (1_200_000, 600 * SECOND),
)
MOST: Final = {"joins": 2_000_000, "paths": 1_000_000, "members": 1_000_000, "requests": 600_000}
KINDS: Final = 64  # different texts of a name that tell kinds; more of them tell cases
WORDS: Final = ("name", "text", "host", "process", "comm", "op", "label", "dtype", "state", "shape",
                "group_name", "desc", "algo", "proto", "transport", "status")  # fmt: skip


@dataclass(slots=True)
class Bounds:
    """Gathers the facts of one file, as many as are kept."""

    parts: dict[str, list[pa.Table]] = field(default_factory=dict)
    kept: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, learned: Learned) -> None:
        """Take over facts of the next lines."""
        for one in fields(learned):
            table = getattr(learned, one.name)
            if not len(table):
                continue
            few = self._few(table) if one.name == "samples" else self._first(one.name, table)
            self.kept[one.name] += len(few)
            self.left_out[one.name] += len(table) - len(few)
            if len(few):
                self.parts.setdefault(one.name, []).append(_coded(few))

    def take(self, name: str) -> list[pa.Table]:
        """Give all parts of one of the tables of facts, and forget them."""
        return self.parts.pop(name, [])

    def _first(self, name: str, table: pa.Table) -> pa.Table:
        return table.slice(0, max(0, MOST[name] - self.kept[name]))

    def _few(self, table: pa.Table) -> pa.Table:
        had = self.kept["samples"]
        if had + len(table) <= ALL:
            return table
        interval = next((ns for most, ns in INTERVALS if had < most), None)
        if interval is None:
            return table.slice(0, 0)
        return table.filter(pa.array(_outer(_keys(table, interval), _numbers(table["value"]))))


def _keys(table: pa.Table, interval: int) -> Ints:
    """Give each row a number that it shares with those of its figure and interval."""
    untimed = pc.is_null(table["time_ns"])
    name = _codes(table["name"])
    # texts that tell kinds are figures of their own, as all are that have no time
    text = _codes(table["text"])
    text = np.where(_many(name, text) & ~_flags(untimed), 0, text)
    key = name
    time = pc.divide(pc.fill_null(table["time_ns"], -1), interval)
    for column in (table["process"], table["pid"], table["device_index"], time):
        key = _both(key, _codes(column))
    return _both(key, text)


def _many(name: Ints, text: Ints) -> Flags:
    """Tell which rows are of a name with many different texts."""
    pair = _both(name, text)
    name_of: Ints = np.empty(int(pair.max()) + 1, np.int64)
    name_of[pair] = name
    many: Flags = (np.bincount(name_of) > KINDS)[name]
    return many


def _both(a: Ints, b: Ints) -> Ints:
    """Give each pair of numbers a number."""
    return _codes(pa.chunked_array([pa.array(a * (int(b.max()) + 1) + b)]))


def _outer(key: Ints, value: Any) -> Flags:
    """Tell which rows are the first, last, least or greatest of their key."""
    keep: Flags = np.zeros(len(key), np.bool_)
    for order in (np.argsort(key, kind="stable"), np.lexsort((value, key))):
        ranked = key[order]
        change = np.flatnonzero(ranked[1:] != ranked[:-1])
        keep[order[np.append(0, change + 1)]] = True
        keep[order[np.append(change, len(order) - 1)]] = True
    return keep


def _numbers(column: pa.ChunkedArray) -> Any:
    return pc.fill_null(column, 0.0).to_numpy()


def _flags(column: pa.ChunkedArray) -> Flags:
    return np.asarray(column.to_numpy(), np.bool_)


def _codes(column: pa.ChunkedArray) -> Ints:
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    return ints(coded.indices)


def _coded(table: pa.Table) -> pa.Table:
    """Give the table with its words kept once each."""
    for at, name in enumerate(table.column_names):
        if name in WORDS:
            table = table.set_column(at, name, table[name].combine_chunks().dictionary_encode())
    return table
