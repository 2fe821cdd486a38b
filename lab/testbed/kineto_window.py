"""The last episode of a life as torch's own profiler saw it: a run folder of its own."""

from pathlib import Path
from typing import Any

import msgspec

from teller.lab.manifest import FileEntry, write_manifest
from teller.lab.testbed.folder import manifest_of, name_of, zip_into
from teller.lab.testbed.life import Lived
from teller.lab.testbed.recorded import Recorded
from teller.lab.truth import Episode, Truth, Window, write_truth


def write_window(
    life: Lived, ranks: list[Recorded], whole: Truth, out: Path
) -> tuple[Path, Truth] | None:
    """Write the window's folder and truth; None where no step was recorded.

    It is a relative of the life: `root_seed` is the same.
    """
    files = [life.control / f"kineto_rank{rank}.json" for rank in range(len(ranks))]
    seen = [_seen(file) for file in files if file.exists()]
    numbers = sorted({number for _, steps in seen for number in steps})
    if len(seen) < len(ranks) or not numbers or not whole.episodes:
        return None
    run = out / name_of(life.setup.seed + 1)
    run.mkdir(parents=True)
    entries = []
    for rank, file in enumerate(files):
        name = f"{file.name}.gz"
        zip_into(file, run / name)
        host = str(ranks[rank].about["host"])
        entries.append(FileEntry(path=name, kind="kineto_json", rank=rank, host=host))
    zero = min(start for start, _ in seen)
    shift = zero - int(whole.extra["t0_epoch_ns"])
    truth = msgspec.structs.replace(
        whole,
        run=run.name,
        episodes=(_within(whole.episodes[-1], numbers[0], numbers[-1], shift),),
        healthy_windows=(),
        extra={**whole.extra, "t0_epoch_ns": zero, "steps": len(numbers), "life": whole.run},
    )
    write_manifest(manifest_of(life, ranks, run.name, tuple(entries)), run)
    write_truth(truth, run)
    return run, truth


def _within(episode: Episode, first: int, last: int, shift: int) -> Episode:
    """Give what of an episode lies in the window, its times since the window's first event."""
    kept = tuple(one for one in episode.steps if first <= one.step_index <= last)
    meant = episode.intended
    return msgspec.structs.replace(
        episode, steps=kept, intended=Window(meant.start_ns - shift, meant.end_ns - shift)
    )


def _seen(file: Path) -> tuple[int, list[int]]:
    """Give the UTC time of the first event, and the numbers of the steps."""
    trace: dict[str, Any] = msgspec.json.decode(file.read_bytes())
    base = int(trace.get("baseTimeNanoseconds", 0))
    events = [one for one in trace["traceEvents"] if one.get("ph") == "X"]
    first = min((float(one["ts"]) for one in events), default=0.0)
    names = (str(one["name"]) for one in events)
    steps = [int(name.split()[0][5:]) for name in names if name.startswith("step=")]
    return base + round(first * 1000), steps
