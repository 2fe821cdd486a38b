"""Communication calls of one rank, kept in memory while it runs."""

import time
from array import array
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

COLUMNS: Final = ("start_ns", "end_ns", "op", "group", "seq", "peer", "size_bytes")
NOBODY: Final = -1


class Calls:
    """Rows are integers in one array, so that the garbage collector never looks at them."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._names: dict[str, int] = {}
        self.group_ranks: dict[str, list[int]] = {}

    def add(self, start_ns: int, op: str, group: str, seq: int, peer: int, size: int) -> None:
        """Write down a call that began at `start_ns` (UTC) and ends now."""
        end_ns = time.time_ns()
        self._rows.extend((start_ns, end_ns, self._no(op), self._no(group), seq, peer, size))

    def save(self, place: Path, about: dict[str, Any]) -> None:
        """Write all to two files: `place`.npz and `place`.json."""
        rows = np.frombuffer(self._rows, np.int64).reshape(-1, len(COLUMNS))
        np.savez(place.with_suffix(".npz"), calls=rows)
        told = {"names": list(self._names), "groups": self.group_ranks, **about}
        place.with_suffix(".json").write_bytes(msgspec.json.encode(told))

    def _no(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))
