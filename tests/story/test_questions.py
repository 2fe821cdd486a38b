"""Each question of docs/cypher.md has an answer in a run here, the same on both engines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from teller import pipeline
from teller.graph import guarded, queries, targets
from teller.graph.keep import rest
from teller.graph.neo4j import Neo4jStore
from teller.graph.project import project
from teller.graph.shared import SharedWorkspace
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent
from tests.graph.alike import compared, rows, same
from tests.story import pressed

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cypher.md"
DEMO = Path(pipeline.__file__).with_name("demo") / "run"
LEAST = 40  # questions that the page must hold

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the page: its title, its query, and the parameters that it names."""

    title: str
    text: str
    given: dict[str, str]

    def asked(self, runs: list[int], calm: int) -> Iterator[dict[str, object]]:
        """Give the parameters for each run; a query over all runs has none."""
        more: dict[str, object] = {k: calm if v == "ID" else int(v) for k, v in self.given.items()}
        if "$run" not in self.text:
            yield more
            return
        for run in runs:
            yield {"run": run, **more}


def questions() -> list[Question]:
    parts = re.split(r"^#### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    made = []
    for part in parts:
        [text] = re.findall(r"```cypher\n(.*?)```", part, flags=re.DOTALL)
        made.append(
            Question(part.partition("\n")[0], text, dict(re.findall(r"--param (\w+)=(\w+)", part)))
        )
    return made


@dataclass(frozen=True, slots=True)
class Kept:
    """A workspace with four runs, and the one of them in which nothing is wrong."""

    workspace: Workspace
    runs: list[int]
    calm: int


@pytest.fixture(scope="module")
def kept(folder: Path, calm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Diagnose the demo run and three made ones."""
    place = Workspace(tmp_path_factory.mktemp("asked"), project=project, rest=rest)
    hard = pressed.write(tmp_path_factory.mktemp("pressed"))
    wanted = targets.parsed("ttft=500ms")
    found = []
    for name, path in (("demo", DEMO), ("story", folder), ("story", calm_folder), ("hard", hard)):
        options = Options(deployment=name, slo=wanted)
        said = pipeline.diagnose([path], place, options, Silent())
        found += [run.id for run in said.runs]
    return Kept(place, found, found[2])


def answers(place: Workspace, kept: Kept, one: Question) -> list[pa.Table]:
    """Ask as `teller query` does."""
    asked = one.asked(kept.runs, kept.calm)
    return [guarded.ask(place, one.text, given).table for given in asked]


def test_the_page_numbers_its_questions_and_repeats_no_named_query() -> None:
    found = questions()
    assert [one.title.partition(".")[0] for one in found] == [
        str(n) for n in range(1, len(found) + 1)
    ]
    assert len(found) >= LEAST
    texts = [" ".join(one.text.split()) for one in found]
    named = {" ".join(re.sub(r"//.*", "", queries.text(n)).split()) for n in queries.names()}
    assert len(set(texts)) == len(texts)
    assert not named & set(texts)


def test_the_page_names_every_named_query_and_no_other() -> None:
    section = PAGE.read_text().partition("## Named queries")[2].partition("\n## ")[0]
    table = "".join(line for line in section.splitlines() if line.startswith("|"))
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(queries.names())


def test_each_question_has_an_answer_in_some_run(kept: Kept) -> None:
    empty = [
        one.title
        for one in questions()
        if not any(found.num_rows for found in answers(kept.workspace, kept, one))
    ]
    assert empty == []


def test_the_answers_name_the_fault_of_the_demo_run(kept: Kept) -> None:
    by_title = {one.title.partition(".")[0]: one.text for one in questions()}
    long, spread = (
        guarded.ask(kept.workspace, by_title[n], {"run": kept.runs[0]}).table.to_pylist()[0]
        for n in ("8", "18")
    )
    where = (long["operator"], long["rank"], long["first_step"], long["last_step"])
    assert where == ("layers.2.self_attn.o_proj", 1, 165, 285)
    assert spread["operator"] == "layers.2.self_attn.o_proj"


@pytest.mark.neo4j
def test_each_question_has_the_same_answer_on_a_server(kept: Kept, neo4j_store: Neo4jStore) -> None:
    place = SharedWorkspace(
        kept.workspace.folder, neo4j_store.address, project=project, rest=rest
    )  # fmt: skip
    with place.writer() as writer:
        writer.push(kept.runs)
    differ: list[str] = []
    for one in questions():
        pairs = zip(answers(kept.workspace, kept, one), answers(place, kept, one), strict=True)
        for mine, other in pairs:
            differ += compared(mine, other, one.title)
            if not all(map(same, rows(mine), rows(other))):
                differ.append(f"{one.title}: in another order")
    assert differ == []
