"""Which run a file of records belongs to: a log has no rank and no window of its own to go by.

A manifest says so. Else what lies in one folder is about one run, and folders belong together where
they share a communicator or their times meet. Beside captures, records go with each run that their
times meet, or with the nearest in their folder; without captures they make a run of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final

Window = tuple[int, int]
FAR_NS: Final = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class Companion:
    """What is to be known of one file of records. `window` is UTC; None where it has no times."""

    name: str
    digest: str
    head: str
    window: Window | None
    comms: frozenset[str] = frozenset()
    manifest: str = ""
    baseline: bool = False
    lasting: bool = False  # a state of the host, or a log of days: its times say nothing

    @property
    def folder(self) -> str:
        """Give the folder it lies in."""
        return str(PurePath(self.name).parent)


@dataclass(slots=True)
class Home:
    """A run that records can join; `records` are indices of companions."""

    windows: list[Window] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    comms: set[str] = field(default_factory=set)
    manifest: str = ""
    baseline: bool = False
    known: dict[int, str] = field(default_factory=dict)  # records it had before: index to digest
    records: list[int] = field(default_factory=list)
    replaced: set[int] = field(default_factory=set)  # of those: written further since
    captured: bool = False  # it has captures: what lies beside them is about them

    @property
    def is_new(self) -> bool:
        """Tell whether records joined that were not there before."""
        return bool(set(self.records) - self.known.keys())


def settle(companions: Sequence[Companion], homes: list[Home]) -> list[Home]:
    """Put each file into its home or homes; what fits none makes new homes, which are given too."""
    fresh = [i for i in range(len(companions)) if not any(i in h.known for h in homes)]
    for home in homes:
        home.records += list(home.known)
    lonely = [i for i in fresh if not _met_before(i, companions, homes)]
    for cluster in _clusters(lonely, companions):
        here = [h for h in homes if may_hold(h, [companions[i] for i in cluster])]
        for i in cluster:
            for home in _nearest(companions[i], here):
                home.records.append(i)
        if not here:
            homes.append(_home_of([companions[i] for i in cluster], cluster))
    return homes


def _met_before(i: int, companions: Sequence[Companion], homes: Sequence[Home]) -> bool:
    """Find the homes that have this file already, or have it as it was before it grew."""
    one, met = companions[i], False
    for home in homes:
        if one.digest in home.known.values():
            met = True
            continue
        older = [k for k in home.known if companions[k].head == one.head]
        if older and home.manifest == one.manifest:
            home.replaced.update(older)
            home.records = [k for k in home.records if k not in older] + [i]
            met = True
    return met


def _clusters(fresh: Sequence[int], companions: Sequence[Companion]) -> list[list[int]]:
    """Put together what is of one manifest, or lies together and speaks of the same time."""
    groups: dict[tuple[str, str, bool], list[int]] = {}
    for i in fresh:
        one = companions[i]
        where = "" if one.manifest else one.folder
        groups.setdefault((one.manifest, where, one.baseline), []).append(i)
    merged: list[list[int]] = []
    apart = [
        (key, part)
        for key, group in sorted(groups.items())
        for part in ([group] if key[0] else _windowed(group, companions))
    ]
    for (manifest, _, baseline), group in apart:
        mine = [companions[i] for i in group]
        other = next(
            (
                m
                for m in merged
                if not manifest
                and companions[m[0]].baseline == baseline
                and not companions[m[0]].manifest
                and _together(mine, [companions[i] for i in m])
            ),
            None,
        )
        if other is None:
            merged.append(group)
        else:
            other += group
    return merged


def _windowed(group: Sequence[int], companions: Sequence[Companion]) -> list[list[int]]:
    """Tell apart what lies in one folder and is days apart: an archive of logs is no one run."""
    timed = sorted(
        (companions[i].window or (0, 0), i)
        for i in group
        if companions[i].window is not None and not companions[i].lasting
    )
    parts: list[tuple[int, list[int]]] = []  # the end so far, and the files
    for (start, end), i in timed:
        if not parts or start > parts[-1][0] + FAR_NS:
            parts.append((end, [i]))
        else:
            parts[-1] = (max(parts[-1][0], end), [*parts[-1][1], i])
    found = [files for _, files in parts] or [[]]
    found[-1] += [i for i in group if all(i not in files for files in found)]
    return found


def _together(some: Sequence[Companion], others: Sequence[Companion]) -> bool:
    """Tell whether two folders are of one run: a communicator in common, or times that meet.

    A folder of host states, which have no time of the run, goes with its neighbour.
    """
    if any(a.comms & b.comms for a in some for b in others):
        return True
    mine, theirs = list(_windows(some)), list(_windows(others))
    if not mine or not theirs:
        return PurePath(some[0].folder).parent == PurePath(others[0].folder).parent
    return any(_apart(a, b) <= 0 for a in mine for b in theirs)


def _windows(some: Sequence[Companion]) -> Iterator[Window]:
    yield from (c.window for c in some if c.window is not None and not c.lasting)


def may_hold(home: Home, cluster: Sequence[Companion]) -> bool:
    """Tell whether files of one cluster can be of a run that is there."""
    if home.baseline != cluster[0].baseline:
        return False
    if home.manifest or cluster[0].manifest:
        return home.manifest == cluster[0].manifest
    if home.comms & frozenset().union(*(c.comms for c in cluster)):
        return True
    gaps = [_apart(a, b) for a in _windows(cluster) for b in home.windows]
    if gaps and (min(gaps) <= 0 or (min(gaps) > FAR_NS and not home.captured)):
        return min(gaps) <= 0
    return any(_near(c.folder, f) for c in cluster for f in home.folders)


def _near(one: str, other: str) -> bool:
    """Tell whether one folder is the other, or holds it."""
    a, b = PurePath(one), PurePath(other)
    return a.is_relative_to(b) or b.is_relative_to(a)


def _nearest(one: Companion, homes: Sequence[Home]) -> list[Home]:
    """Give the homes whose times it meets, else the one nearest in time; all where it has none."""
    if one.window is None or one.lasting or len(homes) < 2:
        return list(homes)
    window = one.window
    apart = [min((_apart(window, w) for w in h.windows), default=0) for h in homes]
    meets = [h for h, gap in zip(homes, apart, strict=True) if gap <= 0]
    return meets or [homes[apart.index(min(apart))]]


def _home_of(cluster: Sequence[Companion], indices: list[int]) -> Home:
    return Home(
        windows=list(_windows(cluster)),
        folders={c.folder for c in cluster},
        comms=set().union(*(c.comms for c in cluster)),
        manifest=cluster[0].manifest,
        baseline=cluster[0].baseline,
        records=indices,
    )


def _apart(one: Window, other: Window) -> int:
    return max(one[0], other[0]) - min(one[1], other[1])
