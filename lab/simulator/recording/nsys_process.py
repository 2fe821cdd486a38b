"""Whose rows an nsys export holds: a process, its ids, and the texts that rows name by number."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from teller.lab.simulator.happened import Happened, Ints
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.seen import Seen, column

VM: Final = 1 << 48  # of the target in all ids


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table: columns that vary, and values that all rows share."""

    table: str
    varies: dict[str, Any]  # arrays of numpy or Arrow
    same: Mapping[str, int | str | None]


@dataclass(slots=True)
class Strings:
    """Texts by number, as `StringIds` holds them; each gets its number when it is first used."""

    ids: dict[str, int] = field(default_factory=dict)

    def of(self, text: str) -> int:
        """Give a text's number."""
        return self.ids.setdefault(text, len(self.ids) + 1)

    def column(self, names: tuple[str, ...], rows: Ints, shape: Callable[[str], str]) -> Ints:
        """Give the numbers of the names of rows, each in another shape."""
        table = np.zeros(len(names), np.int64)
        for name in np.unique(rows).tolist():
            table[name] = self.of(shape(names[name]))
        numbers: Ints = table[rows]
        return numbers


@dataclass(frozen=True, slots=True)
class Process:
    """One rank in one window."""

    happened: Happened
    recording: Recording
    seen: Seen
    strings: Strings
    base_ns: int  # what the export counts from

    @property
    def rank(self) -> int:
        """Give the rank."""
        return self.seen.rank

    @property
    def pid(self) -> int:
        """Give the pid of the worker."""
        return self.recording.pid(self.happened.scene, self.rank)

    @property
    def engine_pid(self) -> int:
        """Give the pid of the engine on the rank's host."""
        scene = self.happened.scene
        return self.recording.engine_pid(scene, scene.places[self.rank].host)

    @property
    def global_pid(self) -> int:
        """Give the id of the worker in the whole export."""
        return VM | self.pid << 24

    def threads(self, rows: Ints) -> Ints:
        """Give the global ids of the threads of host rows."""
        host = self.happened.host[self.rank]
        pid = np.where(column(host, "process", rows) > 0, self.engine_pid, self.pid)
        thread = column(host, "thread", rows)
        ids: Ints = VM | pid << 24 | (pid + np.where(thread > 0, 60 + thread, 0))
        return ids

    def own(self) -> dict[str, int | str | None]:
        """Give what all device rows of the process share."""
        device = self.happened.scene.places[self.rank].device
        return {"deviceId": device, "contextId": 1, "greenContextId": 0,
                "globalPid": self.global_pid}  # fmt: skip


def texts(names: tuple[str, ...], rows: Ints) -> pa.Array:
    """Give the names of rows as texts."""
    coded = pa.DictionaryArray.from_arrays(pa.array(rows.astype(np.int32)), pa.array(names))
    return coded.cast(pa.string())
