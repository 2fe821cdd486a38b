"""From paths to an answer: ingest, then publish the graph, then judge. Knows both sides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from teller.errors import BadUsage, NothingUsable, UnknownName
from teller.graph import judgement, recall, targets
from teller.graph.finding import Diagnosis, InputSummary, Quality, RunSummary, Severity
from teller.graph.keep import keep, rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.ingest import run as ingesting
from teller.ingest.assembly import InputRow
from teller.ingest.run import Progress, Silent
from teller.ingest.source import Remark
from teller.ingest.who import Told
from teller.models import diagnose as judging
from teller.models import listening
from teller.models.case import Case
from teller.models.diagnose import Judged
from teller.models.explain.rephrase import Endpoint, reworded
from teller.models.listening import Ask
from teller.models.rule import RULESET

if TYPE_CHECKING:
    from teller.graph.store import Store

__all__ = [
    "Ingested",
    "Options",
    "Progress",
    "Silent",
    "answer",
    "baseline_of",
    "diagnose",
    "ingest",
    "judge_runs",
    "remember",
    "run_at",
    "step_rows",
    "suspects_of",
]

DEPLOYMENT: Final = "default"


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say beside the paths."""

    rank_regex: str = ""
    host_regex: str = ""
    deployment: str = ""
    baseline: str = ""
    rules_dir: Path | None = None
    fail_on: Severity = "low"
    slo: Mapping[str, int] = field(default_factory=dict)  # targets of `teller.graph.targets`
    scheduler: str = "threads"  # of `teller.ingest.plan`
    model: Ask | None = None  # asked beside rules and numbers; None leaves it out
    rephrase: Endpoint | None = None  # asked for other words for explanations


@dataclass(frozen=True, slots=True)
class Ingested:
    """What is in the workspace now, and what was said of the inputs."""

    runs: tuple[RunSummary, ...]
    inputs: tuple[InputSummary, ...]
    data_quality: tuple[Quality, ...]
    others: tuple[str, ...] = ()


def ingest(
    paths: Sequence[Path],
    workspace: Workspace,
    options: Options,
    progress: Progress,
    wanted: Callable[[Path], bool] | None = None,
) -> Ingested:
    """Bring paths into the workspace, archive and graph; what is there already stays as it is.

    Where only some files below the paths are new, `wanted` picks them.
    """
    aims = options.slo or targets.of_settings(workspace.folder)
    with workspace.writer(project, rest) as writer:
        got = ingesting.ingest(
            paths,
            writer.archive,
            Told(options.rank_regex, options.host_regex),
            deployment=options.deployment or DEPLOYMENT,
            progress=progress,
            scheduler=options.scheduler,
            wanted=wanted,
        )
        if not got.runs:
            return Ingested((), _inputs(got.inputs), _quality(got.remarks), got.others)
        targets.keep(writer, [e.run_id for e in got.runs], aims)
        pa.default_memory_pool().release_unused()  # the graph's pool comes on top of what is kept
        progress.start("loading the graph", None)
        with writer.reader([e.run_id for e in got.runs]) as store:  # loads what the graph lacks
            progress.done()
            return _stored(store, [e.run_id for e in got.runs], got)


def _stored(store: "Store", runs: Sequence[int], got: ingesting.Ingested) -> Ingested:
    """Say what the store says: the same whether the runs were read now or long ago."""
    inputs = [i for run in runs for i in recall.inputs(store, run)]
    quality = [q for run in runs for q in recall.quality(store, run)]
    said = dict.fromkeys([*quality, *_quality(got.remarks)])
    summaries = tuple(recall.summary(store, run) for run in runs)
    return Ingested(summaries, tuple(dict.fromkeys(inputs)), tuple(said), got.others)


def _inputs(rows: Sequence[InputRow]) -> tuple[InputSummary, ...]:
    return tuple(InputSummary(r.path, r.format, r.rank, r.event_count, r.note) for r in rows)


def _quality(remarks: Sequence[Remark]) -> tuple[Quality, ...]:
    return tuple(Quality(r.path, r.place, r.what, r.remedy) for r in remarks)


def diagnose(
    paths: Sequence[Path], workspace: Workspace, options: Options, progress: Progress
) -> Diagnosis:
    """Say what is wrong in the runs of these paths; what is not stored yet is read first."""
    return answer(ingest(paths, workspace, options, progress), workspace, options, progress)


def answer(got: Ingested, workspace: Workspace, options: Options, progress: Progress) -> Diagnosis:
    """Say what is wrong in the runs that were ingested."""
    if not got.runs:
        return Diagnosis("not_visible", (), (), got.data_quality, got.inputs, _nothing(got))
    judged = _judged(workspace, got.runs, options, progress)
    findings = tuple(f for one in judged.values() for f in one.findings)
    notes = dict.fromkeys(n for one in judged.values() for n in one.notes)
    with workspace.reader() as store:
        answered = any(recall.answered(store, run.id) for run in got.runs)
    answer = judgement.verdict(findings, answered=answered)
    return Diagnosis(
        answer, got.runs, judgement.ordered(findings), got.data_quality, got.inputs, tuple(notes)
    )


def _judged(
    workspace: Workspace, runs: Sequence[RunSummary], options: Options, progress: Progress
) -> dict[int, Judged]:
    suspects, healthy = suspects_of(workspace, runs, options, progress)
    return judge_runs(workspace, suspects, options, progress, healthy)


def suspects_of(
    workspace: Workspace, runs: Sequence[RunSummary], options: Options, progress: Progress
) -> tuple[list[int], int | None]:
    """Give the runs to judge and the healthy one that they are compared with, where there is one.

    Runs that files call a baseline serve the others, and are judged alone.
    """
    usual = {e.run_id for e in workspace.archive.runs() if e.baseline}
    suspects = [r.id for r in runs if r.id not in usual]
    healthy = baseline_of(workspace, options, progress)
    if healthy is None and suspects:
        healthy = next((r.id for r in runs if r.id in usual), None)
    return suspects or [r.id for r in runs], healthy


def _nothing(got: Ingested) -> tuple[str, ...]:
    if got.data_quality or got.inputs:
        return ("nothing could be used; see what is said of each file",)
    return ("no trace was found in these paths; teller doctor PATH says what is looked for",)


def baseline_of(workspace: Workspace, options: Options, progress: Progress) -> int | None:
    """Give the healthy run that the user names: a stored one, or a path to ingest."""
    if not options.baseline:
        return None
    return run_at(workspace, options.baseline, "--baseline", options, progress)[-1]


def run_at(
    workspace: Workspace, name: str, asked_by: str, options: Options, progress: Progress
) -> list[int]:
    """Give the stored run of that id or name, or the runs of a path, which is ingested first."""
    entries = workspace.archive.runs()
    known = {key: e.run_id for e in entries for key in (str(e.run_id), e.name)}
    if name in known:
        return [known[name]]
    path = Path(name)
    if not path.exists():
        raise UnknownName(f"path or run for {asked_by}", name, {e.name for e in entries})
    got = ingest([path], workspace, options, progress)
    if not got.runs:
        raise NothingUsable(f"{asked_by} {path}: nothing in it could be used")
    return [run.id for run in got.runs]


def judge_runs(
    workspace: Workspace,
    runs: Sequence[int],
    options: Options,
    progress: Progress,
    baseline: int | None = None,
) -> dict[int, Judged]:
    """Judge stored runs, and keep the findings in the archive and in the graph."""
    judged: dict[int, Judged] = {}
    progress.start("diagnosing", len(runs))
    with workspace.reader([*runs, *([] if baseline is None else [baseline])]) as store:
        for run in runs:
            heard = _heard(workspace, run, store, options.model, baseline)
            said = judging.judge(store, run, options.rules_dir, baseline, heard)
            judged[run] = _reworded(store, run, said, options, baseline)
            progress.step()
    progress.done()
    with workspace.writer(project, rest) as writer:
        keep(writer, {run: one.findings for run, one in judged.items()}, RULESET)
    return judged


def _reworded(
    store: "Store", run: int, said: Judged, options: Options, baseline: int | None
) -> Judged:
    """Let the user's endpoint find other words, where one is named."""
    if options.rephrase is None:
        return said
    case = Case(store, run, baseline)
    findings, notes = reworded(case, said.findings, options.rephrase, options.rules_dir)
    return replace(said, findings=tuple(findings), notes=(*said.notes, *notes))


def _heard(
    workspace: Workspace, run: int, store: "Store", ask: Ask | None, baseline: int | None
) -> listening.Heard | None:
    """Ask the model; where it cannot be asked, say why: rules and numbers still answer."""
    if ask is None:
        return None
    healthy = None if baseline is None else workspace.archive.folder_of(baseline)
    try:
        return listening.hear(workspace.archive.folder_of(run), store, run, ask, healthy)
    except BadUsage as err:
        return listening.Heard(notes=(f"the model was not asked: {err}",))


def remember(workspace: Workspace, run: int) -> Diagnosis:
    """Give the stored diagnosis of a run."""
    with workspace.reader() as store:
        said = recall.diagnosis(store, run)
        return replace(said, notes=tuple(judging.not_seen(store, run)))


def step_rows(workspace: Workspace, diagnosis: Diagnosis) -> pa.Table:
    """Give the `--steps` table of a diagnosis: one row a rank and step."""
    with workspace.reader() as store:
        return judging.step_rows(
            {
                run.id: judging.with_findings(
                    store, run.id, [f for f in diagnosis.findings if f.run == run.id]
                )
                for run in diagnosis.runs
            }
        )
