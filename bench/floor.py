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
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from teller import pipeline
from teller.graph.classes import classes
from teller.graph.finding import Diagnosis, Finding
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.lab.truth import Episode, Truth, read_truth
from teller.learning.objects import same

TABLE: Final = "floor.tsv"
NONE: Final = "–"
LOUD: Final = ("critical", "high", "medium")
SLACK_NS: Final = 200_000_000  # clocks of hosts may be off by some of it
BANDS: Final = ((0.0, 0.03), (0.03, 0.1), (0.1, 0.5), (0.5, float("inf")))


@dataclass(frozen=True, slots=True)
class Row:
    """One cause of a run, or, with – for the truth, all that was said beside causes."""

    run: str
    number: int  # of the cause in its run, -1 for what is beside them
    truth: str  # class, – for none
    said: str  # class of the first loud finding in its time, – for none
    any_right: bool  # some loud finding in its time has the class
    culprit_right: bool  # and names the object
    share: float  # largest share of a step


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
    "The floor for the model: `teller diagnose` without learning, on labelled runs. A fault counts "
    "as found by a loud\nfinding (medium or above) that speaks of its time; causes that no step "
    "felt (under 3 %) are no faults.\n`python bench/floor.py SETS` makes this page."
)


def _all(folder: Path, most: int) -> Iterator[Row]:
    path = folder / TABLE
    done: dict[str, list[Row]] = defaultdict(list)
    for row in _read(path) if path.exists() else []:
        done[row.run].append(row)
    runs = sorted((p for p in folder.iterdir() if (p / "manifest.json").exists()), key=_size)[:most]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        wanted = [pool.submit(_one, p) for p in runs if p.name not in done]
        for rows in (one.result() for one in as_completed(wanted)):
            done[rows[0].run] = rows
            _write(path, [r for some in done.values() for r in some])
    for run in runs:
        yield from done[run.name]


def _size(run: Path) -> tuple[int, str]:
    """Order runs by their bytes: what is cut off is the largest of them."""
    return sum(p.stat().st_size for p in run.iterdir()), run.name


def _one(run: Path) -> list[Row]:
    truth = read_truth(run)
    scratch = Path(tempfile.mkdtemp(prefix="teller-floor-"))
    try:
        place = Workspace(scratch, project=project, rest=rest)
        said = pipeline.diagnose([run], place, pipeline.Options(), pipeline.Silent())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)  # a scratch folder: what stays is no harm
    return judged(truth, said)


def judged(truth: Truth, said: Diagnosis) -> list[Row]:
    """Compare what was said of a run with its causes: each by what was said of its time."""
    zero = {r.id: r.t0_epoch_ns for r in said.runs}
    loud = [
        f for f in said.findings
        if f.severity in LOUD and classes()[f.klass].verdict == "fault"
    ]  # fmt: skip
    start = int(truth.extra["t0_epoch_ns"])
    faults = [e for e in truth.episodes if classes()[e.class_].verdict == "fault"]
    met: set[int] = set()
    rows = []
    for number, cause in enumerate(faults):
        inside = [f for f in loud if _meets(f, zero[f.run] - start, cause)]
        met |= {f.id for f in inside}
        right = [f for f in inside if f.klass == cause.class_]
        rows.append(Row(
            truth.run, number, cause.class_, inside[0].klass if inside else NONE, bool(right),
            any(same(f.culprit, cause.culprit) for f in right), float(_share(cause)),
        ))  # fmt: skip
    beside = [f for f in loud if f.id not in met]
    rows.append(Row(truth.run, -1, NONE, beside[0].klass if beside else NONE, False, False, 0.0))
    return rows


def _share(cause: Episode) -> float:
    return max((s.share for s in cause.steps), default=0.0)


def _meets(finding: Finding, later_ns: int, cause: Episode) -> bool:
    """Tell whether a finding speaks of the time of a cause; one without a time speaks of all."""
    if finding.start_ns is None or finding.end_ns is None:
        return True
    first, last = finding.start_ns + later_ns, finding.end_ns + later_ns
    return first <= cause.intended.end_ns + SLACK_NS and last >= cause.intended.start_ns - SLACK_NS


def _tables(rows: Sequence[Row]) -> list[str]:
    faulty = [r for r in rows if r.truth != NONE]
    beside = [r for r in rows if r.truth == NONE]
    alarms = sum(r.said != NONE for r in beside)
    clean = {r.run for r in beside} - {r.run for r in faulty}
    quiet = sum(r.said != NONE for r in beside if r.run in clean)
    lines = [
        f"{len(beside)} runs, {len(faulty)} faults. Runs in which something was said at a time "
        f"without a fault: {alarms}; of the {len(clean)} runs without any fault: {quiet}.\n",
        "| largest share of a step | faults | said something | class right | culprit right |",
        "|---|--:|--:|--:|--:|",
    ]
    for low, high in BANDS:
        band = [r for r in faulty if low <= r.share < high]
        until = "more" if high == float("inf") else f"{high:.0%}"
        lines.append(f"| {low:.0%} to {until} | {_counts(band)}")
    return [*lines, "", *_by_class(faulty), "", *_confusion(rows)]


def _counts(rows: Sequence[Row]) -> str:
    said, right = sum(r.said != NONE for r in rows), sum(r.any_right for r in rows)
    return f"{len(rows)} | {said} | {right} | {sum(r.culprit_right for r in rows)} |"


def _by_class(rows: Sequence[Row]) -> list[str]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.truth].append(row)
    head = [
        "| class | faults | said something | class right | culprit right |",
        "|---|--:|--:|--:|--:|",
    ]
    return head + [f"| {name} | {_counts(groups[name])}" for name in sorted(groups)]


def _confusion(rows: Sequence[Row]) -> list[str]:
    pairs = Counter((r.truth, r.said) for r in rows if r.truth != r.said)
    head = ["| true | said first instead | times |", "|---|---|--:|"]
    return head + [f"| {a} | {b} | {n} |" for (a, b), n in pairs.most_common()]


def _read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            Row(r["run"], int(r["number"]), r["truth"], r["said"], r["any_right"] == "True",
                r["culprit_right"] == "True", float(r["share"]))
            for r in csv.DictReader(file, delimiter="\t")
        ]  # fmt: skip


def _write(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], delimiter="\t")
        writer.writeheader()
        writer.writerows(asdict(r) for r in rows)


if __name__ == "__main__":
    main()
