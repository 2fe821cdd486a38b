"""Where things are that the benchmark uses, and files that it makes for a while."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
SHARED: Final = Path(os.environ.get("TELLER_SHARED", ROOT.parent / "shared"))
TRACE: Final = SHARED / "traces/kineto/hta_nccl_metadata.json.gz"
EXPORT: Final = SHARED / "traces/nsys_sqlite/nsysai_mfu_2gpu_before.sqlite"
PAGE: Final = ROOT / "docs/benchmarks.md"
TELLER: Final = str(Path(sys.executable).with_name("teller"))


@contextmanager
def files(path: Path, script: list[str]) -> Iterator[None]:
    """Make files by a script in a process of its own; remove them at the end."""
    subprocess.run([sys.executable, *script], check=True)
    try:
        yield
    finally:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def traces(folder: Path, *flags: str) -> list[str]:
    """Give what makes traces in a folder."""
    return [str(HERE / "make_traces.py"), str(folder), "--seed-trace", str(TRACE), *flags]


def export(path: Path, rows: int) -> list[str]:
    """Give what makes an export of about so many rows."""
    seed = ["--seed-export", str(EXPORT)]
    return [str(HERE / "make_export.py"), str(path), *seed, "--rows", str(rows)]
