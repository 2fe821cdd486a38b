"""Windows of Kineto from PyTorch processes that were not changed: the part of a small daemon.

A process that was started with KINETO_USE_DAEMON=1 registers at the abstract socket `dynolog` and
asks it every few seconds for something to do. The answer is a configuration: where to write, and
for how long. It works for processes of the same network namespace and user, and only while no
profiler of the program's own runs. The trace appears beside the given name, with the pid in it.
"""

import re
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from teller.errors import BadUsage

# The name of the socket in the abstract namespace; libkineto counts its closing NUL.
ADDRESS: Final = b"\0dynolog\0"
_HEAD: Final = struct.Struct("<Q32s")  # bytes of the body, and a word padded with NULs
_CONTEXT: Final = struct.Struct("<iiq")  # gpu, pid, job
_REQUEST: Final = struct.Struct("<iiq")  # kind of configuration, count of pids, job; then the pids
_COUNT: Final = struct.Struct("<i")
_ACTIVITIES: Final = 2
_MOST: Final = 1 << 16
_POLL_S: Final = 0.2
_LOOK: Final = 1 << 20  # bytes in which the first span stands
WARM_S: Final = 5  # libkineto refuses a window that begins sooner than this
AHEAD_S: Final = 14  # processes ask every five seconds or so, and then need to get ready
TRIES: Final = 3  # a window may come out empty although the process worked


@dataclass(slots=True)
class Seen:
    """What the processes did so far."""

    registered: set[int] = field(default_factory=set)  # pids
    told: dict[int, Path] = field(default_factory=dict)  # the file that each is to write


class Daemon:
    """The socket. Only one daemon can be on a machine (in a network namespace)."""

    def __init__(self, address: bytes = ADDRESS) -> None:
        """Take the socket; raises `BadUsage` where another daemon has it."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.bind(address)
        except OSError as err:
            self._socket.close()
            raise BadUsage(
                "the socket of dynolog is taken: a daemon runs here already; ask it instead "
                "(dyno gputrace), or stop it"
            ) from err
        self._socket.settimeout(_POLL_S)
        self.seen = Seen()

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    def serve(
        self, configuration: Callable[[int], tuple[str, Path] | None], until: Callable[[Seen], bool]
    ) -> Seen:
        """Answer until `until` says so; `configuration` gives what a pid is to do, once."""
        while not until(self.seen):
            try:
                message, _, _, sender = self._socket.recvmsg(_MOST)
            except TimeoutError:
                continue
            answer = self._answer(message, configuration)
            if answer is not None and sender:
                try:
                    self._socket.sendto(answer, sender)
                except OSError:
                    continue  # it has gone
        return self.seen

    def _answer(
        self, message: bytes, configuration: Callable[[int], tuple[str, Path] | None]
    ) -> bytes | None:
        """Give what to send back; None for what is not understood."""
        if len(message) < _HEAD.size:
            return None
        kind = _HEAD.unpack_from(message)[1].split(b"\0", 1)[0]
        body = message[_HEAD.size :]
        if kind == b"ctxt" and len(body) >= _CONTEXT.size:
            self.seen.registered.add(_CONTEXT.unpack_from(body)[1])
            return _packed(kind, _COUNT.pack(len(self.seen.registered)))
        if kind == b"req" and len(body) >= _REQUEST.size + _COUNT.size:
            wanted, count, _ = _REQUEST.unpack_from(body)
            pid = _COUNT.unpack_from(body, _REQUEST.size)[0] if count else 0
            self.seen.registered.add(pid)
            text = ""
            if wanted & _ACTIVITIES and pid not in self.seen.told and (said := configuration(pid)):
                text, self.seen.told[pid] = said
            return _packed(kind, text.encode())
        return None


def _packed(kind: bytes, body: bytes) -> bytes:
    return _HEAD.pack(len(body), kind) + body


def configuration(out: Path, seconds: float, pid: int, *, start_ms: int = 0) -> tuple[str, Path]:
    """Give what libkineto is told, and the file that it then writes.

    `start_ms` is a moment in ms since the epoch: the same for all processes puts their windows
    over each other. Kineto writes the pid into the name itself.
    """
    name = out / "kineto.json"
    lines = {
        "ACTIVITIES_LOG_FILE": name,
        "ACTIVITIES_DURATION_MSECS": max(int(seconds * 1000), 1),
        "ACTIVITIES_WARMUP_PERIOD_SECS": WARM_S,
        "PROFILE_START_TIME": start_ms,
        "PROFILE_REPORT_INPUT_SHAPES": "true",
        "PROFILE_WITH_STACK": "false",
    }
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    return text, name.with_name(f"{name.stem}_{pid}{name.suffix}")


def window(
    daemon: Daemon,
    out: Path,
    seconds: float,
    *,
    over: Callable[[], bool],
    ahead_s: float = AHEAD_S,
) -> Seen:
    """Ask all processes that register for one window, the same for all, and wait for their files.

    `ahead_s`: how far in the future it begins, since processes ask every few seconds only. It ends
    when all have written, or when `over` says so. Windows that came out empty are asked for again.
    """
    asked = _Asked(out, seconds, ahead_s)
    return daemon.serve(asked.configuration, lambda seen: asked.done(seen) or over())


@dataclass(slots=True)
class _Asked:
    """One window, or a few until all have something in it."""

    out: Path
    seconds: float
    ahead_s: float
    start_ms: int = 0
    tries: int = 0

    def configuration(self, pid: int) -> tuple[str, Path]:
        """Give what a process is to do; the first one to ask settles when."""
        if not self.start_ms:
            self.start_ms = int((time.time() + self.ahead_s) * 1000)
            self.tries += 1
        return configuration(self.out, self.seconds, pid, start_ms=self.start_ms)

    def done(self, seen: Seen) -> bool:
        """Tell whether all have written; those with empty windows are asked again."""
        last_ms = self.start_ms + (self.seconds + self.ahead_s) * 1000
        missing = [pid for pid, path in seen.told.items() if not _whole(path)]
        if not self.start_ms or (missing and time.time() * 1000 < last_ms):
            return False
        empty = [pid for pid, path in seen.told.items() if pid not in missing and _empty(path)]
        if not empty or self.tries >= TRIES:
            return True
        for pid in empty:
            seen.told.pop(pid).unlink()
        self.start_ms = 0
        return False


def _whole(path: Path) -> bool:
    """Tell whether a trace is there with its end: it is written over some time."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, 2) - 16, 0))
            return file.read().rstrip().endswith(b"}")
    except OSError:
        return False


def _empty(path: Path) -> bool:
    """Tell whether a trace holds no span at all."""
    with path.open("rb") as file:
        return not re.search(rb'"ph"\s*:\s*"X"', file.read(_LOOK))
