"""A committed simulated run of four ranks, in an archive of its own."""

from pathlib import Path

import pytest

from teller.graph.archive import Archive
from teller.ingest import run as ingesting
from teller.ingest.run import Silent
from teller.ingest.who import Told
from teller.models.archived import Archived

RUNS = Path(__file__).parents[2] / "data" / "runs" / "simulated"


@pytest.fixture(scope="session")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Archived:
    """Give a run whose host is contended on one rank."""
    archive = Archive(tmp_path_factory.mktemp("archive"), write=True)
    got = ingesting.ingest(
        [RUNS / "run-1a63881eb917"], archive, Told("", ""), deployment="", progress=Silent()
    )
    return Archived(archive.folder_of(got.runs[0].run_id))
