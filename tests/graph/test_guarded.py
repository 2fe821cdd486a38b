"""People's queries on both engines: attacks are refused or stopped, and answers are cut in time."""

import json
import math
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from teller import cli
from teller.errors import BadUsage, QueryRefused, TellerError, UnknownName
from teller.graph import audit, guarded
from teller.graph.answer import Answer, Limits
from teller.graph.guard import GUARD, PARAMETER_BYTES
from teller.graph.neo4j import Neo4jStore
from teller.graph.shared import SharedWorkspace
from teller.graph.shut_in import kernel_keeps_files
from teller.graph.workspace import Workspace

HASTY = Limits(time_s=0.5, memory_bytes=512 << 20)

WRITES = (
    "CREATE (:Span {id: -1, run_id: 3})",
    "MATCH (s:Span) SET s.name = 'x'",
    "MATCH (s:Span) DETACH DELETE s",
    "MATCH (s:Span) WITH s LIMIT 1 MERGE (h:Host {id: 1})",
)
FILES = (
    "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
    "LOAD FROM '/etc/passwd' (file_format='csv', delim=';') RETURN *",
    "COPY (MATCH (s:Span) RETURN s.id) TO 'taken.csv'",
    "EXPORT DATABASE 'taken'",
    "ATTACH 'taken.db' AS taken (dbtype duckdb)",
    "INSTALL httpfs",
)
SWITCHES = (
    "CALL timeout=0",
    "CALL dbms.setConfigValue('db.transaction.timeout', '0')",
    "CALL apoc.cypher.doIt('MATCH (n) DELETE n', {})",
    "RETURN 1 AS x; CALL timeout=0",
)
RUNAWAY = (
    "MATCH (a:Span), (b:Span), (c:Span), (d:Span), (e:Span), (f:Span) RETURN sum(a.id % 7) AS n"
)
BOMB = "UNWIND range(1, 1000000000) AS x WITH collect(x) AS l RETURN size(l) AS n"


@pytest.fixture
def embedded_place(published: Path) -> Workspace:
    return Workspace(published)


@pytest.fixture
def neo4j_place(
    published: Path, neo4j_store: Neo4jStore, make_run: Callable[[int], dict[str, pa.Table]]
) -> Workspace:
    neo4j_store.append(3, make_run(3))
    return SharedWorkspace(published, neo4j_store.address)


@pytest.fixture(params=("embedded_place", pytest.param("neo4j_place", marks=pytest.mark.neo4j)))
def place(request: pytest.FixtureRequest) -> Workspace:
    """Give a workspace with the tiny run, with its graph on each engine in turn."""
    found: Workspace = request.getfixturevalue(request.param)
    return found


def asked(
    place: Workspace, text: str, limits: Limits = guarded.DEFAULT, **params: object
) -> Answer:
    return guarded.ask(place, text, params, limits)


def answers(place: Workspace) -> bool:
    """Tell whether the workspace is as it was."""
    found = asked(place, "MATCH (s:Span) RETURN count(*) AS n, min(s.id) AS first")
    return bool(found.table.to_pylist() == [{"n": 24, "first": 30_000}])


def noted(place: Workspace) -> dict[str, object]:
    line = (place.folder / audit.NAME).read_text().splitlines()[-1]
    found: dict[str, object] = json.loads(line)
    return found


@pytest.mark.parametrize("text", [*WRITES, *FILES, *SWITCHES])
def test_what_is_no_reading_query_is_refused(
    place: Workspace, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryRefused, match=r"only reads the graph|one statement"):
        asked(place, text)
    assert not list(tmp_path.glob("taken*"))
    assert noted(place)["refused"]
    assert answers(place)


@pytest.mark.parametrize("text", [RUNAWAY, BOMB])
def test_what_takes_too_much_is_stopped(place: Workspace, text: str) -> None:
    with pytest.raises(QueryRefused, match=r"stopped after 0.5 s|more memory"):
        asked(place, text, HASTY)
    assert answers(place)


@pytest.mark.parametrize(
    "text",
    [
        "RETURN repeat('x', 2000000000) AS x",
        "UNWIND range(1, 20000000) AS x RETURN collect(x) AS l",
        "RETURN range(1, 100000000) AS l",
        "RETURN lpad('x', 2000000000, 'y') AS x",
    ],
)
def test_a_value_of_gigabytes_is_stopped(embedded_place: Workspace, text: str) -> None:
    with pytest.raises(QueryRefused, match=r"stopped after|more memory|larger than"):
        asked(embedded_place, text, HASTY)
    assert answers(embedded_place)


def test_one_value_may_be_no_larger_than_an_answer(place: Workspace) -> None:
    text = "UNWIND range(1, 50000) AS x WITH collect(x) AS l RETURN l, size(l) AS n"
    with pytest.raises(QueryRefused, match=r"larger than 0.25 MiB: ask for fewer rows or columns"):
        asked(place, text, Limits(answer_bytes=1 << 18))
    assert asked(place, text).table["n"].to_pylist() == [50_000]


def test_the_first_rows_are_given_and_it_is_said_that_there_are_more(place: Workspace) -> None:
    text = "MATCH (s:Span) RETURN s.id AS id ORDER BY id"
    first = asked(place, text, Limits(rows=5))
    assert (first.table["id"].to_pylist(), first.truncated) == ([30000 + i for i in range(5)], True)
    whole = asked(place, text, Limits(rows=24))
    assert (whole.table.num_rows, whole.truncated) == (24, False)
    assert asked(place, text, Limits(rows=0)).table == whole.table
    assert noted(place) | {"ms": 0, "time": ""} == {
        "time": "", "ms": 0, "text": text, "rows": 24, "truncated": False, "refused": None,
        "who": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "UNWIND range(1, 9) AS x RETURN x UNION ALL UNWIND range(1, 9) AS x RETURN x",
        "UNWIND range(1, 9) AS x RETURN x LIMIT 9",
        "UNWIND range(1, 9) AS x RETURN x ORDER BY x SKIP 1",
    ],
)
def test_rows_are_cut_whatever_the_query_says_of_them(place: Workspace, text: str) -> None:
    found = asked(place, text, Limits(rows=4))
    assert (found.table.num_rows, found.truncated) == (4, True)


def test_answers_have_the_same_names_and_types_on_both(place: Workspace) -> None:
    text = (
        "MATCH (s:Span) WHERE s.rank = $rank RETURN count(*), sum(s.dur_ns) AS sum, "
        "sum(s.dur_ns)  /  count(*), s.rank"
    )
    found = asked(place, text, rank=1)
    assert found.table.column_names == ["count(*)", "sum", "sum(s.dur_ns)  /  count(*)", "s.rank"]
    assert set(found.table.schema.types) == {pa.int64()}
    assert asked(place, "MATCH (s:Span) WHERE s.id = 0 RETURN sum(s.dur_ns) AS n").table[
        "n"
    ].to_pylist() == [0]


def test_a_plan_is_told_and_nothing_is_run(place: Workspace) -> None:
    found = asked(place, f"EXPLAIN {RUNAWAY}")
    assert found.table.column_names == ["plan"]
    assert found.table.num_rows == 1


def test_parameters_are_those_that_are_asked_for(place: Workspace) -> None:
    assert asked(place, "RETURN $a AS a, $b AS b", a=1 << 60, b=["x"]).table.to_pylist() == [
        {"a": 1 << 60, "b": ["x"]}
    ]
    with pytest.raises(BadUsage, match=r"the query needs \$a"):
        asked(place, "RETURN $a AS a")
    with pytest.raises(BadUsage, match=r"does not ask for \$b"):
        asked(place, "RETURN $a AS a", a=1, b=2)
    with pytest.raises(BadUsage, match=r"\$a"):
        asked(place, "RETURN $a AS a", a=1 << 70)
    with pytest.raises(UnknownName, match="did you mean Span"):
        asked(place, "MATCH (s:Spam) RETURN s")
    assert answers(place)


def test_no_value_of_a_parameter_is_noted(place: Workspace) -> None:
    asked(place, "RETURN $word AS w", word="hunter2")
    assert "hunter2" not in (place.folder / audit.NAME).read_text()


@pytest.mark.parametrize("value", [{1, 2}, "x" * (PARAMETER_BYTES + 1), b"x"])
def test_a_value_that_cannot_be_sent_is_refused(embedded_place: Workspace, value: object) -> None:
    with pytest.raises(BadUsage, match=r"the value of \$a"):
        asked(embedded_place, "RETURN $a AS a", a=value)


def test_a_process_that_dies_costs_one_query(embedded_place: Workspace) -> None:
    assert answers(embedded_place)
    for child in GUARD.idle:
        os.kill(child.pid, signal.SIGSEGV)
    with suppress(QueryRefused):  # the one that was asked may be the one that died
        answers(embedded_place)
    assert answers(embedded_place)


def test_the_process_can_write_no_file_even_where_a_query_gets_through(
    embedded_place: Workspace, tmp_path: Path
) -> None:
    (graph,) = (embedded_place.folder / "graph").glob("*.lbdb")
    there = tmp_path / "there.csv"
    there.write_text("kept")
    for text in (
        "COPY (MATCH (s:Span) RETURN s.id) TO 'taken.csv'",
        f"COPY (MATCH (s:Span) RETURN s.id) TO '{there}'",
        f"EXPORT DATABASE '{tmp_path / 'taken'}'",
    ):
        with pytest.raises(TellerError):
            GUARD.ask(graph, text, {}, HASTY)
    with pytest.raises(QueryRefused, match="only reads the graph"):
        GUARD.ask(graph, "MATCH (s:Span) SET s.name = 'x'", {}, HASTY)
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]
    if kernel_keeps_files():
        assert there.read_text() == "kept"


def test_the_next_graph_is_asked_once_it_is_published(published: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(published, tmp_path / "w")
    place = Workspace(folder)
    assert answers(place)
    with Workspace(folder, write=True) as writer, writer.changing() as store:
        store.remove("Span", [30_000])
    found = asked(place, "MATCH (s:Span) RETURN count(*) AS n")
    assert found.table["n"].to_pylist() == [23]


@pytest.mark.parametrize(
    "wrong", [{"rows": -1}, {"time_s": 0}, {"time_s": math.nan}, {"time_s": math.inf},
              {"memory_bytes": 1}],
)  # fmt: skip
def test_a_limit_that_is_none_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadUsage, match=r"give|needs"):
        Limits(**wrong)  # type: ignore[arg-type]  # each by its name


def test_the_notes_stay_small(tmp_path: Path) -> None:
    one = audit.Asked(time=audit.now(), ms=1, text="x" * 10_000)
    for _ in range(2 * audit.MOST_BYTES // audit.MOST_TEXT):
        audit.note(tmp_path, one)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= audit.MOST_BYTES


def test_a_workspace_that_cannot_be_written_is_asked_all_the_same(tmp_path: Path) -> None:
    audit.note(tmp_path / "nowhere", audit.Asked(time=audit.now(), ms=1, text="x"))
    assert not list(tmp_path.iterdir())


def test_the_command_cuts_an_answer_and_says_so(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "MATCH (s:Span) RETURN s.id AS id ORDER BY id"
    at = ["--workspace", str(published), "--format", "csv", "--quiet"]
    assert cli.main(["query", text, "--limit", "2", *at]) == 0
    told = capsys.readouterr()
    assert told.out.split() == ['"id"', "30000", "30001"]
    assert told.err == "the first 2 of more rows; --limit 0 gives all\n"
    assert cli.main(["query", text, "--limit", "0", "-o", str(tmp_path / "all.csv"), *at]) == 0
    assert capsys.readouterr().err == ""
    assert len((tmp_path / "all.csv").read_text().split()) == 25
    assert cli.main(["query", RUNAWAY, "--timeout", "0.5", *at]) == 2
    assert "stopped after 0.5 s" in capsys.readouterr().err
    assert cli.main(["query", text, "--timeout", "nan", *at]) == 2
    assert cli.main(["query", "CALL timeout=0", *at]) == 2


def test_a_secret_in_a_query_is_not_written_down(tmp_path: Path) -> None:
    text = "MATCH (l:LogLine) WHERE l.text CONTAINS 'api_key=abcdef0123456789' RETURN l.id"
    audit.note(tmp_path, audit.Asked(time=audit.now(), ms=1, text=text, refused=text))
    said = (tmp_path / audit.NAME).read_text()
    assert "MATCH (l:LogLine)" in said
    assert "abcdef0123456789" not in said
