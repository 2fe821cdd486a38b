"""What is known of a run's iterations, ranks and operators where the truth is told."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np

from teller.graph.classes import classes
from teller.graph.medians import Floats, Ints

NEGATIVE: Final = 0
POSITIVE: Final = 1
LEFT_OUT: Final = -1


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels beside `Samples`; -1 says that nothing is asked of a row."""

    state: Ints  # of each iteration: POSITIVE, NEGATIVE, LEFT_OUT
    klass: Ints  # place in `class_names`, -1 for none
    share: Floats  # the largest of any rank
    episode: Ints  # the costliest cause, -1 for none
    rank: Ints  # of each rank-step: 1 the culprit is (on) this rank, 0 not, -1 not asked
    op: Ints  # of each operator: 1 gold, 0 not, -1 not asked

    def save(self, path: Path) -> None:
        """Write everything into one compressed file."""
        np.savez_compressed(path, **{f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, path: Path) -> "Labels":
        """Read what `save` wrote."""
        with np.load(path) as held:
            return cls(**{f.name: held[f.name] for f in fields(cls)})


def class_names() -> tuple[str, ...]:
    """Give the fault classes in the order that the model counts them."""
    return tuple(name for name, row in classes().items() if row.verdict == "fault")
