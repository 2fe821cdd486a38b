"""What a watch has read and told, so that one that was cut off says nothing twice.

It is kept in the workspace, for each folder and store. The archive stays the truth: without this
file, all is looked at again, nothing is stored twice, and findings are told once more.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from teller.graph.durable import write_whole
from teller.graph.finding import Finding, Quality
from teller.ingest.glance import Mark

VERSION: Final = 1


class Said(msgspec.Struct, frozen=True):
    """A finding as it was told."""

    severity: str
    title: str
    klass: str

    def to_json(self) -> dict[str, str]:
        """Give it as a finding is given, as far as it is known."""
        return {"class": self.klass, "severity": self.severity, "title": self.title}


class _State(msgspec.Struct):
    version: int = VERSION
    read: dict[str, Mark] = {}  # by name, as it stood when it was read
    findings: dict[str, dict[str, Said]] = {}  # by run
    problems: dict[str, list[tuple[str, str]]] = {}  # by file: place, what


class Change(msgspec.Struct, frozen=True):
    """What is to be told of a finding: that it is new, changed or gone."""

    kind: str  # new, changed, cleared
    said: Said
    finding: Finding | None = None


class Told:
    """The journal of a watch."""

    def __init__(self, folder: Path, key: str) -> None:
        """Read what was told; `key` names folder and store. What cannot be read counts as none."""
        self._path = folder / f"{blake2b(key.encode(), digest_size=8).hexdigest()}.json"
        self._state = _State()
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=_State)
            if found.version == VERSION:
                self._state = found
        except (OSError, msgspec.DecodeError):
            pass

    @property
    def read(self) -> dict[str, Mark]:
        """Give the files that were read, as they stood then."""
        return self._state.read

    @property
    def runs(self) -> set[int]:
        """Give the runs that were told of."""
        return {int(run) for run in self._state.findings}

    def save(self) -> None:
        """Keep it, whole or not at all."""
        write_whole(self._path, msgspec.json.encode(self._state))

    def forget(self, names: Iterable[str]) -> None:
        """Forget files that are gone."""
        for name in names:
            self._state.read.pop(name, None)
            self._state.problems.pop(name, None)

    def problems(self, found: Sequence[Quality], anew: Iterable[str]) -> list[Quality]:
        """Give the remarks that were not told; files read `anew` have those that they have now."""
        known = self._state.problems
        before = {name: known.pop(name, []) for name in anew}
        fresh = []
        for one in found:
            key = (one.where, one.what)
            told = known.setdefault(one.file, [])
            if key not in told:
                told.append(key)
                if key not in before.get(one.file, []):
                    fresh.append(one)
        return fresh

    def changes(self, run: int, findings: Sequence[Finding]) -> list[Change]:
        """Give what is new of a run, in order; how much it costs may change without a word."""
        before = self._state.findings.get(str(run), {})
        now = dict(_named(findings))
        self._state.findings[str(run)] = {key: _said(f) for key, f in now.items()}
        fresh = [Change("new", _said(f), f) for key, f in now.items() if key not in before]
        changed = [
            Change("changed", _said(f), f)
            for key, f in now.items()
            if key in before and before[key].severity != f.severity
        ]
        gone = [Change("cleared", said) for key, said in before.items() if key not in now]
        return fresh + changed + gone


def _named(findings: Sequence[Finding]) -> Iterator[tuple[str, Finding]]:
    """Name findings by class and culprit, several of one name by their order in time.

    An id holds the first step, which moves while a run is still recorded.
    """
    count = Counter[str]()
    order = sorted(findings, key=lambda f: (f.first_step or 0, f.start_ns or 0, f.id))
    name = {}
    for one in order:
        key = f"{one.klass}|{msgspec.json.encode(one.culprit).decode()}"
        name[one.id] = f"{key}|{count[key]}"
        count[key] += 1
    return ((name[f.id], f) for f in findings)


def _said(finding: Finding) -> Said:
    return Said(finding.severity, finding.title, finding.klass)
