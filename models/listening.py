"""Ask a model about a run of the archive, and show what its words rest on."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from teller.graph import ids
from teller.graph.finding import Evidence
from teller.graph.store import Store
from teller.models.archived import Archived
from teller.models.calibration import PER_1000, on_healthy
from teller.models.case import Case
from teller.models.samples.sample import Samples, samples_of
from teller.models.samples.words import Words
from teller.models.scorer import Scorer, Scores
from teller.models.voice import UNKNOWN, Said, episodes

SHIPPED: Final = Path(__file__).with_name("weights")  # the model that comes with the code

PLACE_MASK: Final = (1 << ids.PLACE_BITS) - 1
MANY_UNKNOWN: Final = 0.5  # share of strings without a vector from which on it is said

_STEP: Final = """
MATCH (t:Step) WHERE t.run_id = $run AND t.rank = $rank AND t.step_index = $at
RETURN t.id AS id, t.dur_ns AS dur_ns, t.excess_ns AS over
"""
_SPAN: Final = """
MATCH (s:Span) WHERE s.run_id = $run AND s.rank = $rank AND s.step_index = $at
      AND s.operator = $operator
RETURN s.id AS id, s.input_id AS input_id, s.own_ns AS own_ns, s.excess_ns AS over
ORDER BY over DESC, id LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Ask:
    """Which model is asked, and how."""

    folder: Path = SHIPPED
    per_1000: float = PER_1000  # clean steps in 1,000 that may be called abnormal
    words: Path | None = None  # where vectors of new strings are kept; None: none are made


@dataclass(frozen=True, slots=True)
class Heard:
    """What the model says of one run, with evidence for each, and what it could not tell."""

    said: tuple[Said, ...] = ()
    evidence: tuple[tuple[Evidence, ...], ...] = ()
    notes: tuple[str, ...] = ()
    calibrated: bool = False  # on a healthy run of the same deployment


@cache
def scorer(folder: Path) -> Scorer:
    """Give the model of a folder, opened once."""
    return Scorer(folder)


def hear(generation: Path, store: Store, run: int, ask: Ask, healthy: Path | None = None) -> Heard:
    """Score a run; its tables come from `generation`, the evidence from the store.

    `healthy` is the generation of a healthy run of the same deployment, to calibrate on.
    """
    model = scorer(ask.folder)
    samples = samples_of(Archived(generation))
    if not len(samples.step_index):
        return Heard()
    scores = model.score(samples, _words(model, samples, ask.words))
    case = Case(store, run)
    hosts = {r: str(row["host"] or "") for r, row in case.ranks.items()}
    devices = {r: str(row["device"]) for r, row in case.ranks.items() if row["device"]}
    threshold, promised = model.card.curve.threshold(ask.per_1000)
    if healthy is not None:
        usual = samples_of(Archived(healthy))
        chance = model.score(usual, _words(model, usual, ask.words)).chance
        threshold, promised = on_healthy(threshold, chance, ask.per_1000)
    said = episodes(samples, scores, model.card.classes, threshold, hosts, devices)
    shown = tuple(tuple(_evidence(one, case)) for one in said)
    notes: list[str] = []
    if said:
        notes += _notes(said, samples, scores)
        notes += _calibration(ask.per_1000, promised, healthy is not None)
    return Heard(tuple(said), shown, tuple(notes), healthy is not None)


def _words(model: Scorer, samples: Samples, kept: Path | None) -> Words:
    """Give the model's vectors, with those of strings that it does not know where it may encode."""
    if kept is None:
        return model.words
    from teller.models.learn import encoding  # imports torch: only where the user asks for it

    known = model.words
    if kept.exists():
        own = Words.load(kept)
        new = [s for s in own if s not in known]
        known = known.with_more(new, own.of(new))
    more = encoding.encoded(sorted({str(s) for s in samples.texts}), known)
    if more is not known:
        kept.parent.mkdir(parents=True, exist_ok=True)
        more.save(kept)
    return more


def _calibration(per_1000: float, promised: bool, here: bool) -> Iterator[str]:
    """Say what the rate of false alarms rests on."""
    if not here:
        yield (
            "the model is not calibrated here: what it alone says is `low`; name a healthy run of "
            "this deployment with --baseline"
        )
    if not promised:
        yield (
            f"{per_1000:g} false alarms in 1,000 steps are kept on what the model was calibrated "
            "on, but so few clean steps or runs cannot promise them"
        )


def _evidence(one: Said, case: Case) -> Iterator[Evidence]:
    rank, at = one.worst
    path = case.rank_inputs.get(rank, "")
    for row in case.rows(_STEP, {"rank": rank, "at": at}):
        took, over = row["dur_ns"] / 1e6, (row["over"] or 0) / 1e6
        text = f"step {at} of rank {rank}: {took:.2f} ms, {over:.2f} ms above its like"
        yield Evidence("effect", "Step", row["id"], path, text)
    for name, _ in one.operators:
        for row in case.rows(_SPAN, {"rank": rank, "at": at, "operator": name}):
            own, over = row["own_ns"] / 1e6, (row["over"] or 0) / 1e6
            text = f"{name} on rank {rank}: {own:.2f} ms of its own, {over:.2f} ms above its like"
            place = f"{case.inputs.get(row['input_id'] or 0, path)}:{row['id'] & PLACE_MASK}"
            yield Evidence("cause", "Span", row["id"], place, text)


def _notes(said: list[Said], samples: Samples, scores: Scores) -> Iterator[str]:
    for one in said:
        if one.klass == UNKNOWN:
            yield (
                f"the model takes steps {one.steps[0]} to {one.steps[-1]} for abnormal "
                f"({one.chance:.0%}), but for none of the classes it knows"
            )
    share = len(scores.unknown_texts) / max(len(samples.texts), 1)
    if share > MANY_UNKNOWN:
        yield (
            f"the model knows no vector for {len(scores.unknown_texts)} of {len(samples.texts)} "
            "names and log templates of this run; it judged by their times alone"
        )
