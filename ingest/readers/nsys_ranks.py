"""Which rank a process of an Nsight Systems export is: by its environment, else by names in it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from teller.ingest.readers.nsys_facts import RANK_VARIABLES, Named

_PLACE: Final = re.compile(r"(?<![A-Za-z])(TP|PP|DP|EP)[-_ ]?(\d{1,5})(?!\d)")
_NUMBER: Final = re.compile(r"^\d{1,7}$")


@dataclass(frozen=True, slots=True)
class Place:
    """The rank and parallel coordinates of a process."""

    rank: int | None = None
    source: str = ""
    world: int | None = None
    places: Mapping[str, int] = field(default_factory=dict)


def place_all(
    named: Mapping[int, Named],
    environments: Mapping[int | None, Mapping[str, str]],
    busy: Sequence[int],
) -> dict[int, Place]:
    """Give each process its place; `busy` are those with device work, or all where none has any."""
    found = {}
    for who, one in named.items():
        said = environments.get(one.pid) or environments.get(who & 0xFFFFFF) or {}
        if not said and len(named) == 1 and len(environments) == 1:
            said = next(
                iter(environments.values())
            )  # launched by the profiler: its pid is not told
        found[who] = _place(one, said)
    return _with_ranks(found, set(busy))


def _place(one: Named, said: Mapping[str, str]) -> Place:
    rank = next((int(said[v]) for v in RANK_VARIABLES if _NUMBER.match(said.get(v, ""))), None)
    world = int(said["WORLD_SIZE"]) if _NUMBER.match(said.get("WORLD_SIZE", "")) else None
    places, where = _coordinates(one)
    if rank is not None:
        return Place(rank, "environment", world, places)
    return Place(None, where if places else "", world, places)


def _coordinates(one: Named) -> tuple[dict[str, int], str]:
    """Give parallel coordinates out of the first name that has some, and where that was."""
    for where, text in (("process name", one.name), *(("thread name", t) for t in one.threads)):
        if found := _PLACE.findall(text):
            return {axis.lower(): int(number) for axis, number in found}, where
    return {}, ""


def _with_ranks(found: dict[int, Place], busy: set[int]) -> dict[int, Place]:
    """Turn coordinates into ranks where that is sure; a rank runs on a device if anything does."""
    sizes = {axis: 1 + max((p.places.get(axis, 0) for p in found.values()), default=0)
             for axis in ("tp", "pp", "dp")}  # fmt: skip
    return {
        who: place if place.rank is not None else _ranked(place, sizes, runs=who in busy)
        for who, place in found.items()
    }


def _ranked(place: Place, sizes: Mapping[str, int], *, runs: bool) -> Place:
    rank = _rank(place, sizes) if runs else None
    return replace(place, rank=rank, source="" if rank is None else place.source)


def _rank(place: Place, sizes: Mapping[str, int]) -> int | None:
    """Give the rank of coordinates: data parallel outermost, tensor parallel innermost."""
    given = {axis: place.places[axis] for axis in ("dp", "pp", "tp") if axis in place.places}
    outer = {axis: n for axis, n in given.items() if n}
    if not given:
        return place.places.get("ep")
    if set(outer) <= {"tp"} or len(given) == 1:
        return sum(outer.values())
    if place.world != sizes["tp"] * sizes["pp"] * sizes["dp"]:
        return None
    return (given.get("dp", 0) * sizes["pp"] + given.get("pp", 0)) * sizes["tp"] + given.get(
        "tp", 0
    )
