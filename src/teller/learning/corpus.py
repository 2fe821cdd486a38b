"""Labelled run folders as samples with labels, each made once and kept beside the others."""

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Final

import msgspec

from teller.graph.archive import Archive
from teller.ingest import run as ingesting
from teller.ingest.run import Silent
from teller.ingest.who import Told
from teller.lab.truth import read_truth, write_truth
from teller.learning.labels import labels_of
from teller.models.archived import Archived
from teller.models.samples import sample
from teller.models.samples.labelled import ABOUT, About, Labelled
from teller.models.samples.labels import Labels
from teller.models.samples.sample import Samples, samples_of

NOT_KEPT: Final = ("spans", "parts")  # of a generation: samples are made without them


def keep(runs: Sequence[Path], into: Path, step: Callable[[], None], workers: int = 0) -> list[str]:
    """Ingest run folders and keep what samples are made of; what is there is not read again.

    Gives a line for each run of which nothing could be made.
    """
    into.mkdir(parents=True, exist_ok=True)
    wanted = [r for r in runs if not (into / r.name / ABOUT).exists()]
    for _ in range(len(runs) - len(wanted)):
        step()
    failed = []
    with _workers(workers) as pool:
        for done in as_completed([pool.submit(_keep, r, into) for r in wanted]):
            if said := done.result():
                failed.append(said)
            step()
    return failed


def kept(folder: Path, workers: int = 0) -> Iterator[Labelled]:
    """Give all runs that `keep` left in a folder, by name; samples are made where they are old."""
    places = sorted(p.parent for p in folder.glob(f"*/{ABOUT}"))
    stale = [p for p in places if not _made(p).exists()]
    with _workers(workers) as pool:
        list(pool.map(_make, stale))
    for place in places:
        about = msgspec.json.decode((place / ABOUT).read_bytes(), type=About)
        samples, labels = Samples.load(_made(place)), Labels.load(place / "labels.npz")
        if len(samples.step_index):
            yield Labelled(about, samples, labels)


def _workers(number: int) -> ProcessPoolExecutor:
    """Give fresh processes: a fork of one that has threads may stand still for ever."""
    return ProcessPoolExecutor(number or os.cpu_count(), multiprocessing.get_context("spawn"))


def _made(place: Path) -> Path:
    return place / f"samples-{sample.VERSION}.npz"


def _make(place: Path) -> None:
    """Make samples and labels of one kept run."""
    archived = Archived(place)
    samples = samples_of(archived)
    ranks = archived.ranks
    host = dict(zip(ranks["rank"].to_pylist(), ranks["host"].to_pylist(), strict=True))
    hosts = [host.get(r) or "" for r in samples.rank.tolist()]
    zero = archived.table("Run")["t0_epoch_ns"][0].as_py()
    labels_of(samples, read_truth(place), hosts, zero).save(place / "labels.npz")
    samples.save(_made(place))  # last: it says that both are there


def _keep(run: Path, into: Path) -> str:
    truth = read_truth(run)
    scratch = Path(tempfile.mkdtemp(prefix="teller-learn-"))
    place = into / run.name
    try:
        archive = Archive(scratch, write=True)
        got = ingesting.ingest(
            [run], archive, Told("", ""), deployment="learning", progress=Silent()
        )
        if not got.runs:
            return f"{run.name}: nothing could be used"
        shutil.rmtree(place, ignore_errors=True)  # half written before
        shutil.copytree(
            archive.folder_of(got.runs[0].run_id), place,
            ignore=shutil.ignore_patterns(*NOT_KEPT),
        )  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)  # a scratch folder: what stays is no harm
    write_truth(truth, place)
    about = About(
        run=run.name, root_seed=truth.root_seed, twin=truth.twin_of is not None,
        engine=str(truth.extra.get("engine", "")), model=str(truth.extra.get("model", "")),
    )  # fmt: skip
    (place / ABOUT).write_bytes(msgspec.json.encode(about))  # last: it says that all is there
    return ""
