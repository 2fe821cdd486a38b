"""The model's voice: which iterations it calls abnormal, of what class, and who is to blame.

It says nothing of what a user may read by itself: `fusion` makes findings of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from teller.graph.classes import classes
from teller.graph.finding import Culprit
from teller.graph.medians import Floats, Ints
from teller.models.samples.sample import Samples
from teller.models.scorer import Scores

BRIDGE: Final = 3  # iterations that an episode may pause
FEWEST: Final = 2  # iterations of an episode, unless one towers
TOWER: Final = 0.5  # excess of a single iteration that is an episode, in usual steps
SURE: Final = 0.35  # least share of the classes that the first one needs: below it is "unknown"
UNKNOWN: Final = "unknown"
NAMED: Final = 3  # operators that are named
# Which part of a service a class is about, where that is all that can be blamed.
COMPONENTS: Final = {
    "compile_in_serving": "compiler", "cpu_launch_bound": "executor", "graph_fallback": "executor",
    "kv_preemption": "kv_cache", "log_storm": "frontend", "prefill_interference": "scheduler",
    "scheduler_overhead": "scheduler", "storage_stall": "storage", "tokenizer_stall": "tokenizer",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """One episode as the model tells it."""

    klass: str  # a class, or "unknown"
    chance: float  # that these iterations are abnormal: the upper quartile of them
    class_chance: float
    culprit: Culprit
    operators: tuple[tuple[str, float], ...]  # the guiltiest first, with chances
    steps: tuple[int, ...]  # step_index
    start_ns: int
    end_ns: int
    excess_ns: int
    share: float  # of the time of these iterations
    worst: tuple[int, int]  # rank and step_index of the largest excess, on the culprit if it is one


def episodes(
    samples: Samples,
    scores: Scores,
    names: Sequence[str],
    threshold: float,
    hosts: Mapping[int, str],
    devices: Mapping[int, str],
) -> list[Said]:
    """Give the episodes of a run, the costliest first; `hosts` and `devices` are of ranks."""
    found = []
    for replica in np.unique(samples.replica).tolist():
        mine = np.flatnonzero(samples.replica == replica)
        mine = mine[np.argsort(samples.start_ns[mine], kind="stable")]
        hit = np.flatnonzero(scores.chance[mine] >= threshold)
        for part in np.split(hit, np.flatnonzero(np.diff(hit) > BRIDGE) + 1):
            rows = mine[part]
            if len(rows) and _stands(samples, rows):
                found.append(_said(samples, scores, names, rows, hosts, devices))
    return sorted(found, key=lambda s: -s.excess_ns)


def _stands(samples: Samples, rows: Ints) -> bool:
    excess = _excess(samples)[rows]
    return len(rows) >= FEWEST or bool((excess > TOWER * samples.usual_ns[rows]).any())


def _excess(samples: Samples) -> Ints:
    """Give the excess of each iteration: its latest rank's."""
    most = np.zeros(len(samples.step_index), np.int64)
    np.maximum.at(most, samples.rank_of, samples.rank_excess_ns)
    return most


def _said(
    samples: Samples,
    scores: Scores,
    names: Sequence[str],
    rows: Ints,
    hosts: Mapping[int, str],
    devices: Mapping[int, str],
) -> Said:
    shares = np.average(scores.classes[rows], axis=0, weights=scores.chance[rows] + 1e-6)
    first = int(np.argmax(shares))
    klass = names[first] if shares[first] >= SURE else UNKNOWN
    excess = int(_excess(samples)[rows].sum())
    start, end = int(samples.start_ns[rows].min()), int(samples.end_ns[rows].max())
    whole = int((samples.end_ns[rows] - samples.start_ns[rows]).sum())
    guilty = _operators(samples, scores, rows)
    who = culprit_of(klass, _ranks(samples, scores, rows), guilty, hosts, devices)
    return Said(
        klass, float(np.quantile(scores.chance[rows], 0.75)), float(shares[first]), who, guilty,
        tuple(np.sort(samples.step_index[rows]).tolist()), start, end, excess,
        excess / max(whole, 1), _worst(samples, rows, who.ranks),
    )  # fmt: skip


def _worst(samples: Samples, rows: Ints, ranks: Sequence[int]) -> tuple[int, int]:
    mine = np.isin(samples.rank_of, rows)
    if ranks and np.isin(samples.rank[mine], ranks).any():
        mine &= np.isin(samples.rank, ranks)
    at = np.flatnonzero(mine)[np.argmax(samples.rank_excess_ns[mine])]
    return int(samples.rank[at]), int(samples.rank_step[at])


def _ranks(samples: Samples, scores: Scores, rows: Ints) -> list[int]:
    """Give the ranks, the likeliest culprit first."""
    mine = np.isin(samples.rank_of, rows)
    rank, at = np.unique(samples.rank[mine], return_inverse=True)
    mean = np.bincount(at, scores.rank[mine]) / np.maximum(np.bincount(at), 1)
    order: list[int] = rank[np.argsort(-mean, kind="stable")].tolist()
    return order


def _operators(samples: Samples, scores: Scores, rows: Ints) -> tuple[tuple[str, float], ...]:
    mine = np.isin(samples.rank_of[samples.op_rank], rows)
    if not mine.any():
        return ()
    chance: Floats = 1 / (1 + np.exp(-np.clip(scores.op[mine], -60, 60)))
    word, at = np.unique(samples.op_word[mine], return_inverse=True)
    most = np.zeros(len(word))
    np.maximum.at(most, at, chance)
    order = np.argsort(-most, kind="stable")[:NAMED]
    return tuple((str(samples.texts[word[i]]), round(float(most[i]), 3)) for i in order)


def culprit_of(
    klass: str,
    ranks: Sequence[int],
    guilty: Sequence[tuple[str, float]],
    hosts: Mapping[int, str],
    devices: Mapping[int, str],
) -> Culprit:
    """Give the object that a class blames: its kind is the class's, its place the model's."""
    known = classes().get(klass)
    kind = known.culprits[0] if known and known.culprits else "none"
    first = ranks[0] if ranks else None
    host = hosts.get(first, "") if first is not None else ""
    operators = tuple(name for name, _ in guilty[:1])
    if kind == "operator":
        return Culprit("operator", operators=operators)
    if kind == "component" and klass in COMPONENTS:
        return Culprit("component", components=(COMPONENTS[klass],))
    if first is None or kind in ("none", "component", "group", "request"):
        return Culprit(kind)
    if kind == "rank":
        return Culprit("rank", ranks=(first,), hosts=(host,) if host else ())
    if kind == "device" and first in devices:
        return Culprit("device", ranks=(first,), hosts=(host,), devices=(devices[first],))
    if kind == "link":
        others = dict.fromkeys(h for r in ranks if (h := hosts.get(r, "")) and h != host)
        both = tuple(pair for other in others for pair in ((host, other), (other, host)))
        return Culprit("link", hosts=(host,), links=both)
    return Culprit("host", hosts=(host,) if host else ())
