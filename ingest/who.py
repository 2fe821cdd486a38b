"""Who is who: the rank and host of each source, by the most trustworthy word there is.

Rank: the user's regex, a manifest, the file's header, process environment or names inside, the
file's name, then device order. Host: the user's regex, a manifest, the header, then a file-name
prefix that repeats.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final, Protocol

from teller.errors import BadUsage
from teller.ingest.plausible import MOST_RANKS
from teller.ingest.records import Records, hosts_of
from teller.ingest.source import Facts

RANK_IN_NAME: Final = re.compile(
    r"(?:rank|proc|worker|_dump|report)[\[\-_./]?(?P<rank>\d{1,6})(?!\d)", re.IGNORECASE
)
HOST_IN_NAME: Final = re.compile(r"^(?P<host>[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9])[_.]")
HOSTLIKE: Final = re.compile(r"(node|host)[-\d]", re.IGNORECASE)
# dp0_pp1_tp3_dcp0_ep3_rank7.pt.trace.json.gz of vLLM, 1712345-TP-3-DP-0.trace.json.gz of SGLang
PLACE_IN_NAME: Final = re.compile(r"(?<![a-z])(tp|pp|dp|ep)-?(\d{1,4})(?=[-_.])", re.IGNORECASE)
UNKNOWN_HOST: Final = "unknown"
RANK_REGEX: Final = "--rank-regex"


@dataclass(frozen=True, slots=True)
class Identity:
    """The rank and host of a source, and where each was found."""

    rank: int
    rank_source: str
    host: str
    host_source: str


@dataclass(frozen=True, slots=True)
class Told:
    """What the user says: regexes with a group `rank` or `host`."""

    rank_regex: str = ""
    host_regex: str = ""

    def __post_init__(self) -> None:
        """Refuse a regex that cannot name anything."""
        _check(self.rank_regex, "rank", r"--rank-regex 'worker(?P<rank>\d+)'")
        _check(self.host_regex, "host", r"--host-regex '(?P<host>[^/]+)/'")

    def rank_of(self, path: str) -> int | None:
        """Give the rank that the user's regex finds in a path; None where it finds none."""
        found = re.search(self.rank_regex, path) if self.rank_regex else None
        if not found:
            return None
        word = found["rank"] or ""
        if not word.isdecimal() or int(word[:9]) >= MOST_RANKS:
            raise BadUsage(f"--rank-regex finds {word!r} in {path}, which is no rank number")
        return int(word)

    def host_of(self, path: str) -> str:
        """Give the host that the user's regex finds in a path; "" where it finds none."""
        found = re.search(self.host_regex, path) if self.host_regex else None
        return (found["host"] or "") if found else ""


def _check(regex: str, group: str, example: str) -> None:
    try:
        known = re.compile(regex).groupindex
    except re.error as error:
        raise BadUsage(f"--{group}-regex {regex!r}: {error}; as in {example}") from error
    if regex and group not in known:
        raise BadUsage(f"--{group}-regex {regex!r} has no group {group!r}; as in {example}")


class Known(Protocol):
    """What identification needs of a source."""

    @property
    def facts(self) -> Facts:
        """What it says of itself."""

    @property
    def device_count(self) -> int:
        """How many rows ran on a device."""


class Spoken(Protocol):
    """A manifest's word on files."""

    def rank_of(self, name: str) -> int | None:
        """Give the rank of a file, None where it does not say."""

    def host_of(self, name: str) -> str:
        """Give the host of a file, "" where it does not say."""

    def rank_with(self, name: str, host: str, pid: int | None) -> int | None:
        """Give the rank that this process of a file is, None where it does not say."""

    def places_of(self, name: str, rank: int) -> dict[str, int]:
        """Give a rank's place in each kind of parallelism, as far as it says."""


def identify(
    sources: Sequence[Known], told: Told, manifests: Sequence[Spoken] = ()
) -> list[Identity | None]:
    """Give each source its identity; None for a helper process beside the ranks of its file.

    Sources that nothing tells apart are counted by device.
    """
    facts = [s.facts for s in sources]
    hosts = _hosts(facts, told, manifests)
    processes = Counter(f.path for f in facts)  # a file of one: its name speaks for it
    ranks = [
        _rank(f, host, told, manifests, alone=processes[f.path] == 1)
        for f, (host, _) in zip(facts, hosts, strict=True)
    ]
    ranked_files = {f.path for f, (rank, _) in zip(facts, ranks, strict=True) if rank is not None}
    used = {rank for rank, _ in ranks if rank is not None}
    helpers = {
        i
        for i, (rank, _) in enumerate(ranks)
        if rank is None and facts[i].path in ranked_files and not sources[i].device_count
    }
    unranked = [i for i, (rank, _) in enumerate(ranks) if rank is None and i not in helpers]
    unranked.sort(
        key=lambda i: (hosts[i][0], facts[i].device_index or 0, facts[i].path, facts[i].pid or 0)
    )
    free = (n for n in range(len(facts) + len(used)) if n not in used)
    for i in unranked:
        ranks[i] = (next(free), "only source" if len(facts) == 1 else "device order")
    return [
        None if rank is None else Identity(rank, source, *host)
        for (rank, source), host in zip(ranks, hosts, strict=True)
    ]


def with_places(fact: Facts, rank: int, manifests: Sequence[Spoken]) -> Facts:
    """Complete a source's own places (tp, pp, dp, ep) by its manifest's, else its file name's."""
    named = {k.lower(): int(n) for k, n in PLACE_IN_NAME.findall(PurePath(fact.path).name)}
    told = next((p for m in manifests if (p := m.places_of(fact.path, rank))), {})
    return replace(fact, places=named | told | dict(fact.places))


def _rank(
    fact: Facts, host: str, told: Told, manifests: Sequence[Spoken], *, alone: bool
) -> tuple[int | None, str]:
    given = told.rank_of(fact.path)
    if given is not None:
        return given, RANK_REGEX
    said = next((r for m in manifests if (r := m.rank_of(fact.path)) is not None), None)
    if said is not None and alone and 0 <= said < MOST_RANKS:
        return said, "manifest"
    meant = (m.rank_with(fact.path, host, fact.pid) for m in manifests)
    process = next((r for r in meant if r is not None), None)
    if process is not None and not alone and 0 <= process < MOST_RANKS:
        return process, "manifest"
    if fact.rank is not None:
        return fact.rank, fact.rank_source or "header"
    if alone and (found := _last(RANK_IN_NAME, PurePath(fact.path).name)):
        return int(found["rank"]), "file name"
    return None, ""


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    matches = list(pattern.finditer(text))
    return matches[-1] if matches else None


def _hosts(
    facts: Sequence[Facts], told: Told, manifests: Sequence[Spoken]
) -> list[tuple[str, str]]:
    prefixes = _prefixes([f.path for f in facts])
    given = []
    for fact in facts:
        found = told.host_of(fact.path)
        said = next((h for m in manifests if (h := m.host_of(fact.path))), "")
        if found:
            given.append((found, "--host-regex"))
        elif said:
            given.append((said, "manifest"))
        elif fact.host:
            given.append((fact.host, fact.host_source or "header"))
        elif prefix := prefixes.get(fact.path, ""):
            given.append((prefix, "file name"))
        else:
            given.append((UNKNOWN_HOST, ""))
    return given


def _prefixes(paths: Sequence[str]) -> dict[str, str]:
    """Give a file-name prefix as host where it repeats over files and is not the same for all."""
    found = {p: m["host"] for p in set(paths) if (m := HOST_IN_NAME.match(PurePath(p).name))}
    found = {p: h for p, h in found.items() if not RANK_IN_NAME.match(h)}
    count = Counter(found.values())
    several = len(count) > 1 and max(count.values()) > 1
    return {p: h for p, h in found.items() if (several and count[h] > 1) or HOSTLIKE.match(h)}


def record_hosts(
    records: Sequence[Records], told: Told, manifests: Sequence[Spoken], known: Collection[str]
) -> list[tuple[str, str]]:
    """Give each file of records its host and where that was found; "" where nothing tells it.

    `known` are hosts that other files name: a file-name prefix that is one of them is a host.
    """
    names = [r.facts.path for r in records]
    spoken = {h for r in records for h in (r.facts.host, *hosts_of(r))}
    prefixes = _record_prefixes(names, {*known, *spoken} - {""})
    given = []
    for one in records:
        facts = one.facts
        said = next((h for m in manifests if (h := m.host_of(facts.path))), "")
        if found := told.host_of(facts.path):
            given.append((found, "--host-regex"))
        elif said:
            given.append((said, "manifest"))
        elif facts.host:
            given.append((facts.host, facts.host_source or "lines"))
        else:
            prefix = prefixes.get(facts.path, "")
            given.append((prefix, "file name" if prefix else ""))
    return given


def _record_prefixes(paths: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """Give the prefix of a file's name, or its folder, as host, where that is what it is.

    It looks like a host, or another file names it, or several prefixes stand before the same
    several endings (gpu01.log, gpu01.gids.txt, gpu02.log, gpu02.gids.txt).
    """
    found, endings = {}, defaultdict[str, set[str]](set)
    for path in set(paths):
        name = PurePath(path).name
        folder = PurePath(path).parent.name
        if folder in known or HOSTLIKE.match(folder):
            found[path] = folder
        elif host := _named_by(name, known):
            found[path] = host
        elif match := HOST_IN_NAME.match(name):
            found[path] = match["host"]
            endings[match["host"]].add(name[match.end() :])
    alike = Counter(frozenset(e) for e in endings.values())
    return {
        path: host
        for path, host in found.items()
        if host in known
        or HOSTLIKE.match(host)
        or (len(e := frozenset(endings[host])) > 1 and alike[e] > 1)
    }


def _named_by(name: str, known: Collection[str]) -> str:
    """Give the known host with whose name, or its first part, a file's name begins."""
    words = {(h.split(".")[0], h) for h in known if not h.split(".")[0].isdecimal()}
    words |= {(h, h) for h in known}
    fits = [(w, h) for w, h in words if re.match(rf"{re.escape(w)}(?:[._-]|$)", name)]
    return max(fits, key=lambda f: (len(f[0]), f), default=("", ""))[1]
