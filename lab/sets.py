"""The sets of simulated runs: which orders each holds, by a law that is written down.

A *root* is a seed with all runs that come of it: the run with its causes, and its twin. Sets take
root seeds from ranges that do not meet, so that no relative crosses from one to another.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from teller.errors import UnknownName
from teller.lab.simulator import causes, draw
from teller.lab.simulator.draw import Wanted
from teller.lab.simulator.produce import name_of
from teller.lab.simulator.scene import Scene
from teller.lab.simulator.simulate import Order, scene_of

ROOM: Final = 1_000_000  # seeds between the first of two sets


@dataclass(frozen=True, slots=True)
class SetLaw:
    """What a set holds."""

    name: str
    first_seed: int
    roots: int
    steps: tuple[int, int]
    largest: tuple[tuple[int, float], ...]
    causes: tuple[float, ...]
    twin: float
    disaggregated: float


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a set."""

    order: Order
    root_seed: int

    @property
    def name(self) -> str:
        """Give the name of its folder."""
        return name_of(self.order)


@cache
def _written() -> dict[str, Any]:
    return tomllib.loads(files("teller.lab").joinpath("sets.toml").read_text("utf-8"))


def law(name: str) -> SetLaw:
    """Give the law of a set."""
    told = _written()
    if name not in told["set"]:
        raise UnknownName("set", name, told["set"])
    row = told["law"] | told["set"][name]
    return SetLaw(
        name, row["first_seed"], row["roots"], tuple(row["steps"]),
        tuple((r, s) for r, s in row["largest"]), tuple(row["causes"]), row["twin"],
        row["disaggregated"],
    )  # fmt: skip


def set_names() -> tuple[str, ...]:
    """Give the names of all sets."""
    return tuple(_written()["set"])


def members(name: str) -> Iterator[Member]:
    """Give the runs of a set, root by root."""
    one = law(name)
    for number in range(one.roots):
        yield from _root(one, one.first_seed + number)


def _root(one: SetLaw, seed: int) -> Iterator[Member]:
    random = np.random.default_rng([seed, 30])
    ranks = [r for r, _ in one.largest]
    shares = np.array([s for _, s in one.largest])
    largest = int(ranks[random.choice(len(ranks), p=shares / shares.sum())])
    wanted = Wanted(steps=int(random.integers(*one.steps)), largest=largest)
    apart = draw.apart(seed)
    if apart.random() < one.disaggregated:
        wanted = replace(wanted, layout=draw.disaggregated(apart, largest))
    count = int(random.choice(len(one.causes), p=np.array(one.causes)))
    twin = bool(random.random() < one.twin)
    kinds = _kinds(seed, wanted, count, random, one.disaggregated) if count else ()
    yield Member(Order(seed, kinds, wanted), seed)
    if kinds and twin:
        yield Member(Order(seed, kinds, wanted, twin=True), seed)


def _kinds(
    seed: int, wanted: Wanted, count: int, random: np.random.Generator, apart: float
) -> tuple[str, ...]:
    """Draw causes among those that the scene can have; rarely possible ones more often."""
    scene, _ = scene_of(seed, wanted)
    fitting = [k for k, s in causes.specs().items() if causes.fits(s, scene)]
    weights = np.array([_weight(k, apart) for k in fitting])
    drawn = random.choice(
        len(fitting), size=min(count, len(fitting)), replace=False, p=weights / weights.sum()
    )
    kinds = [fitting[i] for i in drawn]
    ending = [k for k in kinds if causes.spec(k).ends]
    return tuple(k for k in kinds if k not in ending[1:])  # a service stops once


@cache
def _weight(kind: str, apart: float) -> float:
    """Give one over the share of scenes that fit a cause, so that causes are equally frequent."""
    spec = causes.spec(kind)
    if "disaggregated" in spec.needs:
        between = sum(c.hosts > 1 for c in draw.DISAGGREGATED) / len(draw.DISAGGREGATED)
        return 1 / (apart * between)
    fit = sum(causes.fits(spec, scene) for scene in _sample())
    return len(_sample()) / max(fit, 1)


@cache
def _sample() -> tuple[Scene, ...]:
    return tuple(draw.scene(seed, Wanted(largest=8)) for seed in range(300))


@cache
def hashes() -> dict[str, dict[str, str]]:
    """Give by set the hash of each run, as it is written down."""
    text = files("teller.lab").joinpath("sets.hashes.tsv").read_text("utf-8")
    out: dict[str, dict[str, str]] = {}
    for line in text.splitlines()[1:]:
        name, run, told = line.split("\t")
        out.setdefault(name, {})[run] = told
    return out
