"""Many labelled episodes: some service lives with ten episodes each, all drawn from one seed."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from teller.lab.testbed import machine
from teller.lab.testbed.faults import KINDS, Kind, Need, Planned, lacking, planned
from teller.lab.testbed.folder import write_run
from teller.lab.testbed.kineto_window import write_window
from teller.lab.testbed.life import Lived, Setup, lived
from teller.lab.testbed.recorded import load
from teller.lab.testbed.settings import Service
from teller.lab.truth import Truth

EPISODES: Final = 10  # of one life
HEALTHY: Final = 2  # of them in which nothing is done


def possible(net: str) -> list[Kind]:
    """Give the kinds that can be injected here."""
    have: tuple[Need, ...] = machine.there() if net == "namespaces" else ()
    return [kind for kind in KINDS.values() if not lacking(kind, have)]


def plans(lives: int, seed: int, kinds: Sequence[Kind], of: Service) -> list[tuple[Planned, ...]]:
    """Give the episodes of each life: every kind comes once before any comes again."""
    draw = random.Random(seed)
    names = [kind.name for kind in kinds if kind.name != "healthy"]
    deck: list[str] = []
    made = []
    for _ in range(lives):
        while len(deck) < EPISODES - HEALTHY:
            deck += draw.sample(names, len(names))
        chosen = [deck.pop(0) for _ in range(EPISODES - HEALTHY)] + ["healthy"] * HEALTHY
        draw.shuffle(chosen)
        # torch's profiler records the last one and makes all steps longer: its effect must be
        # known by something else than the length of steps
        last = next(i for i, name in enumerate(chosen) if KINDS[name].known == "strikes")
        chosen.append(chosen.pop(last))
        made.append(tuple(planned(name, draw, of) for name in chosen))
    return made


def each(seed: int, kinds: Sequence[Kind], of: Service) -> list[tuple[Planned, ...]]:
    """Give lives in which every kind comes once, at its usual strength, on the last rank."""
    draw = random.Random(seed)
    made = []
    names = draw.sample([kind.name for kind in kinds], len(kinds))
    for first in range(0, len(names), EPISODES):
        made.append(
            tuple(
                planned(name, draw, of, severity=KINDS[name].law.usual, rank=of.world - 1)
                for name in names[first : first + EPISODES]
            )
        )
    return made


def written(life: Lived, out: Path, root_seed: int) -> list[tuple[Path, Truth]]:
    """Write the run folders of a life: all of it, and the window of torch's profiler."""
    ranks = [load(life.control, rank) for rank in range(life.setup.service.world)]
    whole = write_run(life, ranks, out, root_seed)
    window = write_window(life, ranks, whole[1], out) if life.setup.kineto_steps else None
    return [whole] + ([window] if window else [])


def campaign(
    setup: Setup, drawn: Sequence[tuple[Planned, ...]], out: Path, tell: Callable[[str], None]
) -> Iterator[tuple[Path, Truth]]:
    """Lead the lives one after the other; give each run folder and its truth."""
    out.mkdir(parents=True, exist_ok=True)
    draw = random.Random(~setup.seed)
    for number, plan in enumerate(drawn):
        tell(f"life {number + 1} of {len(drawn)}: {', '.join(one.kind for one in plan)}")
        seed = draw.getrandbits(31)
        mine = msgspec.structs.replace(setup, seed=seed)
        with lived(mine, plan, out) as life:
            # lives do not share a load or a plan: each is a root of its own
            yield from written(life, out, seed)
