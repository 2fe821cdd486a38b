"""Sets of runs: what is in them, by hash, and how two makings of one set compare.

No two makings are equal, since the machine takes part; they are judged by their distributions.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from teller.errors import NothingUsable
from teller.lab.testbed.meetings import Floats
from teller.lab.truth import Episode, Truth, read_truth, truth_path

SCHEMA: Final = "teller.testbed-set/1"
NAME: Final = "set.json"
ALL: Final = "all"
FIGURES: Final = ("direct_share", "excess_share_at_equal_load", "auc", "pure_us")


def truths(folder: Path) -> dict[Path, Truth]:
    """Give the truth of each run of a folder, by run."""
    runs = sorted(one for one in folder.glob("*/") if truth_path(one).exists())
    if not runs:
        raise NothingUsable(f"{folder}: no runs of the testbed here")
    return {run: read_truth(run) for run in runs}


def write_set(folder: Path) -> dict[str, Any]:
    """Write down which files a set has and what was measured in it; give that."""
    known = truths(folder)
    made = {
        "schema": SCHEMA,
        "runs": {
            run.name: {
                "files": {file.name: _hash(file) for file in sorted(run.iterdir())},
                "truth": _hash(truth_path(run)), "root_seed": truth.root_seed,
                "quiet": truth.extra["certificate"]["quiet"],
            }
            for run, truth in known.items()
        },
        "faults": distribution(known.values()),
    }  # fmt: skip
    (folder / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1))
    return made


def distribution(known: Iterable[Truth]) -> dict[str, dict[str, Any]]:
    """Give for each kind how many episodes there are, how many had an effect, and how strong."""
    return {
        name: {
            "episodes": len(some),
            "with_effect": _effective(some),
            **{figure: _quartiles(_values(some, figure)) for figure in FIGURES},
        }
        for name, some in sorted(_by_kind(known).items())
    }


def compared(one: Path, other: Path) -> list[dict[str, Any]]:
    """Give a row a kind, and one for all: both makings, and how far apart their direct shares are.

    The distance is Kolmogorov and Smirnov's, 0 alike to 1 apart; `bound` is what two makings of
    one law stay under in 95 of 100 cases, which says little of a few episodes.
    """
    parts = [_by_kind(truths(folder).values()) for folder in (one, other)]
    rows = [_row(name, [part.get(name, []) for part in parts])
            for name in sorted({*parts[0], *parts[1]})]  # fmt: skip
    whole = [[one for some in part.values() for one in some] for part in parts]
    return [*rows, _row(ALL, whole)]


def _row(name: str, pair: list[list[Episode]]) -> dict[str, Any]:
    values = [_values(some, "direct_share") for some in pair]
    return {
        "fault": name, "episodes": [len(some) for some in pair],
        "with_effect": [_effective(some) for some in pair],
        "direct_share": [_quartiles(v) for v in values],
        "distance": _distance(*values), "bound": _bound(*map(len, values)),
    }  # fmt: skip


def _by_kind(known: Iterable[Truth]) -> dict[str, list[Episode]]:
    found: dict[str, list[Episode]] = defaultdict(list)
    for truth in known:
        if "life" not in truth.extra:  # a window of another run: the same episode again
            for one in truth.episodes:
                found[one.fault].append(one)
    return found


def _effective(episodes: list[Episode]) -> int:
    return sum(not one.benign for one in episodes)


def _values(episodes: list[Episode], figure: str) -> Floats:
    told = [_plain(one.measured.get(figure)) for one in episodes]
    return np.array([value for value in told if value is not None], float)


def _plain(value: float | Mapping[str, float] | None) -> float | None:
    """Give a figure, of a pair what it grew by."""
    if isinstance(value, Mapping):
        before, during = value["healthy"], value["during"]
        return during / before if before and during else None
    return value


def _quartiles(values: Floats) -> list[float] | None:
    if not len(values):
        return None
    return [round(float(q), 4) for q in np.percentile(values, [25, 50, 75])]


def _distance(one: Floats, other: Floats) -> float | None:
    if not len(one) or not len(other):
        return None
    at = np.sort(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(v), at, "right") / len(v) for v in (one, other)]
    return round(float(np.max(np.abs(shares[0] - shares[1]))), 3)


def _bound(one: int, other: int) -> float | None:
    if not one or not other:
        return None
    return round(min(1.0, 1.358 * ((one + other) / (one * other)) ** 0.5), 3)


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:32]
