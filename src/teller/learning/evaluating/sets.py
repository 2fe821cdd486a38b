"""The labelled sets that tables are made of, read when they are first asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np

from teller.errors import BadUsage, NothingUsable
from teller.ingest.run import Progress
from teller.lab.truth import truth_path
from teller.learning import corpus, making
from teller.learning.evaluating.columns import Truths
from teller.learning.evaluating.judging import Known, known, truths
from teller.models.samples.labelled import ABOUT, Labelled

ROLES = ("train", "validation", "test", "testbed")


@dataclass(frozen=True)
class Set:
    """One set: runs with labels, causes and places; `raw` are run folders where they are there."""

    name: str
    runs: tuple[Labelled, ...]
    known: tuple[Known, ...]
    raw: Mapping[str, Path]
    digest: str  # of all that figures rest on

    @cached_property
    def truth(self) -> Truths:
        """Give what is right, of all iterations."""
        return truths(self.known)


class Sets:
    """The sets that were given, by role."""

    def __init__(
        self,
        given: Mapping[str, Sequence[Path]],
        cache: Path,
        told: Progress,
        say: Callable[[str], None],
    ) -> None:
        """Keep where they are: folders of labelled runs, or what `corpus.keep` left of them."""
        self._given = {role: tuple(paths) for role, paths in given.items() if paths}
        self._cache, self._told, self._say = cache, told, say
        self._open: dict[str, Set] = {}

    def __contains__(self, role: str) -> bool:
        """Tell whether a set was given."""
        return role in self._given

    def __getitem__(self, role: str) -> Set:
        """Give a set; raises `NothingUsable` where it has no labelled run."""
        if role not in self._open:
            self._open[role] = self._read(role)
            self._apart()
        return self._open[role]

    def _read(self, role: str) -> Set:
        found: list[Labelled] = []
        places: list[Known] = []
        raw: dict[str, Path] = {}
        hashed = blake2b(digest_size=16)
        for folder in self._given[role]:
            kept = folder if any(folder.glob(f"*/{ABOUT}")) else self._cache / role
            if kept == folder:
                runs = list(corpus.kept(kept))
            else:
                runs = making.runs_of([folder], kept, self._told, self._say)
                raw |= {p.parent.name: p.parent for p in folder.rglob("manifest.json")}
            for one in runs:
                hashed.update(digest(one, kept))
            found += runs
            places += [known(one, kept) for one in runs]
        if not found:
            raise NothingUsable(f"{', '.join(map(str, self._given[role]))}: no labelled run")
        return Set(role, tuple(found), tuple(places), raw, hashed.hexdigest())

    def _apart(self) -> None:
        """Refuse what is judged on runs whose relatives were learnt from."""
        for role, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
            if role in self._open and other in self._open:
                try:
                    making.apart(self._open[role].runs, self._open[other].runs)
                except BadUsage as err:
                    raise BadUsage(f"{role} and {other}: {err}") from err


def digest(one: Labelled, folder: Path) -> bytes:
    """Give the hash of all that is known of a run."""
    hashed = blake2b(one.about.run.encode(), digest_size=16)
    truth = truth_path(folder / one.about.run)
    hashed.update(truth.read_bytes())
    for held in (one.samples, one.labels):
        for field in fields(held):
            hashed.update(np.ascontiguousarray(getattr(held, field.name)).tobytes())
    return hashed.digest()
