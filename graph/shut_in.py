"""What a process of queries gives up: memory beyond a limit, and all ways to write a file."""

import contextlib
import ctypes
import os
import platform
import sys
from typing import Final

MOST_FILES: Final = 64

# the kernel's Landlock, by its own header; the numbers are those of all Linux architectures
_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_WRITING: Final = 1 << 1 | sum(1 << bit for bit in range(4, 13))  # write, remove, make
_TRUNCATE: Final = 1 << 14


def shut_in() -> None:
    """Take away what a query needs for no answer: files to write, and a place for them."""
    with contextlib.suppress(OSError):  # some systems keep a folder that is in use
        os.rmdir(os.getcwd())  # in a folder that is gone nobody makes a file, root included
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))
    if kernel_keeps_files():
        _write_nothing()


def kernel_keeps_files() -> bool:
    """Tell whether the kernel can keep a process from writing any file."""
    return _version() >= 1


def limit_memory(more_bytes: int) -> None:
    """Limit the address space to what there is and that much more.

    The engine has its pool's addresses reserved by then, so that they do not count.
    """
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm", "rb") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _version() -> int:
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return 0
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION))


def _write_nothing() -> None:
    """Let this thread, and those that it starts, write, make and remove no file."""
    libc = ctypes.CDLL(None)
    rights = ctypes.c_uint64(_WRITING | (_TRUNCATE if _version() >= 3 else 0))
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(rights), ctypes.sizeof(rights), 0)
    if rules < 0:
        return
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libc.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)
