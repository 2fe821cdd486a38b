"""Rules and numbers alone as a judge: `teller diagnose --no-model`, held against iterations."""

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from teller import pipeline
from teller.graph.classes import classes
from teller.graph.finding import Culprit, Finding
from teller.graph.keep import rest
from teller.graph.medians import Ints
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.ingest.operators import operator_of
from teller.learning.evaluating.columns import Says
from teller.learning.evaluating.judging import Known
from teller.learning.objects import same
from teller.models.measures import Bools
from teller.models.samples.labels import POSITIVE, class_names

LOUD: Final = ("critical", "high", "medium")
NEVER: Final = -1.0  # the chance of an iteration of which nothing is said


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One loud finding of a fault."""

    klass: str
    confidence: float
    start_ns: int | None
    end_ns: int | None
    culprit: dict[str, Any]

    @property
    def blames(self) -> Culprit:
        """Give who is to blame."""
        return Culprit(**{k: _frozen(v) for k, v in self.culprit.items()})


def diagnosed(
    raw: Mapping[str, Path], cache: Path, step: Callable[[], None]
) -> dict[str, list[Heard]]:
    """Diagnose run folders, each once: what was found is kept below `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    wanted = [p for n, p in raw.items() if not (cache / f"{n}.json").exists()]
    for _ in range(len(raw) - len(wanted)):
        step()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), spawn) as pool:
        for done in as_completed([pool.submit(_diagnose, p, cache) for p in wanted]):
            done.result()
            step()
    return {
        n: msgspec.json.decode((cache / f"{n}.json").read_bytes(), type=list[Heard]) for n in raw
    }


def _diagnose(run: Path, cache: Path) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="teller-rules-"))
    try:
        place = Workspace(scratch, project=project, rest=rest)
        said = pipeline.diagnose([run], place, pipeline.Options(), pipeline.Silent())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)  # a scratch folder: what stays is no harm
    told = [_heard(f) for f in said.findings if loud(f)]
    beside = cache / f"{run.name}.new"
    beside.write_bytes(msgspec.json.encode(told))
    beside.replace(cache / f"{run.name}.json")


def loud(finding: Finding) -> bool:
    """Tell whether a finding claims a fault, at medium or above."""
    return finding.severity in LOUD and classes()[finding.klass].verdict == "fault"


def _heard(f: Finding) -> Heard:
    return Heard(
        klass=f.klass, confidence=f.confidence, start_ns=f.start_ns, end_ns=f.end_ns,
        culprit=asdict(f.culprit),
    )  # fmt: skip


def says(run: Known, heard: Sequence[Heard]) -> Says:
    """Judge findings iteration by iteration: the surest that speaks of its time is what is said."""
    held, labels, size = run.one.samples, run.one.labels, len(run.one.labels.state)
    chance, at = np.full(size, NEVER), np.full(size, -1)
    for number, one in enumerate(heard):
        better = _covers(one, held.start_ns, held.end_ns) & (one.confidence > chance)
        chance[better], at[better] = one.confidence, number
    names, positive = class_names(), labels.state == POSITIVE
    klass = np.array([names.index(h.klass) for h in heard] + [-1])[at]
    name = np.array([operator_of(str(t)) for t in held.texts] or [""])
    gold, struck = np.flatnonzero(labels.op == 1), np.flatnonzero(labels.rank == 1)
    of_gold = held.rank_of[held.op_rank[gold]]
    asked = {"object": positive, "rank": _any(size, held.rank_of[struck]),
             "first": _any(size, of_gold), "third": _any(size, of_gold)}  # fmt: skip
    right = {n: np.zeros(size, bool) for n in asked}
    for number, one in enumerate(heard):
        here, who = positive & (at == number), one.blames
        for episode in np.unique(labels.episode[here]).tolist():
            if same(who, run.faults[episode].culprit):
                right["object"] |= here & (labels.episode == episode)
        hit = struck[np.isin(held.rank[struck], who.ranks[:1])]
        right["rank"] |= here & _any(size, held.rank_of[hit])
        for column, many in (("first", 1), ("third", 3)):
            said = np.isin(name[held.op_word[gold]], [operator_of(o) for o in who.operators[:many]])
            right[column] |= here & _any(size, of_gold[said])
    true = np.full(size, -1)
    true[of_gold] = held.op_word[gold]
    return Says(
        chance=chance, said=np.where(positive, klass, -1),
        sure=np.where(positive & (at >= 0), 1.0, 0.0),
        op_said=np.where(right["first"], true, -1), op_true=true,
        **{n: np.where(asked[n], right[n], np.nan) for n in asked},
    )  # fmt: skip


def _any(size: int, rows: Ints) -> Bools:
    found = np.zeros(size, bool)
    found[rows] = True
    return found


def _covers(one: Heard, start_ns: Ints, end_ns: Ints) -> Bools:
    """Tell of which iterations a finding speaks; one without a time speaks of all."""
    if one.start_ns is None or one.end_ns is None:
        return np.ones(len(start_ns), bool)
    return (start_ns <= one.end_ns) & (end_ns >= one.start_ns)


def _frozen(said: Any) -> Any:
    return tuple(_frozen(x) for x in said) if isinstance(said, list) else said
