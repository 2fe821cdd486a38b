"""What a run folder says of itself in `manifest.json`: `teller.run/1`, as far as it is read."""

import msgspec


class ManifestRank(msgspec.Struct, frozen=True):
    """What a manifest says of a rank."""

    rank: int
    host: str = ""
    pid: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None


class ManifestFile(msgspec.Struct, frozen=True):
    """What a manifest says of a file."""

    path: str
    kind: str = ""
    rank: int | None = None
    host: str | None = None


class Engine(msgspec.Struct, frozen=True):
    """The engine of a manifest."""

    name: str = ""
    version: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """A `teller.run/1` manifest; what is not needed is not read."""

    schema: str
    run: str
    deployment: str = ""
    ranks: tuple[ManifestRank, ...] = ()
    engine: Engine = Engine()
    files: tuple[ManifestFile, ...] = ()
    folder: str = ""  # where it was found, not in the file

    def names(self, name: str) -> bool:
        """Tell whether it lists this file."""
        return self._file(name) is not None

    def rank_of(self, name: str) -> int | None:
        """Give the rank of a file, None where it does not say."""
        file = self._file(name)
        return file.rank if file else None

    def host_of(self, name: str) -> str:
        """Give the host of a file, by itself or by its rank; "" where it does not say."""
        file = self._file(name)
        if file is None:
            return ""
        of_rank = next((r.host for r in self.ranks if r.rank == file.rank), "")
        return file.host or of_rank

    def rank_with(self, name: str, host: str, pid: int | None) -> int | None:
        """Give the rank of a process of a file by its host and pid; None where it does not say."""
        if pid is None or self._file(name) is None:
            return None
        found = [r.rank for r in self.ranks if r.pid == pid and host in ("", r.host)]
        return found[0] if len(found) == 1 else None

    def places_of(self, name: str, rank: int) -> dict[str, int]:
        """Give a rank's place in each kind of parallelism, where the manifest of a file says it."""
        if self._file(name) is None:
            return {}
        told = next((r for r in self.ranks if r.rank == rank), ManifestRank(rank))
        said = {"tp": told.tp, "pp": told.pp, "dp": told.dp, "ep": told.ep}
        return {kind: at for kind, at in said.items() if at is not None and at >= 0}

    def _file(self, name: str) -> ManifestFile | None:
        return next((f for f in self.files if name == f"{self.folder}{f.path}"), None)
