"""Two runs side by side: which they are, brought in where they are paths, and what changed."""

from collections.abc import Sequence

from teller.errors import BadUsage
from teller.graph.difference import Difference
from teller.graph.workspace import Workspace
from teller.models import differ
from teller.pipeline import Options, Progress, run_at

__all__ = ["difference"]


def difference(
    places: Sequence[str],
    workspace: Workspace,
    options: Options,
    progress: Progress,
    threshold: float,
) -> Difference:
    """Say what changed from the first of two runs to the second; one place may hold both."""
    usual, now = _two_runs(places, workspace, options, progress)
    progress.start("comparing", None)
    with workspace.reader() as store:
        found = differ.difference(store, usual, now, threshold, options.rules_dir)
    progress.done()
    return found


def _two_runs(
    places: Sequence[str], workspace: Workspace, options: Options, progress: Progress
) -> tuple[int, int]:
    """Give the usual run and the other: as they are named, else the baseline or the earlier one."""
    found = [run_at(workspace, place, "teller diff", options, progress) for place in places]
    entries = {e.run_id: e for e in workspace.archive.runs()}
    wanted = 2 if len(places) == 1 else 1
    for place, runs in zip(places, found, strict=True):
        if len(runs) != wanted:
            names = ", ".join(entries[run].name for run in runs)
            says = "name two: teller diff USUAL NOW" if wanted == 2 or len(runs) > 1 else ""
            raise BadUsage(f"{place} holds {len(runs)} runs ({names}), not {wanted}; {says}")
    if len(places) == 1:
        # the runs of one place come the earliest first
        usual, now = sorted(found[0], key=lambda run: not entries[run].baseline)
    else:
        usual, now = found[0][0], found[1][0]
    if usual == now:
        raise BadUsage(
            f"both are the run {entries[usual].name}: captures that overlap in time are one run; "
            "ingest each with a --deployment of its own, and name the runs"
        )
    return usual, now
