"""What the embedded engine would answer otherwise is refused, and the rest is explained."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from teller.errors import QueryRefused
from teller.graph import dialect, guarded, queries, reading
from teller.graph.schema import RELATIONS
from teller.graph.uniqueness import CYCLIC
from teller.graph.workspace import Workspace
from teller.models import rule

RULES = Path(rule.__file__).with_name("rules")

TWICE = "may be one and the same here, and never on a server"
# how a query is refused -> queries
OTHERWISE = {
    TWICE: [
        "MATCH (a:Rank)-[:RAN]->(s:Step)<-[:RAN]-(b:Rank) RETURN a.id",
        "MATCH (a)-->(b)<--(c) RETURN a.id",
        "MATCH (a:Span)-[:CHILD]->(b), (a)-[:CHILD]->(c) RETURN b.id",
        "MATCH (a:Span)-[:CHILD]-(b:Span)-[:CHILD]-(c:Span) RETURN c.id",
        "MATCH (a)-[:CHILD*1..3]->(b)<-[:CHILD]-(c) WHERE a.id <> c.id RETURN c.id",
        "MATCH (a)-[:RAN]->(s)<-[:RAN]-(b) WHERE a.id <> b.id OR s.rank = 1 RETURN a.id",
        "MATCH (a)-[:RAN]->(s)<-[:RAN]-(b) WHERE NOT a.id <> b.id RETURN a.id",
        "MATCH (a)-[:RAN]->(s)<-[:RAN]-(b) WHERE a.id < b.id + 1 RETURN a.id",
        "MATCH (a)-[:RAN]->(s)<-[:RAN]-(b) WHERE a.rank < b.id RETURN a.id",
        "MATCH (s) WHERE EXISTS { (s)<-[:RAN]-(a)-[:RAN]->(t) } RETURN s.id",
        "MATCH (s) WHERE EXISTS { MATCH (s)<-[:RAN]-()-[:RAN]->(t) } RETURN s.id",
        "MATCH (s) WHERE NOT (s)<-[:RAN]-()-[:RAN]->() RETURN s.id",
        "OPTIONAL MATCH (a:Rank)-[:TALKED_TO]->(b)<-[:TALKED_TO]-(c) RETURN a.id",
    ],
    "goes back over the same relationship": [
        "MATCH (a:Span)-[:CHILD*1..3]-(b) RETURN b.id",
        "MATCH (a)-[*]-(b) RETURN b.id",
        "MATCH (a)<-[:NEXT*2]->(b) RETURN b.id",
    ],
    "in a circle": [
        "MATCH (a:Rank)-[:TALKED_TO*1..3]->(b) RETURN b.id",
        "MATCH (a:Rank)-[*]->(b) RETURN b.id",
    ],
    "labels": ["MATCH (n) RETURN labels(n) AS l", "MATCH (n) RETURN labels(n)[0] AS l"],
    "A or B": ["MATCH (n:Span:Step) RETURN n.id", "MATCH (n) WHERE n:Span:Step RETURN n.id"],
    "lists count from 1": [
        "MATCH (n) RETURN collect(n.id)[0] AS x",
        "RETURN $rows[1] AS x",
        "WITH [1] AS l RETURN l[-1] AS x",
        "RETURN [1, 2, 3][1..2] AS x",
        "RETURN [1, 2, 3][0..-1] AS x",
    ],
    "counts from 1": ["RETURN substring('kernel', 0, 3) AS x"],
    "list comprehension": ["WITH 1 AS x RETURN [x IN [1, 2] | x] AS l"],
    "is not known here": ["MATCH (a), (b) RETURN [(a)-->(b) | b.id] AS l"],
    "base of 10": ["RETURN log(10) AS x"],
    "gives text": ["MATCH (n) RETURN reverse(collect(n.id)) AS l"],
}

ALIKE = [
    "MATCH (a:Rank)-[:RAN]->(s)<-[:RAN]-(b) WHERE a.id < b.id AND (s.rank = 1 OR true) RETURN a.id",
    "MATCH (a:Rank)-[:RAN]->(s)<-[:RAN]-(b) WHERE NOT id(a) = id(b) RETURN a.id",
    "MATCH (a)-[r:RAN]->(s)<-[q:RAN]-(b) WHERE r <> q RETURN a.id",
    "MATCH (a {rank: 0})-[:RAN]->(s)<-[:RAN]-(b) WHERE b.rank = 1 RETURN a.id",
    "MATCH (a:Finding)-[:SHOWN_BY]->(s:Span), (b:Finding)-[:SHOWN_BY]->(t:Step) RETURN a.id",
    "MATCH (a:Rank)-[:RAN]->(s) MATCH (s)<-[:RAN]-(b) RETURN a.id",
    "MATCH (a)-[:CHILD]->(b)-[:CHILD]->(c), (c)-[:CHILD*0..5]->(d)-[:CHILD]->(e) RETURN e.id",
    "MATCH (a:Span)-[:CHILD|LAUNCHED*0..88]->(b)-[:LAUNCHED]->(c) RETURN c.id",
    "MATCH (a)-[:TALKED_TO]->(b)-[:TALKED_TO]->(c) RETURN c.id",
    "MATCH (a)-[:TALKED_TO* TRAIL 1..3]-(b) MATCH (a)-[:CHILD* SHORTEST 1..20]-(c) RETURN c.id",
    "MATCH (a)--(b) RETURN [a.id, b.id] AS l, a.id IN [1, 2] AS x, [1, 2][0..1] AS m, $l[..2] AS n",
    "RETURN CAST([1] AS INT64[]) AS l, {labels: 1}.labels AS x, reverse('ab') AS y",
]

EXPLAINED = {
    "RETURN toInteger('1') AS x": "CAST",
    "RETURN reduce(a = 0, x IN [1] | a + x) AS x": "list_sum",
    "MATCH (a:Span), (b:Span) MATCH p = shortestPath((a)-[:CHILD*..5]->(b)) RETURN length(p)":
        "SHORTEST 1..20",
    "MATCH (s:Step) RETURN COUNT { (s)<-[:IN_STEP]-() } AS n": "OPTIONAL MATCH",
    "MATCH (s:Step) CALL { WITH s MATCH (s)--(x) RETURN count(x) AS n } RETURN n": "group by WITH",
    "MATCH (s:Step) RETURN s {.id, .rank} AS m": "id: s.id",
    "MATCH (s:Step) WITH s ORDER BY s.dur_ns RETURN s.id AS id": "LIMIT 1000000000",
    "MATCH (s:Step) WHERE 1 < s.rank < 3 RETURN s.id AS id": "a < b AND b < c",
    "MATCH (a:Span) ((:Span)<-[:CHILD]-(:Span)){1,12} (b:Span) RETURN count(*) AS n": r"\*1..12",
    "MATCH (n:!Span) RETURN count(*) AS n": "label",
    "MATCH (a:Span)-[r:CHILD]->(b) RETURN type(r) AS t": "label",
    "MATCH (s:Step) RETURN s.id AS s ORDER BY s": "alias",
    "CALL db.labels() YIELD label RETURN label": "show_tables",
    "RETURN round(1.5) AS x": r"round\(x, 0\)",
}  # fmt: skip

# their two ends are kept apart by lists of hosts that have none in common
APART_BY_LISTS = {
    "nics_fewer", "socket_on_some_hosts", "nccl_versions_differ", "variable_on_some_hosts",
}  # fmt: skip


def adapted(text: str, rows: int = 0) -> str:
    return dialect.adapted(reading.check(text), rows)


@pytest.mark.parametrize(
    ("text", "said"), [(text, said) for said, texts in OTHERWISE.items() for text in texts]
)
def test_what_would_be_answered_otherwise_is_refused(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        adapted(text)


@pytest.mark.parametrize("text", ALIKE)
def test_what_both_answer_alike_is_asked(text: str) -> None:
    assert adapted(text).startswith(text[:10])


@pytest.mark.parametrize(("text", "said"), EXPLAINED.items())
def test_a_refusal_of_the_engine_says_what_to_write(published: Path, text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        guarded.ask(Workspace(published), text)


def test_the_way_that_is_advised_gives_the_answer(published: Path) -> None:
    place = Workspace(published)
    first = "MATCH (a:Rank)-[:MEMBER_OF]->(g)<-[:MEMBER_OF]-(b:Rank)"
    for text in (
        f"{first} WHERE a.id <> b.id RETURN count(*) AS n",
        "MATCH (a:Rank)-[:MEMBER_OF]->(g) MATCH (g)<-[:MEMBER_OF]-(b:Rank) WHERE a.id <> b.id "
        "RETURN count(*) AS n",
    ):
        assert guarded.ask(place, text).table["n"].to_pylist() == [2]


def test_a_text_is_sent_with_its_names_its_zero_and_its_limit() -> None:
    asked = "MATCH (s:Span) RETURN s.rank, count(*), sum(s.dur_ns) ORDER BY sum(s.dur_ns)"
    assert adapted(asked, 10) == (
        "MATCH (s:Span) RETURN s.rank, count(*) AS `count(*)`, "
        "coalesce(sum(s.dur_ns), 0) AS `sum(s.dur_ns)` ORDER BY coalesce(sum(s.dur_ns), 0) LIMIT 11"
    )
    own = "MATCH (s) RETURN s.id LIMIT $n"
    assert adapted(own, 10) == own
    both = "RETURN 1 AS x UNION RETURN 2 AS x"
    assert adapted(both, 10) == both


def test_the_queries_of_the_project_are_portable() -> None:
    refused = set()
    asked = {name: [queries.text(name)] for name in queries.names()}
    for path in RULES.glob("*.toml"):
        said = tomllib.loads(path.read_text())
        asked[path.stem] = [text for text in _strings(said) if "MATCH" in text and "RETURN" in text]
    for name, texts in asked.items():
        for text in texts:
            try:
                adapted(text)
            except QueryRefused:
                refused.add(name)
    assert refused == APART_BY_LISTS


def test_the_questions_of_the_documents_are_asked() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cypher.md").read_text()
    texts = re.findall(r"```cypher\n(.*?)```", page, re.DOTALL)
    assert len(texts) > 10
    for text in texts:
        assert adapted(text, 10), text


def test_no_way_over_other_relations_comes_back_to_its_start() -> None:
    steps = {(a.label, b.label) for r in RELATIONS if r.type not in CYCLIC for a, b in r.ends}
    reached = {(a, b) for a, b in steps if a != b}
    while more := {(a, d) for a, b in reached for c, d in reached if b == c} - reached:
        reached |= more
    assert not [label for label, other in reached if label == other]
    own = {r.type for r in RELATIONS if r.type not in CYCLIC and any(a is b for a, b in r.ends)}
    assert own == {"FOLLOWED_BY", "CHILD", "LAUNCHED", "NEXT", "WAITED_FOR"}, "all forward in time"


# of the 72 queries of the comparison of engines: asked as they are, with the right answer
RIGHT = (
    "R01 R02 R03 R04 R05 R06 R07 R08 R10 R11 R12 R13 R14 R15 R21 R23 R30 R34 R37 R41 R42 R44 R45 "
    "R46 R47 R48 R52 R54 R55 R56"
)
WRONG = ("R32", "R50", "R53")


@pytest.fixture(scope="module")
def compared(shared: Path) -> dict[str, str]:
    """Give the texts of the comparison of engines by their ids."""
    folder = shared / "graphdb"
    if not (folder / "queries.py").is_file():
        pytest.skip(f"no comparison of engines in {folder}")
    sys.path.insert(0, str(folder))
    try:
        made = _module(folder / "queries.py")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("minigraph", None)
    return {query["id"]: query["q"] for query in made.Q}


def test_what_the_engine_answers_right_is_asked(compared: dict[str, str]) -> None:
    for name in RIGHT.split():
        assert adapted(compared[name], 10_000), name


@pytest.mark.parametrize("name", WRONG)
def test_what_the_engine_answers_wrong_is_refused(compared: dict[str, str], name: str) -> None:
    with pytest.raises(QueryRefused):
        adapted(compared[name])


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("compared_queries", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _strings(said: object) -> list[str]:
    if isinstance(said, dict):
        return [text for value in said.values() for text in _strings(value)]
    if isinstance(said, list):
        return [text for value in said for text in _strings(value)]
    return [said] if isinstance(said, str) else []
