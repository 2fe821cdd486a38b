"""What causes do to one step: factors and additions on the engine's parameters, never on times.

Faults fill one `Effects` a step; an empty one is a healthy step. Rows are ranks of the run.
"""

from dataclasses import dataclass, field

import numpy as np

from teller.lab.simulator.links import Wire
from teller.lab.simulator.program import Floats


@dataclass(frozen=True, slots=True)
class Pause:
    """A rank's host stands still for `ns`: at a share of its step's host time, or in extra work."""

    rank: int
    share: float
    ns: float
    tag: str = ""  # of the extra work that it stands in


@dataclass(slots=True)
class Effects:
    """One step's. Factors are 1 where nothing acts."""

    ranks: int
    host: Floats = field(init=False)  # factor on host time, by rank
    device: Floats = field(init=False)  # factor on products and attention, by rank
    memory: Floats = field(init=False)  # factor on what streams memory, by rank
    copies: Floats = field(init=False)  # factor on copies, by rank
    roles: dict[str, Floats] = field(default_factory=dict)  # factor on a role, by rank
    load: dict[str, Floats] = field(default_factory=dict)  # factor on the tokens of a role
    pauses: list[Pause] = field(default_factory=list)
    wires: dict[int, Wire] = field(default_factory=dict)  # of a group, by its place
    pinned: tuple[str, str] | None = None  # algorithm and protocol
    tails: dict[int, float] = field(default_factory=dict)  # ns on one collective of a group
    tags: dict[str, frozenset[int]] = field(default_factory=dict)  # ranks that do the extra work
    fallback: frozenset[str] = frozenset()
    eager: bool = False
    own_all_reduce: bool = True
    extras: tuple[tuple[str, int, str], ...] = ()
    schedule_ns: float = 0.0  # more time between steps
    queue_ns: float = 0.0  # more time between arrival and queue, for requests that arrive now
    blocks: float = 0.0  # share of the cache's used blocks that is left; 0 leaves all
    giant: float = 0.0  # a request comes that asks for this share of the cache
    held: bool = True  # it still waits; else it is given up
    arrivals: float = 1.0  # factor on the rate of requests
    token_limit: float = 1.0  # factor on the new tokens that a step may have
    skew: tuple[int, float] | None = None  # replica, and the share of requests that it gets
    transfers: dict[tuple[int, int], float] = field(default_factory=dict)  # time, by pair of hosts
    stuck: tuple[int, int] | None = None  # (rank, collective) that it never enters
    mismatch: tuple[int, int] | None = None  # (rank, collective) that it enters with another size
    dead: int = -1  # rank whose process ends in this step

    def __post_init__(self) -> None:
        """Begin with nothing acting."""
        self.host, self.device = np.ones(self.ranks), np.ones(self.ranks)
        self.memory, self.copies = np.ones(self.ranks), np.ones(self.ranks)

    def role(self, name: str) -> Floats:
        """Give the factors of a role, to be changed."""
        return self.roles.setdefault(name, np.ones(self.ranks))

    def tokens(self, name: str) -> Floats:
        """Give the factors on the tokens of a role, to be changed."""
        return self.load.setdefault(name, np.ones(self.ranks))
