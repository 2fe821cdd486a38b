"""The processes that analysts' queries run in, seen from outside: kept warm, ended when late.

What loads slowly is imported where it is used: a command starts the process first, and loads the
same beside it.
"""

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, Final, cast

from teller.errors import BadUsage, QueryRefused, TellerError
from teller.graph.answer import Found, Limits, too_large
from teller.graph.frames import read_frame, write_frame

MOST: Final = 2  # queries at a time; others wait for their turn
THREADS: Final = 2
START_S: Final = 60.0  # a busy machine takes its time
GRACE_S: Final = 1.0  # the engine ends a query by itself; some of its loops never look
PARAMETER_BYTES: Final = 16 << 20

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from teller.graph.guard_child import main; main()"
)
_KEPT: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "PATH")
_MEMORY_WORDS: Final = ("bad_alloc", "Buffer manager", "malloc", "MemoryError")


class _LateError(Exception):
    """Nothing came in time."""


class _LostError(Exception):
    """The process has ended."""


class Child:
    """One process, which has one graph file open once it is told which."""

    def __init__(self) -> None:
        """Start it; it is not waited for."""
        self.opened: tuple[Path, int] | None = None
        self.is_spent = False  # it is late, or full, or gone
        self._home = Path(
            tempfile.mkdtemp(prefix="teller-query-")
        )  # it removes it, and stays there
        kept = {n: os.environ[n] for n in _KEPT if n in os.environ}
        where = json.dumps([os.path.abspath(p) for p in sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM, where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._home,
            # two arenas, and no pool that reserves addresses: these are limited
            env=kept | {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"},
            start_new_session=True,  # an interrupt from the keyboard is for this process
        )
        self._in = cast(BinaryIO, self._process.stdin)
        self._out = cast(BinaryIO, self._process.stdout)
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def open(self, path: Path, memory_bytes: int) -> None:
        """Have it open a published graph, with that much memory for queries."""
        from teller.graph.embedded import DEEPEST, MOST_BYTES, POOL_BYTES
        from teller.graph.engine_words import translated
        from teller.graph.store import StoreUnreadable

        pool = min(memory_bytes // 2, POOL_BYTES)
        deadline = monotonic() + START_S
        try:
            self._said(deadline)
            request = _request({}, path=str(path), pool=pool, threads=THREADS, address=MOST_BYTES,
                               deepest=DEEPEST, memory=memory_bytes - pool)  # fmt: skip
            self._send(request)
            said = self._said(deadline)
        except (_LateError, _LostError) as err:
            raise StoreUnreadable(f"{path}: the process that queries run in did not start") from err
        if said["state"] != "open":
            raise translated(said["error"], 0, str(path))
        self.opened = path, memory_bytes

    def ask(self, text: str, params: Mapping[str, object], limits: Limits) -> Found:
        """Give the answer, and whether there are more rows."""
        import pyarrow as pa

        request = _request(params, text=text, time_s=limits.time_s, rows=limits.rows,
                           bytes=limits.most_bytes)  # fmt: skip
        deadline = monotonic() + limits.time_s + GRACE_S
        try:
            self._send(request)
            said = self._said(deadline)
            if said["state"] == "ok":
                parts = iter(lambda: self._frame(deadline), b"")
                return Found(pa.ipc.open_stream(b"".join(parts)).read_all(), said["truncated"])
        except _LateError as err:
            self.is_spent = True
            raise QueryRefused(_late(limits)) from err
        except _LostError as err:
            self.is_spent = True
            raise QueryRefused(self._ended(limits)) from err
        if any(word in said.get("error", "") for word in _MEMORY_WORDS):
            self.is_spent = True
            raise QueryRefused(_full(limits))
        raise _refusal(said, params, limits)

    @property
    def pid(self) -> int:
        """Give the number of the process."""
        return self._process.pid

    def is_fit(self) -> bool:
        """Tell whether it may be asked again."""
        return not self.is_spent and self._process.poll() is None

    def close(self) -> None:
        """End it, whatever it does."""
        with suppress(OSError):  # it has ended already
            self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._in, self._out):
            with suppress(OSError):  # what it was to flush has no reader
                pipe.close()
        with suppress(OSError):  # it removes its folder itself
            self._home.rmdir()

    def _listen(self) -> None:
        frame: bytes | None = b""
        while frame is not None:
            with suppress(OSError, ValueError):  # the pipe was closed
                frame = read_frame(self._out)
                self._frames.put(frame)
                continue
            frame = None
            self._frames.put(None)

    def _send(self, data: bytes) -> None:
        try:
            write_frame(self._in, data)
        except OSError as err:
            raise _LostError from err

    def _said(self, deadline: float) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._frame(deadline))
        return said

    def _frame(self, deadline: float) -> bytes:
        try:
            frame = self._frames.get(timeout=max(0.0, deadline - monotonic()))
        except queue.Empty as err:
            raise _LateError from err
        if frame is None:
            raise _LostError
        return frame

    def _ended(self, limits: Limits) -> str:
        code = self._process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return (
            f"the query ended the process that it ran in ({how}); it may need more memory than "
            f"{limits.memory_bytes >> 20} MiB, so narrow it; the next query gets another process"
        )


class Guard:
    """Some processes for queries: one that is idle is taken, and one that broke is replaced."""

    def __init__(self, most: int = MOST) -> None:
        """Start none yet."""
        self._turn = threading.BoundedSemaphore(most)
        self._idle: list[Child] = []
        self._changing = threading.Lock()

    @property
    def idle(self) -> tuple[Child, ...]:
        """Give those that wait for a query."""
        with self._changing:
            return tuple(self._idle)

    def warm(self) -> None:
        """Start a process for the next query, and go on."""
        with self._changing:
            if not self._idle:
                self._idle.append(Child())

    def ask(self, path: Path, text: str, params: Mapping[str, object], limits: Limits) -> Found:
        """Give the answer of a published graph, and whether there are more rows."""
        with self._turn, self._taken(path, limits.memory_bytes) as child:
            return child.ask(text, params, limits)

    def close(self) -> None:
        """End the idle ones."""
        with self._changing:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()

    @contextmanager
    def _taken(self, path: Path, memory_bytes: int) -> Iterator[Child]:
        """Give a process with that file open; it is kept unless the query was too much for it."""
        child = self._fitting(path, memory_bytes)
        try:
            if child.opened is None:
                child.open(path, memory_bytes)
            yield child
        except TellerError:
            self._put_back(child)
            raise
        except BaseException:  # an interrupt from the keyboard, in the middle of an answer
            child.close()
            raise
        self._put_back(child)

    def _fitting(self, path: Path, memory_bytes: int) -> Child:
        """Give an idle one that has the file open, or none; all others are ended."""
        with self._changing:
            idle, self._idle = self._idle, []
            fit = [c for c in idle if c.is_fit() and c.opened in (None, (path, memory_bytes))]
            self._idle = fit[1:]
        for child in idle:
            if child not in fit:
                child.close()
        return fit[0] if fit else Child()

    def _put_back(self, child: Child) -> None:
        if child.opened is None or not child.is_fit():
            child.close()
            return
        with self._changing:
            self._idle.append(child)


GUARD: Final = Guard()
atexit.register(GUARD.close)


def _late(limits: Limits) -> str:
    return f"stopped after {limits.time_s:g} s; narrow the query, or give it more time"


def _full(limits: Limits) -> str:
    return f"the query needs more memory than {limits.memory_bytes >> 20} MiB; narrow it"


def _request(params: Mapping[str, object], **said: object) -> bytes:
    """Give a request with values, and refuse those that are no JSON, or too many."""
    for name, value in params.items():
        try:
            size = len(json.dumps(value))
        except (TypeError, ValueError, RecursionError) as err:
            raise BadUsage(f"the engine cannot take the value of ${name}: {err}") from err
        if size > PARAMETER_BYTES:
            raise BadUsage(
                f"the value of ${name} is longer than {PARAMETER_BYTES >> 20} MiB; give less"
            )
    return json.dumps(said | {"params": params}).encode()


def _refusal(said: Mapping[str, Any], params: Mapping[str, object], limits: Limits) -> TellerError:
    from teller.graph.engine_words import translated

    if said["state"] == "large":
        return QueryRefused(too_large(limits.most_bytes))
    names = ", ".join(f"${n}" for n in params)
    if "Unable to cast Python" in said["error"]:
        return BadUsage(
            f"the engine cannot take a value of {names}: numbers have 64 bits, and text is Unicode"
        )
    if "ANY type" in said["error"]:
        return BadUsage(f"the engine cannot tell what an empty list of {names} would hold")
    if said["state"] == "unsendable":
        return BadUsage(f"the engine cannot take a value of {names}: {said['error']}")
    return translated(said["error"], limits.time_s, "the graph")
