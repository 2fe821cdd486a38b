"""Makes a run folder small: every file is packed, and the manifest says so. Readers take both."""

import shutil
from pathlib import Path

import msgspec
from isal import igzip

from teller.lab.manifest import NAME, read_manifest, write_manifest


def compact(folder: Path) -> int:
    """Pack all files of a run folder that are not packed yet; give its size in bytes then.

    The same contents give the same bytes: neither time nor name is in them.
    """
    manifest = read_manifest(folder)
    renamed = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != NAME):
        if path.suffix != ".gz":
            name = str(path.relative_to(folder))
            renamed[name] = f"{name}.gz"
            _pack(path)
    files = tuple(
        msgspec.structs.replace(f, path=renamed.get(f.path, f.path)) for f in manifest.files
    )
    write_manifest(msgspec.structs.replace(manifest, files=files), folder)
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def _pack(path: Path) -> None:
    packed = path.with_name(f"{path.name}.gz")
    with (
        path.open("rb") as plain,
        packed.open("wb") as raw,
        igzip.IGzipFile("", "wb", 3, raw, 0) as file,  # type: ignore[no-untyped-call] # has no types
    ):
        shutil.copyfileobj(plain, file)
    path.unlink()
