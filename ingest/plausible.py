"""What a source says of itself, as far as it can be: figures that no run has are taken away."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from teller.ingest.source import Facts, Group, Remark

MOST_RANKS: Final = 1_000_000  # a hundred times the largest job there is
MOST_DEVICES: Final = 1 << 16
MOST_PID: Final = 1 << 53
FARTHEST_NS: Final = 1 << 62  # from 1970: the year 2116; beyond, sums of two times would wrap


def plausible(facts: Facts) -> tuple[Facts, tuple[Remark, ...]]:
    """Give the facts without what cannot be, and a remark on each of these."""
    kept = replace(
        facts,
        rank=_within(facts.rank, 0, MOST_RANKS),
        world_size=_within(facts.world_size, 1, MOST_RANKS),
        device_index=_within(facts.device_index, 0, MOST_DEVICES),
        pid=_within(facts.pid, 0, MOST_PID),
        epoch_ns=_within(facts.epoch_ns, -FARTHEST_NS, FARTHEST_NS),
        places=_places(facts.places),
        groups=tuple(_group(g) for g in facts.groups),
    )
    return kept, tuple(_remarks(facts, kept))


def _remarks(said: Facts, kept: Facts) -> Iterator[Remark]:
    where = said.rank_source or "header"
    if said.rank != kept.rank:
        what = f"says that it is rank {said.rank}, which no run has"
        yield Remark(said.path, where, what, "say which rank it is: --rank-regex")
    if said.world_size != kept.world_size and said.world_size:  # 0 is said by runs of one rank
        what = f"says that the run has {said.world_size} ranks, which cannot be"
        yield Remark(said.path, "header", what, "nothing to do: the ranks that are here are used")
    if said.epoch_ns != kept.epoch_ns:
        what = f"its clock says {said.epoch_ns} ns since 1970, which cannot be"
        yield Remark(said.path, "header", what, "nothing to do: its own times are used without it")


def _within(value: int | None, low: int, high: int) -> int | None:
    return value if value is not None and low <= value < high else None


def _places(said: Mapping[str, int]) -> dict[str, int]:
    return {name: at for name, at in said.items() if 0 <= at < MOST_RANKS}


def _group(group: Group) -> Group:
    ranks = tuple(r for r in group.ranks if 0 <= r < MOST_RANKS)
    size = group.size if 0 <= group.size < MOST_RANKS else 0
    return replace(group, ranks=ranks, size=size)
