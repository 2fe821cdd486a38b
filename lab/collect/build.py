"""The recorder of `native/`, built on demand with the compiler of the machine, once per source."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from teller.errors import BadUsage

SOURCE: Final = Path(__file__).parent / "native"
_FLAGS: Final = (
    "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread",
    "-Wl,-z,nodelete",  # a thread of ours may outlive the last user of the library
)  # fmt: skip
_SECONDS: Final = 120


def compiler() -> str | None:
    """Give the C compiler: `CC`, else cc, gcc or clang; None where there is none."""
    asked = os.environ.get("CC", "").split()
    return next(
        (found for name in (*asked[:1], "cc", "gcc", "clang") if (found := shutil.which(name))),
        None,
    )


def why_not() -> str:
    """Say why the recorder cannot run here; empty where it can."""
    if platform.system() != "Linux":
        return f"the NVTX recorder needs Linux; this is {platform.system()}"
    if compiler() is None and not _target().exists():
        return (
            "the NVTX recorder is built with a C compiler, and there is none: "
            "apt-get install gcc libc6-dev (or name one with CC)"
        )
    return ""


def recorder() -> Path:
    """Give the library, built if it is not there yet.

    Raises `BadUsage` where it cannot be built, with what is missing.
    """
    target = _target()
    if target.exists():
        return target
    if reason := why_not():
        raise BadUsage(reason)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / target.name
        _compile(made)
        made.replace(target)  # another process may build at the same time: both give the same
    return target


def _compile(made: Path) -> None:
    command = [compiler() or "cc", *_FLAGS, *map(str, sorted(SOURCE.glob("*.c"))), "-o", str(made)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        raise BadUsage(f"the NVTX recorder cannot be built: {err}") from err
    if done.returncode:
        said = next(iter(done.stderr.strip().splitlines()), "no message")
        raise BadUsage(
            f"the NVTX recorder cannot be built: {said}; on Debian: apt-get install gcc libc6-dev"
        )


def _target() -> Path:
    """Give where the library of these sources lies."""
    sources = sorted(SOURCE.glob("*.[ch]"))
    mark = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    mark.update(" ".join((*_FLAGS, platform.machine())).encode())
    return _cache() / f"nvtx_recorder-{mark.hexdigest()[:16]}.so"


def _cache() -> Path:
    said = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(said) if said else Path.home() / ".cache") / "teller"
