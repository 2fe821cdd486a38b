"""A run folder that a visitor sends: written aside, then read by a process of its own."""

import os
import secrets
import shutil
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from teller.errors import BadUsage

FOLDER: Final = "uploads"
MOST_FILES: Final = 2_000
MOST_AT_ONCE: Final = 1  # the workspace has one writer
TOLD_BYTES: Final = 20_000


class Sent(Protocol):
    """A file that was sent, as Streamlit gives it."""

    name: str
    size: int

    def getbuffer(self) -> memoryview:
        """Give its bytes."""


@dataclass(slots=True)
class Job:
    """A folder that is being read: its process, and what that says."""

    name: str
    folder: Path
    log: Path
    process: "subprocess.Popen[bytes]"
    ended: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def state(self) -> str:
        """Give "running", "done" or "failed"; what was sent is removed once it is read."""
        with self.lock:
            if self.ended is None and (code := self.process.poll()) is not None:
                self.ended = code
                shutil.rmtree(self.folder, ignore_errors=True)
        if self.ended is None:
            return "running"
        return "done" if self.ended in (0, 1) else "failed"  # 1: read, and a fault was found

    def told(self) -> str:
        """Give the end of what the process said."""
        try:
            return self.log.read_bytes()[-TOLD_BYTES:].decode(errors="replace").replace("\r", "\n")
        except OSError:
            return ""


_JOBS: Final[list[Job]] = []


def jobs() -> list[Job]:
    """Give the jobs of this server, the latest first."""
    return _JOBS[::-1]


def write(sent: Iterable[Sent], workspace: Path, most_bytes: int) -> Path:
    """Write what was sent below the workspace, and give its folder, or raise `BadUsage`."""
    files = list(sent)
    total = sum(file.size for file in files)
    if not files:
        raise BadUsage("nothing was chosen; choose the folder of a run")
    if total > most_bytes or len(files) > MOST_FILES:
        raise BadUsage(
            f"{len(files):,} files of {total >> 20:,} MiB are too much: {MOST_FILES:,} files and "
            f"{most_bytes >> 20:,} MiB are taken; ingest the folder on the server"
        )
    folder = workspace / FOLDER / secrets.token_hex(8) / "run"
    try:
        for file in files:
            path = folder / place(file.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.getbuffer())
    except OSError as err:
        shutil.rmtree(folder.parent, ignore_errors=True)
        raise BadUsage(f"{folder} cannot be written ({err}); look at the server's disk") from err
    return folder


def place(name: str) -> Path:
    """Give the place of a file inside its folder; a name that leads out of it is refused."""
    parts = [
        part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".")
    ]
    odd = any(part == ".." or part.startswith("~") or "\0" in part or ":" in part for part in parts)
    if not parts or odd or len(name) > 500:
        raise BadUsage(f"{name[:80]!r} is no name for a file of a run; rename it")
    return Path(*parts)


def start(name: str, folder: Path, command: list[str]) -> Job:
    """Start the process that reads a folder; one runs at a time."""
    if sum(job.state() == "running" for job in _JOBS) >= MOST_AT_ONCE:
        shutil.rmtree(folder.parent, ignore_errors=True)
        raise BadUsage("another folder is being read; send this one again when that is done")
    log = folder.parent.with_suffix(".log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | {"NO_COLOR": "1"},
            start_new_session=True,
        )
    job = Job(name, folder.parent, log, process)
    _JOBS.append(job)
    return job
