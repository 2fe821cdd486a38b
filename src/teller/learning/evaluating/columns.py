"""Judged iterations of a set as columns: the truth once, what a judge said of it beside."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from teller.graph.classes import classes
from teller.graph.medians import Floats, Ints
from teller.models.measures import Bools
from teller.models.samples.labels import NEGATIVE, POSITIVE, class_names

HORIZONTAL: Final = ("network", "intra_node_comm", "hang")  # sibling groups: between ranks
LIMIT: Final = 6e4  # what half precision holds


@dataclass(frozen=True, slots=True)
class Columns:
    """Arrays of one length, kept in one compressed file."""

    @classmethod
    def load(cls, path: Path) -> tuple[Self, str]:
        """Read what `save` wrote, with its key; raises OSError where it is not there."""
        with np.load(path) as held:
            return cls(**{f.name: held[f.name] for f in fields(cls)}), str(held["key"])

    def save(self, path: Path, key: str) -> None:
        """Write everything; `key` says what it was made of."""
        path.parent.mkdir(parents=True, exist_ok=True)
        held: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        beside = path.with_suffix(".new.npz")
        np.savez_compressed(beside, key=np.str_(key), **held)
        beside.replace(path)  # whole or not at all

    @classmethod
    def of(cls, parts: Sequence[Self]) -> Self:
        """Join the columns of several runs."""
        return cls(**{
            f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)
        })  # fmt: skip

    def take(self, rows: npt.NDArray[Any]) -> Self:
        """Give some rows."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(frozen=True, slots=True)
class Truths(Columns):
    """What is right, a row an iteration; -1 where nothing is asked."""

    run: Ints  # place among the runs of the set, by name
    root: Ints  # root seed: runs of one root are relatives
    state: Ints
    klass: Ints
    share: Floats  # of the step that the cause cost, the largest of any rank

    @property
    def faulty(self) -> Bools:
        """Tell which iterations are positive."""
        found: Bools = self.state == POSITIVE
        return found

    @property
    def clean(self) -> Bools:
        """Tell which are negative."""
        found: Bools = self.state == NEGATIVE
        return found

    def horizontal(self) -> Bools:
        """Tell which are positive by a cause between ranks; the other positives are vertical."""
        groups = [classes()[n].siblings in HORIZONTAL for n in class_names()]
        found: Bools = self.faulty & np.array(groups)[np.maximum(self.klass, 0)]
        return found

    def of_group(self, group: str) -> Bools:
        """Tell which are positive by a cause of a sibling group."""
        own = [classes()[n].siblings == group for n in class_names()]
        found: Bools = self.faulty & np.array(own)[np.maximum(self.klass, 0)]
        return found


@dataclass(frozen=True, slots=True)
class Says(Columns):
    """What a judge said of each iteration, and whether it is right; NaN where it is not asked."""

    chance: Floats  # the higher, the more abnormal: logits, where a judge gives chances
    said: Ints  # class where one is asked, -1 for none
    sure: Floats  # chance of that class among the classes
    rank: Floats  # the first culprit rank is right
    first: Floats  # the first operator, on its rank, is gold
    third: Floats  # one of the first three is
    op_said: Ints  # the operator that is named, as a number; -1 for none
    op_true: Ints  # the operator that would be right
    object: Floats  # the whole object is right

    def compact(self) -> "Says":
        """Give the same in the smallest types that hold it; what is beyond them is cut."""
        kinds = {"said": np.int8, "op_said": np.int32, "op_true": np.int32}
        return Says(**{
            f.name: np.clip(getattr(self, f.name), -LIMIT, LIMIT).astype(np.float16)
            if f.name not in kinds else getattr(self, f.name).astype(kinds[f.name])
            for f in fields(self)
        })  # fmt: skip

    def joint(self, truth: Truths) -> Floats:
        """Tell where culprit, class and operator are all right; NaN where nothing is positive.

        Where no operator is gold, none is asked.
        """
        right = (
            (self.said == truth.klass) & (self.object > 0) & (np.nan_to_num(self.first, nan=1) > 0)
        )
        return np.where(truth.faulty, right, np.nan)
