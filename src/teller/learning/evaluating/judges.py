"""Who is judged: the model, the floors, and networks that are trained again with less."""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from teller.errors import BadUsage
from teller.graph.classes import classes
from teller.ingest.run import Progress
from teller.learning.evaluating import rules
from teller.learning.evaluating.columns import Says
from teller.learning.evaluating.judging import says
from teller.learning.evaluating.sets import Sets
from teller.learning.evaluating.state import State, hash_of, key_of
from teller.learning.evaluating.views import VIEWS, View, whole
from teller.models.learn.config import Config
from teller.models.measures import Guess
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import POSITIVE, class_names
from teller.models.samples.sample import Reals
from teller.models.samples.words import Words
from teller.models.scorer import Scorer

MODEL: Final = "model"
RULES: Final = "rules alone"
AGAIN: Final = "trained again"
ASKED: Final = ("validation", "test", "testbed")  # sets of which judges say something
HASHED: Final = "names hashed"
LEAST: Final = 1e-7  # chances nearer to 0 or 1 are taken as this near

Judge = Callable[[Labelled], Guess]


@dataclass(frozen=True, slots=True)
class Row:
    """One judge by name: what it is made of, how it is made, and how it sees runs."""

    name: str
    key: str
    fit: Callable[[], Judge]
    view: View = whole


class Judges:
    """Gives what a judge says of a set; what was said of the same before is not asked again."""

    def __init__(
        self, model: Path, sets: Sets, state: State, cache: Path, minutes: float,
        told: Progress, say: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Open the model; raises `BadUsage` where it is none, or not for this version."""
        self.scorer = Scorer(model)
        self.sets, self.state, self.cache = sets, state, cache
        self.model_key = hash_of([model / n for n in ("card.json", "network.onnx", "words.npz")])
        self._minutes, self._told, self._say = minutes, told, say
        self._fitted: dict[str, Judge] = {}

    def says(self, row: Row, role: str) -> Says:
        """Give what a judge says of a set."""
        found = self._kept(row, role)
        if found is None:
            # What is trained by the clock is another one each time: all of it is said anew then.
            others = [r for r in ASKED if r != role and row.key not in self._fitted
                      and r in self.sets and self._kept(row, r) is not None]  # fmt: skip
            for each in (*others, role):
                self._ask(row, each)
            found = self._kept(row, role)
        if found is None:
            raise BadUsage(f"{self.state.folder} cannot be written")
        return _wide(found)

    def _kept(self, row: Row, role: str) -> Says | None:
        return self.state.says(role, row.name, key_of(row.key, self.sets[role].digest))

    def _ask(self, row: Row, role: str) -> None:
        given, judge = self.sets[role], self._judge(row)
        self._told.start(f"{row.name}: {role}", len(given.known))
        parts = []
        for run in given.known:
            seen = replace(run.one, samples=row.view(run.one.samples))
            parts.append(says(run, judge(seen)))
            self._told.step()
        self._told.done()
        self.state.keep_says(role, row.name, key_of(row.key, given.digest), Says.of(parts))

    def rules(self, role: str) -> Says | None:
        """Give what rules and numbers alone say; None where the run folders are not there."""
        given = self.sets[role]
        names = [k.one.about.run for k in given.known]
        key = key_of(RULES, _rules_key(), given.digest)
        found = self.state.says(role, RULES, key)
        if found is None:
            if not set(names) <= set(given.raw):
                self._say(f"{RULES}: left out, the run folders of {role} are not there")
                return None
            self._told.start(f"{RULES}: {role}", len(names))
            raw = {n: given.raw[n] for n in names}
            heard = rules.diagnosed(raw, self.cache / "rules" / _rules_key(), self._told.step)
            self._told.done()
            parts = [rules.says(k, heard[k.one.about.run]) for k in given.known]
            self.state.keep_says(role, RULES, key, Says.of(parts))
            found = self.state.says(role, RULES, key)
        return _wide(found) if found is not None else None

    def model(self, view: str = "") -> Row:
        """Give the model as it was given; with a view, it sees runs with something taken away."""
        return Row(
            f"{MODEL} {view}".strip(), key_of(MODEL, self.model_key, view),
            lambda: lambda one: _guess(self.scorer, one), VIEWS[view] if view else whole,
        )  # fmt: skip

    def floors(self) -> list[Row]:
        """Give the floors, fitted to the training set."""
        from teller.models.learn import floors

        def row(name: str, fit: floors.Fit) -> Row:
            train = self.sets["train"]
            key = key_of("floor", str(floors.VERSION), name, train.digest)
            return Row(name, key, lambda: fit(train.runs))

        return [row(n, f) for n, f in floors.FLOORS.items()]

    def again(
        self,
        what: str = "",
        *,
        view: View = whole,
        without: Callable[[Labelled], bool] | None = None,
    ) -> Row:
        """Give a network of the model's kind, trained on the training set within the budget.

        It sees runs by `view`, and learns from none that `without` tells.
        """
        config = msgspec.convert(
            self.scorer.card.config | {"minutes": self._minutes}, Config, strict=False
        )
        train = self.sets["train"]
        name = f"{AGAIN} {what}".strip()
        key = key_of(name, repr(config), train.digest, self.model_key)
        words: Words = Hashed(self.scorer.words) if what == HASHED else self.scorer.words

        def fit() -> Judge:
            runs = [r for r in train.runs if without is None or not without(r)]
            return self._train(
                [replace(r, samples=view(r.samples)) for r in runs], words, config, name
            )

        return Row(name, key, fit, view)

    def _train(self, runs: Sequence[Labelled], words: Words, config: Config, name: str) -> Judge:
        import torch

        from teller.models.learn import training

        if not runs:
            raise BadUsage(f"{name}: no run is left to learn from")
        self._told.start(name, config.epochs)
        net = training.train(runs, words, config, lambda epoch, losses: self._told.step())
        self._told.done()

        def judge(one: Labelled) -> Guess:
            from teller.models.samples.batch import batch

            seen = batch(one.samples, words.of(one.samples.texts.tolist()))
            with torch.inference_mode():
                state, klass, rank, op = net(**training.tensors(seen, net.sizes.hidden))
            return Guess(state.numpy(), klass.softmax(1).numpy(), rank.numpy(), op.numpy())

        return judge

    def _judge(self, row: Row) -> Judge:
        if row.key not in self._fitted:
            self._say(f"making: {row.name}")
            self._fitted[row.key] = row.fit()
        return self._fitted[row.key]


class Hashed(Words):
    """Vectors drawn by chance from the string: they tell words apart, and mean nothing."""

    def __init__(self, like: Words) -> None:
        """Give vectors as wide as those of `like`."""
        super().__init__([], like.vectors[:0], "hashed")

    def of(self, strings: Iterable[str]) -> Reals:
        """Give the vectors of strings: the same string has always the same one."""
        seeds = [zlib.crc32(s.encode()) for s in strings]
        rows = [np.random.default_rng(s).normal(size=self.width) for s in seeds]
        drawn = np.array(rows).reshape(len(rows), self.width) / np.sqrt(self.width)
        found: Reals = drawn.astype(np.float32)
        return found


def has_group(group: str) -> Callable[[Labelled], bool]:
    """Tell runs with a positive iteration of a sibling group."""
    own = [n for n, name in enumerate(class_names()) if classes()[name].siblings == group]

    def told(one: Labelled) -> bool:
        return bool(np.isin(one.labels.klass[one.labels.state == POSITIVE], own).any())

    return told


def _guess(scorer: Scorer, one: Labelled) -> Guess:
    scores = scorer.score(one.samples)
    chance = np.clip(scores.chance, LEAST, 1 - LEAST)
    return Guess(np.log(chance / (1 - chance)), scores.classes, scores.rank, scores.op)


def _wide(found: Says) -> Says:
    """Give columns in the types that figures are worked out in."""
    held: dict[str, Any] = {
        n: getattr(found, n).astype(np.int64 if n in ("said", "op_said", "op_true") else np.float64)
        for n in Says.__dataclass_fields__
    }
    return Says(**held)


def _rules_key() -> str:
    from importlib.resources import files

    folder = Path(str(files("teller.models").joinpath("rules")))
    return hash_of(sorted(folder.glob("*.toml")))
