"""A gate before any verdict: whether a recording holds together. Nothing is stored."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from teller import pipeline
from teller.graph import sanity
from teller.graph.classes import class_named
from teller.graph.finding import Quality, RunSummary
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.sanity import Check, Sanity
from teller.graph.store import Store
from teller.graph.workspace import Workspace
from teller.lab.manifest import read_manifest
from teller.models.case import Case
from teller.models.diagnose import applied
from teller.models.rule import rules
from teller.pipeline import Options, Progress

__all__ = ["checked"]

_STEPS: Final = """
MATCH (t:Step) WHERE t.run_id = $run
RETURN t.rank AS rank, count(*) AS steps, min(t.start_ns) AS begun, max(t.end_ns) AS ended
ORDER BY rank
"""
_MILD: Final = ("info", "low")
# What readers say of a capture that lost something, or whose clock was moved in the middle.
_LOSS: Final = ("lost", "dropped", "not all nvtx", "damaged", "is cut", "cannot be read")
_CLOCK: Final = ("clock was set", "machine slept")


def checked(paths: Sequence[Path], options: Options, progress: Progress) -> Sanity:
    """Read all that the paths hold into a place that is gone afterwards, and check it."""
    with tempfile.TemporaryDirectory(prefix="teller-gate-") as scratch:
        place = Workspace(Path(scratch), project=project, rest=rest)
        got = pipeline.ingest(paths, place, options, progress)
        if not got.runs:
            said = "; ".join(q.what for q in got.data_quality[:3]) or "no trace is in it"
            return Sanity((("", Check("readable", "bad", said, "teller doctor PATH says more")),))
        found: list[tuple[str, Check]] = []
        with place.reader() as store:
            for run in got.runs:
                found += [(run.name, c) for c in _of_run(store, run, _expected(paths))]
        found += [("", c) for c in _of_files(got.data_quality)]
    return Sanity(tuple(found))


def _expected(paths: Sequence[Path]) -> int | None:
    """Give how many ranks the collector was to record, as the manifest says it."""
    for path in paths:
        try:
            said = read_manifest(path).model.get("ranks")
        except (OSError, ValueError):
            continue
        if isinstance(said, int):
            return said
    return None


def _of_run(store: Store, run: RunSummary, expected: int | None) -> Iterator[Check]:
    rows = store.query(_STEPS, {"run": run.id}).to_pylist()
    counts = {row["rank"]: row["steps"] for row in rows}
    yield sanity.ranks(run.ranks, expected)
    yield sanity.windows([(row["rank"], row["begun"], row["ended"]) for row in rows])
    yield sanity.steps({rank: counts.get(rank, 0) for rank in run.ranks})
    case = Case(store, run.id)
    for rule in rules().values():
        if class_named(rule.klass).verdict == "data_quality":
            for finding in applied(rule, case).findings:
                state: sanity.State = "weak" if finding.severity in _MILD else "bad"
                yield Check(finding.klass, state, finding.title, finding.next_step)


def _of_files(found: Sequence[Quality]) -> Iterator[Check]:
    """Give a check each of what readers say on loss and on clocks."""
    for name, words, fine in (
        ("records", _LOSS, "no profiler says that it lost records"),
        ("clocks", _CLOCK, "no profiler says that a clock was moved"),
    ):
        said = [q for q in found if any(w in q.what.lower() for w in words)]
        if said:
            more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
            yield Check(name, "weak", f"{said[0].file}: {said[0].what}{more}", said[0].do)
        else:
            yield Check(name, "ok", fine)
