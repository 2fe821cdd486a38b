"""All iterations of a run as one set of small graphs, ready for the network."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from teller.graph.medians import Floats, Ints, codes
from teller.models.archived import Archived
from teller.models.residuals import residuals, usual_ns
from teller.models.samples.lines import lines
from teller.models.samples.meetings import meetings
from teller.models.samples.moments import moments
from teller.models.samples.operators import operators
from teller.models.samples.standing import standing
from teller.models.signals import RankSteps, rank_steps

Reals = npt.NDArray[np.float32]
VERSION: Final = 4


@dataclass(frozen=True, slots=True)
class Samples:
    """The iterations of one run. Nodes of a kind are rows; `…_of` says which iteration they are in.

    Words are places in `texts`. `line_of` is -1 for what was written once in the run: it is in all
    iterations. Edges join operators to their rank, and ranks to the collectives they took part in.
    """

    replica: Ints  # of each iteration
    step_index: Ints
    start_ns: Ints
    end_ns: Ints
    usual_ns: Floats
    rank_of: Ints  # of each rank-step
    rank: Ints
    rank_step: Ints  # step_index
    rank_end_ns: Ints
    rank_excess_ns: Ints
    rank_x: Reals
    op_rank: Ints  # row of the rank-step
    op_word: Ints
    op_excess_ns: Ints
    op_x: Reals
    meet_of: Ints
    meet_x: Reals
    edge_rank: Ints
    edge_meet: Ints
    edge_x: Reals
    line_of: Ints
    line_word: Ints
    line_x: Reals
    texts: npt.NDArray[np.str_]

    def save(self, path: Path) -> None:
        """Write everything into one compressed file."""
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        np.savez_compressed(path, **held)

    @classmethod
    def load(cls, path: Path) -> "Samples":
        """Read what `save` wrote."""
        with np.load(path) as held:
            return cls(**{f.name: held[f.name] for f in fields(cls)})


def samples_of(run: Archived) -> Samples:
    """Give the iterations of an archived run."""
    steps = rank_steps(run)
    own, first = _iterations(steps)
    usual = usual_ns(steps)
    ranks = np.unique(steps.rank)
    known = [standing(run, ranks)[np.searchsorted(ranks, steps.rank)]] if len(ranks) else []
    ops = operators(run, steps, usual)
    meet = meetings(run, steps, own, usual)
    said = lines(run, steps, own)
    texts, words = np.unique(
        np.array([*ops.name.to_pylist(), *said.text.to_pylist()], np.str_), return_inverse=True
    )
    told = [residuals(steps), *known, moments(run, steps, usual)]
    return Samples(
        replica=steps.replica[first], step_index=steps.step_index[first],
        start_ns=_least(own, steps.start_ns), end_ns=-_least(own, -steps.end_ns),
        usual_ns=usual[first], rank_of=own, rank=steps.rank,
        rank_step=steps.step_index, rank_end_ns=steps.end_ns, rank_excess_ns=steps.excess_ns,
        rank_x=_single(np.concatenate(told, axis=1)),
        op_rank=ops.step, op_word=words[: len(ops.step)], op_excess_ns=ops.excess_ns,
        op_x=_single(ops.x), meet_of=meet.iteration, meet_x=_single(meet.x), edge_rank=meet.step,
        edge_meet=meet.meeting, edge_x=_single(meet.part), line_of=said.iteration,
        line_word=words[len(ops.step) :], line_x=_single(said.x), texts=texts,
    )  # fmt: skip


def _iterations(steps: RankSteps) -> tuple[Ints, Ints]:
    """Give each step its iteration, the steps of one number in one replica, and a step of each."""
    if not len(steps):
        none = np.zeros(0, np.int64)
        return none, none
    own = codes(steps.replica, steps.step_index)
    return own, np.unique(own, return_index=True)[1]


def _least(own: Ints, values: Ints) -> Ints:
    found = np.full(own.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(found, own, values)
    return found


def _single(values: Floats) -> Reals:
    return values.astype(np.float32)
