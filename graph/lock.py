"""One writer for a folder: the lock goes with the process, however that ends."""

import os
import sys
from pathlib import Path

from teller.errors import StoreBusy

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FAR = 1 << 30  # Windows locks bytes, and locked ones cannot be read: not those of the pid


class WriterLock:
    """The right to write in a folder; held from the making of the object to `release`."""

    def __init__(
        self,
        path: Path,
        what: str,
        *,
        doing: str = "being written",
        remedy: str = "wait until it is done",
    ) -> None:
        """Take the lock, or say which process has it."""
        self._handle: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _take(self._handle)
        except OSError as err:
            owner = path.read_text(errors="replace").strip()
            os.close(self._handle)
            who = f"process {owner}" if owner else "another process"
            raise StoreBusy(f"{what} is {doing} by {who}; {remedy}") from err
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others write. Releasing twice is no error."""
        if self._handle is not None:
            _give(self._handle)  # closing alone leaves it with a forked child
            os.close(self._handle)
            self._handle = None


def _take(handle: int) -> None:
    if sys.platform == "win32":
        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _give(handle: int) -> None:
    if sys.platform == "win32":
        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_UN)
