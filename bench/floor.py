"""Diagnose a set of labelled runs by rules and numbers alone, and count what was right.

`floor.py SET…` takes folders of runs with their truths beside them, writes one row a run to
`SET/floor.tsv` (a run that is there already is not done again), then the tables of all to `-o`.
"""

import argparse
import csv
import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from teller import pipeline
from teller.graph.classes import classes
from teller.graph.finding import Finding
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.lab.truth import Episode, Truth, read_truth

TABLE: Final = "floor.tsv"
NONE: Final = "–"
LOUD: Final = ("critical", "high", "medium")
BANDS: Final = ((0.0, 0.03), (0.03, 0.1), (0.1, 0.5), (0.5, float("inf")))


@dataclass(frozen=True, slots=True)
class Row:
    """One run: what was true of its strongest cause, and what was said first."""

    run: str
    truth: str  # class, – for none
    said: str  # class of the first loud finding of a fault, – for none
    any_right: bool  # some loud finding has the class
    culprit_right: bool  # and names the object
    others: int  # loud findings of other faults
    share: float  # largest share of a step
    steps: int


def main() -> None:
    """Do all runs of the folders, two at a time, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("-o", type=Path, default=Path("docs/floor.md"))
    parser.add_argument("--most", type=int, default=10**9, help="runs of each set")
    asked = parser.parse_args()
    text = ["# What rules and numbers alone find\n", _HEAD]
    for folder in asked.sets:
        rows = list(_all(folder, asked.most))
        text += [f"\n## {folder.name}\n", *_tables(rows)]
    asked.o.write_text("\n".join(text) + "\n")


_HEAD: Final = (
    "The floor for the model: `teller diagnose` without learning, on labelled runs. A run counts "
    "for its strongest\ncause; causes that no step felt (under 3 %) count as none. Loud: "
    "findings from medium up.\n`bench/floor.py SETS` makes this page."
)


def _all(folder: Path, most: int) -> Iterator[Row]:
    path = folder / TABLE
    done = {r.run: r for r in _read(path)} if path.exists() else {}
    runs = sorted(p for p in folder.iterdir() if (p / "manifest.json").exists())[:most]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        wanted = [p for p in runs if p.name not in done]
        for row in pool.map(_one, wanted):
            done[row.run] = row
            _write(path, list(done.values()))
    yield from (done[p.name] for p in runs)


def _one(run: Path) -> Row:
    truth = read_truth(run)
    scratch = Path(tempfile.mkdtemp(prefix="teller-floor-"))
    try:
        place = Workspace(scratch, project=project, rest=rest)
        said = pipeline.diagnose([run], place, pipeline.Options(), pipeline.Silent()).findings
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return judged(run.name, truth, said)


def judged(run: str, truth: Truth, said: Sequence[Finding]) -> Row:
    """Compare what was said of a run with its truth."""
    loud = [f for f in said if f.severity in LOUD and classes()[f.klass].verdict == "fault"]
    cause = strongest(truth)
    name = cause.class_ if cause else NONE
    right = [f for f in loud if f.klass == name]
    steps = {(s.rank, s.step_index) for e in truth.episodes for s in e.steps}
    return Row(
        run, name, loud[0].klass if loud else NONE, bool(right),
        any(cause is not None and same(f, cause) for f in right), len(loud) - len(right),
        float(cause.measured.get("largest_share", 0.0)) if cause else 0.0, len(steps),
    )  # fmt: skip


def strongest(truth: Truth) -> Episode | None:
    """Give the episode of a fault that was felt most."""
    faults = [e for e in truth.episodes if classes()[e.class_].verdict == "fault"]
    return max(faults, key=lambda e: float(e.measured.get("largest_share", 0.0)), default=None)


def same(finding: Finding, cause: Episode) -> bool:
    """Tell whether a finding blames the object of a cause: its kind, and that kind's list."""
    kind = cause.culprit.kind
    if finding.culprit.kind != kind:
        return False
    name = f"{kind}s"
    ours, theirs = getattr(finding.culprit, name, ()), getattr(cause.culprit, name, ())
    if kind == "operator":
        return bool(set(map(_bare, ours)) & set(map(_bare, theirs)))
    return {*map(_plain, ours)} == {*map(_plain, theirs)}


def _plain(value: object) -> object:
    return tuple(sorted(value)) if isinstance(value, (list, tuple)) else value


def _bare(name: str) -> str:
    from teller.ingest.operators import operator_of

    return operator_of(name)


def _tables(rows: Sequence[Row]) -> list[str]:
    faulty = [r for r in rows if r.truth != NONE]
    clean = [r for r in rows if r.truth == NONE]
    alarms = sum(r.said != NONE for r in clean)
    lines = [
        f"{len(rows)} runs, {len(faulty)} with a fault. False alarms: {alarms} of {len(clean)} "
        "runs without one.\n",
        "| share of the step | runs | said something | class right | culprit right |",
        "|---|--:|--:|--:|--:|",
    ]
    for low, high in BANDS:
        band = [r for r in faulty if low <= r.share < high]
        lines.append(f"| {low:.0%} to {high:.0%} | " + _counts(band))
    lines[-1] = lines[-1].replace("inf%", "more")
    return [*lines, "", *_by_class(rows), "", *_confusion(rows)]


def _counts(rows: Sequence[Row]) -> str:
    said, right = sum(r.said != NONE for r in rows), sum(r.any_right for r in rows)
    return f"{len(rows)} | {said} | {right} | {sum(r.culprit_right for r in rows)} |"


def _by_class(rows: Sequence[Row]) -> list[str]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.truth].append(row)
    head = [
        "| class | runs | said something | class right | culprit right |",
        "|---|--:|--:|--:|--:|",
    ]
    return head + [f"| {name} | {_counts(groups[name])}" for name in sorted(groups)]


def _confusion(rows: Sequence[Row]) -> list[str]:
    pairs = Counter((r.truth, r.said) for r in rows if r.truth != r.said)
    head = ["| true | said first instead | runs |", "|---|---|--:|"]
    return head + [f"| {a} | {b} | {n} |" for (a, b), n in pairs.most_common()]


def _read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            Row(r["run"], r["truth"], r["said"], r["any_right"] == "True",
                r["culprit_right"] == "True", int(r["others"]), float(r["share"]), int(r["steps"]))
            for r in csv.DictReader(file, delimiter="\t")
        ]  # fmt: skip


def _write(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], delimiter="\t")
        writer.writeheader()
        writer.writerows(asdict(r) for r in rows)


if __name__ == "__main__":
    main()
