"""The demo run in few spans, and a step of it brought back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import teller
from teller import pipeline
from teller.graph.embedded import EmbeddedStore
from teller.graph.project import project, step_tables
from teller.graph.store import Store
from teller.graph.workspace import Workspace
from teller.models.tpe.compact import compact
from teller.models.tpe.training import train
from teller.models.tpe.trees import of_run

KEPT, LATER = 5, 7
DEMO = Path(str(teller.__file__)).parent / "demo" / "run"
COUNT = "MATCH (s:Span) WHERE s.step_index = $step RETURN count(s) AS n"
EDGES = """
MATCH (a:Span)-[r:CHILD|LAUNCHED|NEXT]->(b:Span)
WHERE a.step_index = $step AND b.step_index = $step
RETURN count(r) AS n
"""
TOLD = """
MATCH (s:Step)-[c:CONSISTS_OF]->(f:Fragment) WHERE s.step_index = $step
RETURN sum(c.count * f.size) AS n
"""


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    place = Workspace(tmp_path_factory.mktemp("ws"))
    [run] = pipeline.ingest([DEMO], place, pipeline.Options(), pipeline.Silent()).runs
    return run.id, place.archive.folder_of(run.id)


@pytest.fixture
def full(archived: tuple[int, Path], tmp_path: Path) -> Iterator[Store]:
    run, generation = archived
    (tmp_path / "full").mkdir()
    with EmbeddedStore(tmp_path / "full.lbdb", pool_bytes=256 << 20) as store:
        store.load(run, project(generation, tmp_path / "full"))
        yield store


@pytest.fixture
def short(archived: tuple[int, Path], tmp_path: Path) -> Iterator[Store]:
    run, generation = archived
    (tmp_path / "short").mkdir()
    vocabulary = train(of_run(generation))
    with EmbeddedStore(tmp_path / "short.lbdb", pool_bytes=256 << 20) as store:
        store.load(run, compact(generation, tmp_path / "short", vocabulary, {KEPT}))
        yield store


def asked(store: Store, text: str, step: int) -> int:
    [row] = store.query(text, {"step": step}).to_pylist()
    return int(row["n"] or 0)


def test_a_step_comes_back_from_the_archive_as_it_was(
    archived: tuple[int, Path], full: Store, short: Store
) -> None:
    run, generation = archived
    for text in (COUNT, EDGES):
        assert asked(short, text, KEPT) == asked(full, text, KEPT) > 0
        assert asked(short, text, LATER) == 0
    assert asked(short, TOLD, LATER) == asked(full, COUNT, LATER)  # fragments tell of all spans
    for _ in range(2):  # a second time changes nothing
        short.append(run, step_tables(generation, LATER), skip_lost=True)
    for text in (COUNT, EDGES):
        assert asked(short, text, LATER) == asked(full, text, LATER) > 0
