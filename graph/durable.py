"""Files that are there whole or not at all, also after a power cut."""

import os
import sys
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Put the content in the place of the file in one step."""
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    sync_folder(path.parent)


def move_whole(source: Path, target: Path) -> None:
    """Move a file or folder to its place in one step, after its content reached the disk."""
    for path in (source, *source.rglob("*")) if source.is_dir() else (source,):
        sync_folder(path) if path.is_dir() else _sync_file(path)
    os.rename(source, target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def sync_folder(folder: Path) -> None:
    """Bring names in the folder to the disk."""
    if sys.platform == "win32":  # there a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_file(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
