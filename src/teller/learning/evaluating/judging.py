"""Hold a guess on a run against its truth: class, rank, operator, and the whole object."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from teller.graph.finding import Culprit
from teller.graph.medians import Floats, Ints
from teller.ingest.operators import operator_of
from teller.lab.truth import Episode, Truth, read_truth
from teller.learning.evaluating.columns import Says, Truths
from teller.learning.objects import same
from teller.models.archived import Archived
from teller.models.measures import Guess, first_of
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import POSITIVE, class_names
from teller.models.voice import culprit_of


@dataclass(frozen=True, slots=True)
class Known:
    """A labelled run with what objects need: its causes, and where its ranks are."""

    one: Labelled
    faults: tuple[Episode, ...]  # as labels count them
    hosts: Mapping[int, str]
    devices: Mapping[int, str]


def known(one: Labelled, folder: Path) -> Known:
    """Give a run that `corpus.keep` left below `folder` with its causes and places."""
    place = folder / one.about.run
    run = Archived(place)
    ranks = run.ranks
    number = dict(zip(ranks["id"].to_pylist(), ranks["rank"].to_pylist(), strict=True))
    hosts = dict(zip(ranks["rank"].to_pylist(), ranks["host"].to_pylist(), strict=True))
    names = run.table("Device")
    name = dict(zip(names["id"].to_pylist(), names["name"].to_pylist(), strict=True))
    uses = run.table("USES_DEVICE.Rank.Device")
    devices = {
        number[s]: str(name[d])
        for s, d in zip(uses["src"].to_pylist(), uses["dst"].to_pylist(), strict=True)
        if s in number and name.get(d)
    }
    told = {r: str(h or "") for r, h in hosts.items()}
    return Known(one, faults_of(read_truth(place)), told, devices)


def faults_of(truth: Truth) -> tuple[Episode, ...]:
    """Give the causes in the order in which `Labels.episode` counts them."""
    named = (*class_names(), "no_effect")
    return tuple(e for e in truth.episodes if e.class_ in named)


def truths(runs: Sequence[Known]) -> Truths:
    """Give the truth of all iterations of these runs."""
    parts = []
    for at, run in enumerate(runs):
        labels, size = run.one.labels, len(run.one.labels.state)
        root = np.full(size, run.one.about.root_seed, np.int64)
        parts.append(Truths(np.full(size, at), root, labels.state, labels.klass, labels.share))
    return Truths.of(parts)


def says(run: Known, guess: Guess) -> Says:
    """Judge a guess."""
    held, labels, size = run.one.samples, run.one.labels, len(run.one.labels.state)
    of_op = held.rank_of[held.op_rank]
    said, positive = guess.said, labels.state == POSITIVE
    first = first_of(of_op, guess.op, labels.op, size)
    best = best_of(of_op, guess.op, size)
    gold = best_of(of_op, np.where(labels.op == 1, 1.0, -1.0), size)
    code = np.array([_code(str(t)) for t in held.texts] or [0], np.int64)
    named = np.where(best >= 0, code[held.op_word[best]], -1) if len(of_op) else best
    true = np.where(gold >= 0, code[held.op_word[gold]], -1) if len(of_op) else gold
    asked = ~np.isnan(first)
    true = np.where(asked, np.where(first > 0, named, true), -1)
    named = np.where(asked & (first < 1) & (named == true), -1, named)  # its name on another rank
    return Says(
        chance=guess.chance, said=np.where(positive, said, -1),
        sure=np.where(positive, guess.classes.max(axis=1, initial=0.0), 0.0),
        rank=first_of(held.rank_of, guess.rank, labels.rank, size), first=first,
        third=first_of(of_op, guess.op, labels.op, size, best=3), op_said=named, op_true=true,
        object=_objects(run, guess, said, best),
    )  # fmt: skip


def best_of(group: Ints, score: Floats, size: int) -> Ints:
    """Give the row with the highest score of each group, the first where equal; -1 for none."""
    order = np.lexsort((np.arange(len(group)), -score, group))
    found = np.full(size, -1)
    own, at = np.unique(group[order], return_index=True)
    found[own] = order[at]
    return found


def _code(text: str) -> int:
    """Give a number to an operator's name, the same in all runs."""
    return zlib.crc32(operator_of(text).encode()) & 0x7FFFFFFF


def _objects(run: Known, guess: Guess, said: Ints, op: Ints) -> Floats:
    """Tell of each positive iteration whether the object that would be blamed is the true one."""
    held, size = run.one.samples, len(said)
    rank = best_of(held.rank_of, guess.rank, size)
    host = np.array([_host_code(run, r) for r in held.rank.tolist()], np.int64)
    elsewhere = host != host[rank[held.rank_of]]
    other = best_of(held.rank_of, np.where(elsewhere, guess.rank, -np.inf), size)
    other = np.where((other >= 0) & elsewhere[other], other, rank)
    word = held.op_word[np.maximum(op, 0)] if len(held.op_word) else op
    word = np.where(op >= 0, word, -1)
    asked = np.flatnonzero(run.one.labels.episode >= 0)
    found = np.full(size, np.nan)
    if not len(asked):
        return found
    rows = np.stack(
        [said, held.rank[rank], held.rank[other], word, run.one.labels.episode], axis=1
    )[asked]  # fmt: skip
    kinds, at = np.unique(rows, axis=0, return_inverse=True)
    right = np.array([_right(run, *row) for row in kinds.tolist()], float)
    found[asked] = right[at.ravel()]
    return found


def _host_code(run: Known, rank: int) -> int:
    return zlib.crc32(run.hosts.get(rank, "").encode())


def _right(run: Known, said: int, first: int, second: int, word: int, episode: int) -> bool:
    if said < 0:
        return False
    named = [(str(run.one.samples.texts[word]), 1.0)] if word >= 0 else []
    ours: Culprit = culprit_of(
        class_names()[said], [first, second], named, run.hosts, run.devices
    )  # fmt: skip
    return same(ours, run.faults[episode].culprit)
