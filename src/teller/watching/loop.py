"""The loop of a watch: look, wait until files are written out, ingest, diagnose, tell.

Events are what a watch gives: mappings with `time` (UTC), `event`, and

    watching   folder, workspace: it has begun
    ingested   run, files: what was read into a run
    diagnosed  run, verdict, findings: how many stand now
    finding    run, change (new or changed), finding: as the diagnosis' envelope has it
    cleared    run, finding (class, title, severity): it is said no longer
    problem    file, where, what, do: a file that cannot be used, or not as a whole
    waiting    why: the workspace, server or cluster cannot be used now; it is tried again
    idle       runs: all that lies there is read
    stopped    it has ended
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

from teller import pipeline
from teller.errors import BadUsage, TellerError
from teller.graph import judgement
from teller.graph.finding import Quality, RunSummary
from teller.graph.lock import WriterLock
from teller.graph.workspace import Workspace
from teller.ingest import glance, plan
from teller.ingest.glance import Sight
from teller.ingest.who import Told as Who
from teller.models.rule import RULESET, rules
from teller.pipeline import Ingested, Options, Progress
from teller.watching.settling import Settling
from teller.watching.told import Told

Tell = Callable[[Mapping[str, Any]], object]

FOLDER: Final = "watch"  # of the workspace
AGAIN_S: Final = 5.0  # until what could not be done is tried again
LOOKS: Final = 10.0  # looking takes at most one part of so many of the time


@dataclass(slots=True)
class Watch:
    """A watch of one folder. Times are in s."""

    folder: Path
    workspace: Workspace
    options: Options
    tell: Tell
    progress: Progress
    every: float = 0.5
    settle: float = 1.0
    patience: float = 30.0
    store: str = ""  # its address without a password, which tells two journals apart
    _settling: Settling = field(init=False)
    _told: Told = field(init=False)
    _look_s: float = 0.0
    _trouble: str = ""
    _idle: bool = False

    def run(self, stop: Event, *, once: bool = False) -> int:
        """Watch until told to stop, or with `once` until all is read; give an exit code."""
        self._check()
        home = self.workspace.folder / FOLDER
        home.mkdir(parents=True, exist_ok=True)
        lock = WriterLock(
            home / "lock", str(self.workspace.folder), doing="being watched",
            remedy="stop that one, or name another place with --workspace",
        )  # fmt: skip
        try:
            self._told = Told(home, f"{self.folder.resolve()}\n{self.store}")
            self._settling = Settling(self.settle, self.patience)
            self._say("watching", folder=str(self.folder), workspace=str(self.workspace.folder))
            self._until(stop, once)
            self._say("stopped")
            return self._code() if once else 0
        finally:
            lock.release()

    def _check(self) -> None:
        """Refuse at once what would be refused at each look."""
        Who(self.options.rank_regex, self.options.host_regex)
        plan.check(self.options.scheduler)
        rules(self.options.rules_dir)
        if self.workspace.folder.is_relative_to(self.folder.resolve()):
            raise BadUsage(
                f"the workspace {self.workspace.folder} lies in the folder that is watched; "
                "name one outside with --workspace"
            )

    def _until(self, stop: Event, once: bool) -> None:
        while not stop.is_set():
            done = self._look(stop)
            if once and self._trouble:
                raise TellerError(self._trouble)
            if once and done:
                return
            stop.wait(AGAIN_S if self._trouble else max(self.every, LOOKS * self._look_s))

    def _look(self, stop: Event) -> bool:
        """Look once, and deal with what is due; tell whether nothing is left to wait for."""
        begun = time.monotonic()
        sights, remarks = glance.look(self.folder)
        self._look_s = time.monotonic() - begun
        self._told.forget(self._told.read.keys() - {s.name for s in sights})
        unseen = [Quality(r.path, r.place, r.what, r.remedy) for r in remarks]
        self._problems(unseen, ())
        now = time.monotonic(), time.time_ns()
        due = self._settling.due(sights, self._told.read, *now)
        if due and not stop.is_set():
            self._idle = False
            if not self._dealt_with(due):
                return False
        left = self._settling.waiting
        if not left and not self._idle:
            self._idle = True
            self._say("idle", runs=len(self._told.runs))
        return not left

    def _dealt_with(self, due: Sequence[Sight]) -> bool:
        """Read and judge files; where that cannot be done now, say so once and give False."""
        begun, paths = time.monotonic(), {s.path for s in due}
        try:
            got = pipeline.ingest(
                [self.folder], self.workspace, self.options, self.progress, paths.__contains__
            )
            self._ingested(got, due)
            usual = {e.run_id for e in self.workspace.archive.runs() if e.baseline}
            for run in sorted(got.runs, key=lambda run: run.id not in usual):
                self._judge(replace(got, runs=(run,)), run, usual)
        except (TellerError, OSError) as err:
            if self._trouble != str(err):
                self._trouble = str(err)
                self._say("waiting", why=self._trouble)
            return False
        self._trouble = ""
        self._told.read.update({s.name: s.mark for s in due})
        self._told.save()
        ended = time.monotonic()
        self._settling.done(due, ended, ended - begun)
        return True

    def _ingested(self, got: Ingested, due: Sequence[Sight]) -> None:
        files = [s.name for s in due]
        held = {i.file for i in got.inputs}
        for run in got.runs:
            self._say("ingested", run=_named(run), files=[f for f in files if f in held])
        self._problems(got.data_quality, files)

    def _problems(self, found: Sequence[Quality], anew: Sequence[str]) -> None:
        fresh = self._told.problems(found, anew)
        for one in fresh:
            self._say("problem", file=one.file, where=one.where, what=one.what, do=one.do)
        if fresh:
            self._told.save()

    def _judge(self, got: Ingested, run: RunSummary, usual: Collection[int]) -> None:
        """Tell what is new of one run. A baseline in the folder serves those that come later."""
        here = sorted(self._told.runs.intersection(usual))
        options = self.options
        if here and not options.baseline and run.id not in usual:
            options = replace(options, baseline=str(here[-1]))
        found = pipeline.answer(got, self.workspace, options, self.progress)
        name = _named(run)
        self._say("diagnosed", run=name, verdict=found.verdict, findings=len(found.findings))
        for change in self._told.changes(run.id, found.findings):
            if change.finding is not None:
                said = change.finding.to_json()
                self._say("finding", run=name, change=change.kind, finding=said)
            else:
                self._say("cleared", run=name, finding=change.said.to_json())
        self._told.save()

    def _say(self, event: str, **more: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.tell({"time": now, "event": event} | more)

    def _code(self) -> int:
        """Give the exit code that a diagnosis of all runs would have."""
        found = []
        for run in self._told.runs:
            with suppress(TellerError):  # it was removed
                found += self.workspace.archive.findings(run, RULESET)
        if not self._told.runs:
            return 2
        faults = (f for f in found if judgement.claims(f) == "fault")
        return int(any(judgement.reaches(f, self.options.fail_on) for f in faults))


def _named(run: RunSummary) -> dict[str, str]:
    return {"id": str(run.id), "name": run.name}
