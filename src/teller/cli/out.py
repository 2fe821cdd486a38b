"""Where output goes: results to stdout or a file, all else to stderr."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from teller.errors import BadUsage
from teller.ui.phrase import visible


def note(text: str, *, quiet: bool = False) -> None:
    """Tell people something beside the result."""
    if not quiet:
        sys.stderr.write(f"{visible(text)}\n")


@contextmanager
def destination(file: Path | None) -> Iterator[IO[str]]:
    """Give the file that is asked for, or stdout; a file appears whole or not at all."""
    if file is None:
        yield sys.stdout
        return
    with replacing(file) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as out:
        yield out


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Give a path beside `file` to write to, and put it in the file's place at the end."""
    scratch = file.with_name(f".{file.name}.partial")
    try:
        yield scratch
        scratch.replace(file)
    except OSError as err:
        raise BadUsage(f"cannot write {file}: {err.strerror or err}") from err
    finally:
        scratch.unlink(missing_ok=True)


def write(text: str, file: Path | None) -> None:
    """Write a result."""
    with destination(file) as out:
        out.write(text)


def as_json(said: Any) -> str:
    """Give JSON for people and programs; what is no number becomes null, as JSON has none."""
    return json.dumps(_finite(said), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_json_line(said: Any) -> str:
    """Give JSON on one line, for programs that read a stream."""
    return json.dumps(_finite(said), ensure_ascii=False, allow_nan=False) + "\n"


def _finite(said: Any) -> Any:
    if isinstance(said, float):
        return said if math.isfinite(said) else None
    if isinstance(said, Mapping):
        return {key: _finite(value) for key, value in said.items()}
    if isinstance(said, list | tuple):
        return [_finite(value) for value in said]
    return said
