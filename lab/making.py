"""Makes a whole set: folders, truths, and the index; runs that are there already are kept."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from teller.lab import index, sets
from teller.lab.compact import compact
from teller.lab.index import Row
from teller.lab.sets import Member
from teller.lab.simulator.produce import produce


def make(name: str, out: Path, step: Callable[[], None], workers: int | None = None) -> list[str]:
    """Make a set; give what differs from the hashes that are written down.

    Each worker is a process; `step` is called as each run is there.
    """
    members = list(sets.members(name))
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    known = {r.run: r for r in index.read(folder / index.NAME)} if _begun(folder) else {}
    rows = []
    for row in _rows(members, folder, known, workers or os.cpu_count() or 1):
        rows.append(row)
        index.write(rows, folder / index.NAME)
        step()
    return differing(name, rows)


def _begun(folder: Path) -> bool:
    return (folder / index.NAME).exists()


def _rows(
    members: list[Member], folder: Path, known: dict[str, Row], workers: int
) -> Iterator[Row]:
    wanted = []
    for member in members:
        if member.name in known and (folder / member.name / "manifest.json").exists():
            yield known[member.name]
        else:
            wanted.append(member)
    with ProcessPoolExecutor(workers) as pool:
        try:
            for done in as_completed([pool.submit(_one, m, folder) for m in wanted]):
                yield done.result()
        except BaseException:  # an interrupt too
            pool.shutdown(cancel_futures=True)  # else all others are made before the error is told
            raise


def _one(member: Member, folder: Path) -> Row:
    made = produce(member.order, folder, member.root_seed)
    row = index.row(made)  # of what tools write, before it is packed
    compact(made.folder)
    return row


def differing(name: str, rows: list[Row]) -> list[str]:
    """Give the runs whose hash is not the one that is written down, or that have none."""
    told = sets.hashes().get(name, {})
    return [r.run for r in rows if told.get(r.run) != r.digest]


def write_hashes(out: Path, path: Path) -> None:
    """Write down the hashes of all sets that lie in a folder; done when the simulator changes."""
    lines = ["set\trun\thash"]
    for name in sets.set_names():
        if _begun(out / name):
            rows = sorted(index.read(out / name / index.NAME), key=lambda r: r.run)
            lines += [f"{name}\t{r.run}\t{r.digest}" for r in rows]
    path.write_text("\n".join(lines) + "\n")
