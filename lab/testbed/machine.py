"""What this machine has for the testbed, what is missing, and how to get it."""

import ctypes
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from teller.errors import BadUsage
from teller.lab.collect import build
from teller.lab.testbed.faults import Need

PACKAGES: Final = ("gcc", "libc6-dev", "iproute2", "iptables", "libnetfilter-queue-dev")
EXTRA: Final = "testbed"
_SOURCE: Final = Path(__file__).with_name("native") / "delay_line.c"
_LIBC: Final = ctypes.CDLL(None)  # before any fork: a child of threads must not load anything
_PARENT_ENDS: Final = 1  # PR_SET_PDEATHSIG
_SYSTEM: Final = "/usr/sbin:/sbin"  # an ordinary user's PATH leaves these out


def run(*words: object, check: bool = True) -> str:
    """Run a tool of the system and give what it prints; where it fails, say what it said."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, env=environment()
    )
    if check and done.returncode:
        raise BadUsage(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def environment() -> dict[str, str]:
    """Give the environment in which the system's tools are found."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{_SYSTEM}"}


def found(tool: str) -> bool:
    """Tell whether a tool is installed."""
    return shutil.which(tool, path=environment()["PATH"]) is not None


@cache
def there() -> tuple[Need, ...]:
    """Give what the machine has of all that faults may need."""
    have: list[Need] = []
    if found("ip") and found("tc") and _may_make_namespaces():
        have.append("namespaces")
    if found("iptables-legacy"):
        have.append("iptables")
    if delay_line().exists():
        have.append("delay line")
    return tuple(have)


def has_torch() -> bool:
    """Tell whether the service can run at all, and be annotated."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "nvtx"))


def has_real_time() -> bool:
    """Tell whether processes may be given a real-time priority."""
    return found("chrt") and _works("chrt", "-f", "1", "true")


def end_with_parent() -> None:
    """Have the kernel end this process when its parent ends, however that comes."""
    _LIBC.prctl(_PARENT_ENDS, signal.SIGKILL, 0, 0, 0)


def delay_line() -> Path:
    """Give where the built delay line lies, whether it is built or not."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "teller" / f"delay_line-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]}"


def set_up() -> list[str]:
    """Install and build what can be; give a line for each thing that is still missing."""
    lacking = [name for name in PACKAGES if not _installed(name)]
    left = []
    if lacking and found("apt-get") and os.geteuid() == 0:
        quiet = ("-qq", "-o", "Dpkg::Use-Pty=0")
        run("apt-get", *quiet, "update")
        run("apt-get", *quiet, "install", "-y", "--no-install-recommends", *lacking)
    elif lacking:
        left.append(f"as root: apt-get install {' '.join(lacking)}")
    if not has_torch():
        left.append(f"torch and nvtx: {sys.executable} -m pip install 'teller-rca[{EXTRA}]'")
    if reason := build.why_not():
        left.append(reason)
    else:
        build.recorder()
    there.cache_clear()
    if not delay_line().exists():
        left += _build(delay_line(), [str(_SOURCE), "-lnetfilter_queue"])
    if "namespaces" not in there():
        left.append(
            "no right to make network namespaces: run as root, or under "
            "unshare -Urnm sh -c 'mount -t tmpfs none /run && teller testbed ...'"
        )
    return left


def _build(target: Path, words: Sequence[str]) -> list[str]:
    compiler = build.compiler()
    if compiler is None:
        return ["no C compiler: net_delay needs one"]
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_suffix(f".{os.getpid()}")
    try:
        run(compiler, "-O2", "-o", made, *words)
    except BadUsage as error:
        return [str(error).splitlines()[0]]
    made.rename(target)
    return []


def _installed(package: str) -> bool:
    return _works("dpkg", "-s", package)


def _may_make_namespaces() -> bool:
    name = f"teller-try-{os.getpid()}"
    if not _works("ip", "netns", "add", name):
        return False
    return _works("ip", "netns", "del", name)


def _works(*words: str) -> bool:
    try:
        done = subprocess.run(words, capture_output=True, env=environment())
    except OSError:
        return False
    return done.returncode == 0
