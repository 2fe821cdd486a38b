"""Labelled run folders as samples with labels, each made once and kept beside the others."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec
import numpy as np

from teller.graph.archive import Archive
from teller.ingest import run as ingesting
from teller.ingest.run import Silent
from teller.ingest.who import Told
from teller.lab.truth import read_truth
from teller.learning.labels import labels_of
from teller.models.archived import Archived
from teller.models.samples import sample
from teller.models.samples.labelled import ABOUT, About, Labelled
from teller.models.samples.labels import Labels
from teller.models.samples.sample import Samples, samples_of


def keep(runs: Sequence[Path], into: Path, step: Callable[[], None], workers: int = 0) -> list[str]:
    """Make samples and labels of run folders; what is there already is not made again.

    Gives a line for each run of which nothing could be made.
    """
    into.mkdir(parents=True, exist_ok=True)
    wanted = [r for r in runs if not (into / r.name / ABOUT).exists()]
    for _ in range(len(runs) - len(wanted)):
        step()
    failed = []
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        for done in as_completed([pool.submit(_keep, r, into) for r in wanted]):
            if said := done.result():
                failed.append(said)
            step()
    return failed


def kept(folder: Path) -> Iterator[Labelled]:
    """Give all runs that `keep` left in a folder, by name."""
    for place in sorted(p.parent for p in folder.glob(f"*/{ABOUT}")):
        about = msgspec.json.decode((place / ABOUT).read_bytes(), type=About)
        if about.version == sample.VERSION:
            samples, labels = place / "samples.npz", place / "labels.npz"
            yield Labelled(about, Samples.load(samples), Labels.load(labels))


def _keep(run: Path, into: Path) -> str:
    truth = read_truth(run)
    scratch = Path(tempfile.mkdtemp(prefix="teller-learn-"))
    try:
        archive = Archive(scratch, write=True)
        got = ingesting.ingest(
            [run], archive, Told("", ""), deployment="learning", progress=Silent()
        )
        if not got.runs:
            return f"{run.name}: nothing could be used"
        archived = Archived(archive.folder_of(got.runs[0].run_id))
        samples = samples_of(archived)
        ranks = archived.ranks
        host = dict(zip(ranks["rank"].to_pylist(), ranks["host"].to_pylist(), strict=True))
        zero = archived.table("Run")["t0_epoch_ns"][0].as_py()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)  # a scratch folder: what stays is no harm
    if not len(samples.step_index):
        return f"{run.name}: no steps were found"
    hosts = [host.get(r) or "" for r in samples.rank.tolist()]
    labels = labels_of(samples, truth, hosts, zero)
    place = into / run.name
    place.mkdir(exist_ok=True)
    samples.save(place / "samples.npz")
    labels.save(place / "labels.npz")
    about = About(
        run=run.name, root_seed=truth.root_seed, twin=truth.twin_of is not None,
        engine=str(truth.extra.get("engine", "")), model=str(truth.extra.get("model", "")),
        hosts=[host.get(r) or "" for r in np.unique(samples.rank).tolist()],
    )  # fmt: skip
    (place / ABOUT).write_bytes(msgspec.json.encode(about))  # last: it says that all is there
    return ""
