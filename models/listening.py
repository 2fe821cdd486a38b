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
from teller.models.case import Case
from teller.models.samples.sample import Samples, samples_of
from teller.models.scorer import Scorer, Scores
from teller.models.voice import UNKNOWN, Said, episodes

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
class Heard:
    """What the model says of one run, with evidence for each, and what it could not tell."""

    said: tuple[Said, ...] = ()
    evidence: tuple[tuple[Evidence, ...], ...] = ()
    notes: tuple[str, ...] = ()
    samples: Samples | None = None
    scores: Scores | None = None


@cache
def scorer(folder: Path) -> Scorer:
    """Give the model of a folder, opened once."""
    return Scorer(folder)


def hear(generation: Path, store: Store, run: int, folder: Path) -> Heard:
    """Score a run; its tables come from `generation`, the evidence from the store."""
    model = scorer(folder)
    samples = samples_of(Archived(generation))
    if not len(samples.step_index):
        return Heard()
    scores = model.score(samples)
    case = Case(store, run)
    hosts = {r: str(row["host"] or "") for r, row in case.ranks.items()}
    devices = {r: str(row["device"]) for r, row in case.ranks.items() if row["device"]}
    threshold, _ = model.card.curve.threshold()
    said = episodes(samples, scores, model.card.classes, threshold, hosts, devices)
    shown = tuple(tuple(_evidence(one, case)) for one in said)
    return Heard(tuple(said), shown, tuple(_notes(said, samples, scores)), samples, scores)


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
