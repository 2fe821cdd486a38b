"""Which captures are one run.

A manifest says so; else captures of different ranks belong together where their windows overlap on
UTC, or where world size and complementary ranks fit within a minute whatever the clocks say. Two
captures of one rank are two runs where their windows are disjoint, and a duplicate where they are
the same window.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

FIT_WITHIN_NS: Final = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Capture:
    """What grouping needs to know of one source. Times are UTC where `anchored`."""

    rank: int
    first_ns: int
    last_ns: int
    anchored: bool
    digest: str  # of its file
    order: tuple[object, ...]  # breaks ties, from content alone
    world_size: int | None = None
    groups: frozenset[str] = frozenset()  # communicators, or groups with their ranks
    manifest: str = ""  # the run that a manifest gives it
    weight: int = 0  # number of spans
    alike: str = ""  # its file's name with a sign for each number
    head: str = ""  # of its file: a file that has grown keeps it
    told: bool = False  # the user says which rank it is
    baseline: bool = False  # its name says that it shows the healthy state


@dataclass(slots=True)
class Membership:
    """One run: indices of its captures, and captures that say the same as one of them."""

    key: str = ""
    captures: list[int] = field(default_factory=list)
    duplicates: list[tuple[int, int]] = field(default_factory=list)  # (left out, used instead)
    skewed: list[int] = field(default_factory=list)  # joined although the windows are apart
    known: frozenset[int] = frozenset()  # captures that were in this run before
    again: list[int] = field(default_factory=list)  # the same files as before: nothing new

    @property
    def is_new(self) -> bool:
        """Tell whether anything of it was not there before."""
        return bool(set(self.captures) - self.known) or bool(
            {out for out, _ in self.duplicates} - self.known
        )


def group(captures: Sequence[Capture], known: Sequence[Membership] = ()) -> list[Membership]:
    """Give the runs, the earliest first; the order in which captures are given does not matter.

    `known` are runs that are there already; captures join them where they belong.
    """
    healthy = {i for i, c in enumerate(captures) if c.baseline}
    if healthy and len(healthy) < len(captures):  # never one run with what they are compared to
        return _each_apart(captures, known, healthy)
    runs = list(known)
    placed = {i for run in known for i in run.captures}
    order = sorted(
        set(range(len(captures))) - placed,
        key=lambda i: (captures[i].manifest, captures[i].first_ns, captures[i].order),
    )
    for i in order:
        run = _home(i, runs, captures)
        if run is None:
            runs.append(Membership(captures[i].manifest, [i]))
    return sorted(runs, key=lambda r: min(captures[i].first_ns for i in r.captures))


def _each_apart(
    captures: Sequence[Capture], known: Sequence[Membership], healthy: set[int]
) -> list[Membership]:
    """Group the healthy captures and the others each for themselves."""
    runs: list[Membership] = []
    for mine in (healthy, set(range(len(captures))) - healthy):
        order = sorted(mine)
        place = {i: n for n, i in enumerate(order)}
        own = [m for m in known if set(m.captures) <= mine]
        moved = [
            Membership(
                m.key, [place[i] for i in m.captures], known=frozenset(place[i] for i in m.known)
            )
            for m in own
        ]
        for run in group([captures[i] for i in order], moved):
            run.captures = [order[n] for n in run.captures]
            run.duplicates = [(order[a], order[b]) for a, b in run.duplicates]
            run.skewed = [order[n] for n in run.skewed]
            run.known = frozenset(order[n] for n in run.known)
            run.again = [order[n] for n in run.again]
            runs.append(run)
    return sorted(runs, key=lambda r: min(captures[i].first_ns for i in r.captures))


def _home(i: int, runs: list[Membership], captures: Sequence[Capture]) -> Membership | None:
    """Put a capture into the run where it belongs, or give None."""
    one = captures[i]
    home = _met_before(i, runs, captures)
    if home is not None:
        return home
    open_runs = [r for r in runs if one.rank not in {captures[j].rank for j in r.captures}]
    if one.manifest:
        home = next((r for r in open_runs if r.key == one.manifest), None)
    else:
        home = _largest_overlap(one, open_runs, captures)
    if home is not None:
        home.captures.append(i)
        return home
    home = next((r for r in open_runs if not one.manifest and _fits(one, r, captures)), None)
    if home is not None:
        home.captures.append(i)
        home.skewed.append(i)
    return home


def _met_before(i: int, runs: list[Membership], captures: Sequence[Capture]) -> Membership | None:
    """Give the run that has this capture already, or another of the same rank and window."""
    one = captures[i]
    for run in runs:
        same = next((j for j in run.captures if _same_bytes(one, captures[j])), None)
        if same is not None:
            _put_again(i, same, run, captures)
            return run
    for run in runs:
        twin = next((j for j in run.captures if captures[j].rank == one.rank), None)
        if twin is None:
            continue
        grown = _grown(one, captures[twin])
        if not grown and not _same_window(one, captures[twin]):
            continue
        if one.weight < captures[twin].weight + (not grown):
            run.duplicates.append((i, twin))
        else:
            run.captures[run.captures.index(twin)] = i
            if not grown or twin not in run.known:
                run.duplicates.append((twin, i))
        return run
    return None


def _grown(one: Capture, other: Capture) -> bool:
    """Tell whether both are the same file, written further; large headers alone are no sign."""
    same_head = bool(one.head) and one.head == other.head and one.digest != other.digest
    return same_head and _overlap(one, other) >= 0


def _same_bytes(one: Capture, other: Capture) -> bool:
    """Tell whether both are the same process of the same file, whatever rank each is said to be."""
    return one.digest == other.digest and one.order == other.order


def _put_again(i: int, same: int, run: Membership, captures: Sequence[Capture]) -> None:
    """Use a capture once: as it was before, unless the user now says which rank it is."""
    if captures[i].told and captures[i].rank != captures[same].rank:
        run.captures[run.captures.index(same)] = i
    elif same in run.known:
        run.again.append(i)
    else:
        run.duplicates.append((i, same))


def _same_window(one: Capture, other: Capture) -> bool:
    if one.digest == other.digest:
        return False  # two processes of one file
    if one.manifest != other.manifest or one.anchored != other.anchored:
        return False
    shorter = min(one.last_ns - one.first_ns, other.last_ns - other.first_ns)
    return _overlap(one, other) > shorter // 2


def _overlap(one: Capture, other: Capture) -> int:
    return min(one.last_ns, other.last_ns) - max(one.first_ns, other.first_ns)


def _largest_overlap(
    one: Capture, runs: list[Membership], captures: Sequence[Capture]
) -> Membership | None:
    best, most = None, 0
    for run in runs:
        shared = max(
            (
                _overlap(one, captures[j])
                for j in run.captures
                if captures[j].anchored == one.anchored
                and (one.anchored or _completes(one, [captures[j]]))
            ),
            default=0,
        )
        if shared > most and _may_differ(one, run, captures):
            best, most = run, shared
    return best


def _may_differ(one: Capture, run: Membership, captures: Sequence[Capture]) -> bool:
    """Two captures whose world sizes contradict are never one run."""
    sizes = {captures[j].world_size for j in run.captures} | {one.world_size}
    return len(sizes - {None}) < 2


def _completes(one: Capture, others: Sequence[Capture]) -> bool:
    """Tell whether a capture without a clock is a rank that the others lack.

    Their world has room for it, or the files are named alike but for a number.
    """
    world = max((c.world_size or 0 for c in (one, *others)), default=0)
    room = world > len(others) and one.rank < world
    return room or any(one.alike and one.alike == o.alike for o in others)


def _fits(one: Capture, run: Membership, captures: Sequence[Capture]) -> bool:
    """Tell whether a capture completes a run although the windows do not overlap."""
    if not _may_differ(one, run, captures):
        return False
    others = [captures[j] for j in run.captures]
    if not one.anchored or not all(o.anchored for o in others):
        return _completes(one, others)
    near = min(-_overlap(one, o) for o in others) <= FIT_WITHIN_NS
    told = (one.world_size or 0) > 1 or any(one.groups & o.groups for o in others)
    return near and told
