"""A query is let through by its words and their places: it reads the graph, and nothing else."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller.errors import QueryRefused
from teller.graph import queries, reading, tokens
from teller.graph.reading_words import MIDWAY, READERS
from teller.models import rule

RULES = Path(rule.__file__).with_name("rules")

REFUSED = {
    "a write": "MATCH (n:Span) SET n.name = 'x'",
    "a write behind all columns": "MATCH (n) RETURN * CREATE (:Span)",
    "a write behind a repeated pattern": "MATCH ((a)-->(b))+ DETACH DELETE a",
    "a write behind any number of patterns": "MATCH ((a)-->(b))* SET a.x = 1",
    "a write behind a number": "WITH 1 AS x LIMIT 1SET x.y = 1",
    "a write in a union": "RETURN 1 AS x UNION CREATE (n) RETURN 1 AS x",
    "a write in a query in brackets": "CALL { MATCH (n) DELETE n } RETURN 1 AS x",
    "a write in a query of some variables": "MATCH (n) CALL (n) { SET n.x = 1 } RETURN 1 AS x",
    "a write in what is asked to exist": "RETURN EXISTS { CREATE (n) } AS x",
    "a write in transactions": "CALL { MATCH (n) RETURN n } IN TRANSACTIONS RETURN 1 AS x",
    "a write in a loop": "MATCH (n) FOREACH (x IN [1] | SET n.x = x)",
    "a write as a function": "RETURN 1 AS x, CREATE (n)",
    "a write between comments": "MATCH (n) /**/SET/**/ n.x = 1",
    "a write whose plan is asked for": "EXPLAIN MATCH (n) DELETE n",
    "the word of another standard": "MATCH (n) INSERT (:Span)",
    "a file": "LOAD FROM '/etc/passwd' (file_format='csv') RETURN *",
    "a file in the middle": "WITH 1 AS one LOAD CSV FROM 'file:///etc/passwd' AS l RETURN l",
    "a file behind a comma": "MATCH (n), LOAD CSV FROM 'file:///etc/passwd' AS l RETURN l",
    "a file behind a comment that ends twice": "/* **/ RETURN 1 AS a /* */ LOAD FROM 'x' RETURN *",
    "a file behind a comment and a lone return": "// asked\rLOAD FROM 'x' RETURN *",
    "a copy": "COPY (MATCH (n) RETURN n) TO 'out.csv'",
    "an export": "EXPORT DATABASE 'out'",
    "an import": "IMPORT DATABASE 'out'",
    "another database": "ATTACH 'x.db' AS x (dbtype duckdb)",
    "another graph": "USE other MATCH (n) RETURN n",
    "an extension": "INSTALL httpfs",
    "a setting": "CALL timeout=0",
    "a setting in odd blanks": "CALL\n\ttimeout\u00a0=\u20030",
    "a procedure": "CALL apoc.load.json('file:///etc/passwd') YIELD value RETURN value",
    "a procedure in back-ticks": "CALL `apoc`.`load`.`json`('x') YIELD value RETURN value",
    "a procedure of the server": "CALL dbms.listConfig() YIELD name RETURN name",
    "a procedure that writes": "CALL db.createLabel('x')",
    "a function of others": "RETURN apoc.cypher.runFirstColumnSingle('LOAD CSV', {}) AS x",
    "a function of others in back-ticks": "RETURN apoc . `cypher` . `run` ('x') AS x",
    "a function in back-ticks": "RETURN `apoc.cypher.run`('x') AS x",
    "two statements": "RETURN 1 AS x; MATCH (n) DELETE n",
    "options of the server": "CYPHER runtime=parallel MATCH (n) RETURN n",
    "a run whose plan is asked for": "PROFILE MATCH (n) RETURN n",
    "a list of users": "SHOW USERS",
    "nothing": " \n // nothing\n ; ",
    "letters as numbers": r"\u0043REATE (n)",
    "a quote as a number": r"RETURN '\u0027 LOAD CSV FROM \u0027x' AS x",
    "a quote as a number, in a name": r"RETURN 1 AS `\u0060 SET x`",
    "a NUL": "RETURN 'a\0b' AS x",
    "a word with a joiner in it": "MATCH (n) S\u200dET n.x = 1",
    "a word in letters that look the same": "MATCH (n) \u017fET n.x = 1",
    "a bracket too many": "RETURN (1)) AS x",
    "a bracket too few": "RETURN [(1] AS x",
    "brackets without end": f"RETURN {'(' * 5000}1{')' * 5000} AS x",
    "ten million letters": f"RETURN '{'x' * 10_000_000}' AS x",
    "a quote without end": "RETURN 'abc",
    "a comment without end": "RETURN 1 /* abc",
}

LET_THROUGH = [
    "MATCH (n:Load) RETURN n.set AS copy ORDER BY copy",
    "MATCH (set:Span) WHERE set.load > 1 RETURN set, set.create AS `delete`",
    "MATCH (n:Span|Set)-[:Drop|Create*1..3]->(m {copy: 1, remove: 'x'}) RETURN max(n.load)",
    "MATCH (n) RETURN {load: n.id, set: NOT n.used, at: CASE WHEN n.x THEN 1 ELSE 2 END} AS m",
    "RETURN 'MATCH (n) SET n.x = \\'1\\'' AS x, \"DELETE\" AS y, $set AS z // CREATE (n)",
    "/* load from */ MATCH (n) /* DELETE n */ RETURN n.id AS `SET n.x = 1`;",
    "MATCH (a)-[r:CHILD* ALL SHORTEST 1..5]-(b) RETURN length(r) AS n",
    "MATCH (a)-[* SHORTEST 1..3]-(b) MATCH (a)-[:X*1..3 (r, n | WHERE r.x > 0)]->(c) RETURN b, c",
    "MATCH p = ANY SHORTEST (a)-->+(b) MATCH SHORTEST 2 GROUPS (c)-->{1,3}(d) RETURN p, d",
    "CALL show_tables() RETURN *",
    "CALL db.labels() YIELD label WHERE label STARTS WITH 'S' RETURN label ORDER BY label DESC",
    "OPTIONAL MATCH (n) WHERE n.a ENDS WITH 'x' AND NOT n.b IS NOT NULL RETURN count(*) SKIP 1",
    "MATCH (s) CALL (s) { MATCH (s)-->(x) RETURN count(x) AS c } WITH * RETURN DISTINCT s {.*, c}",
    "RETURN date.truncate('day', date()) AS d, all(x IN [1] WHERE x > 0) AND any(x IN [] WHERE x)",
    "MATCH (n) WHERE EXISTS { (n)-->() WHERE true } RETURN COUNT { p = (n)--() } AS c",
    "RETURN reduce(a = 0, x IN [1, -2] | a + x) AS t UNION ALL RETURN [x IN $l | NOT x] AS t",
    "EXPLAIN MATCH (n) RETURN n",
]  # fmt: skip


def texts(said: object) -> Iterator[str]:
    if isinstance(said, dict):
        for value in said.values():
            yield from texts(value)
    elif isinstance(said, list):
        for value in said:
            yield from texts(value)
    elif isinstance(said, str) and "MATCH" in said and "RETURN" in said:
        yield said


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_no_reading_query_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        reading.check(text)


@pytest.mark.parametrize("text", LET_THROUGH)
def test_words_are_refused_only_where_they_are_clauses(text: str) -> None:
    assert reading.check(text).text.split()


def test_the_queries_of_the_project_read_only() -> None:
    kept = [queries.text(name) for name in queries.names()]
    kept += [t for p in RULES.glob("*.toml") for t in texts(tomllib.loads(p.read_text()))]
    assert len(kept) > 100
    for text in kept:
        reading.check(text)


@given(
    word=st.sampled_from(sorted(MIDWAY)),
    case=st.sampled_from((str.upper, str.lower, str.title)),
    blank=st.sampled_from((" ", "\n", "/* */", "// x\n", "\u2003", "\t")),
    text=st.sampled_from(LET_THROUGH),
)
def test_a_writing_clause_at_the_end_of_any_query_is_refused(
    word: str, case: Callable[[str], str], blank: str, text: str
) -> None:
    whole = text.partition(" // ")[0].rstrip("; ")
    with pytest.raises(QueryRefused, match=word):
        reading.check(f"{whole}{blank}{case(word)}{blank}n.x = 1")


@given(st.text(max_size=40), st.sampled_from(("'{}'", '"{}"', "`x{}`", "/*{}*/ 1", "//{}\n 1")))
def test_no_text_in_quotes_or_comments_changes_what_is_asked(inside: str, around: str) -> None:
    quote = around[0]
    kept = inside.replace("\\", "").replace(quote, "").replace("*/", "").replace("\0", "")
    kept = kept.replace("\n", "").replace("\r", "") if quote == "/" else kept
    found = reading.check(f"RETURN {around.format(kept)} AS x")
    assert [t.text for t in found.tokens][0::2] == ["RETURN", "AS"]


@given(st.text(alphabet="/*' \"`\\\nSETx", max_size=30))
def test_an_engine_is_sent_no_comment(text: str) -> None:
    try:
        found = tokens.read(text)
    except QueryRefused:
        return
    sent = tokens.clean(text, found)
    assert tokens.read(sent) == found
    ends = [0, *(token.end for token in found)]
    gaps = [sent[end : token.start] for end, token in zip(ends, found, strict=False)]
    assert not "".join(gaps).strip(" \n")


def test_procedures_are_let_through_by_name() -> None:
    assert reading.check("CALL SHOW_TABLES() RETURN name")
    assert not any(name.startswith(("apoc", "dbms")) for name in READERS)


def test_strings_and_comments_are_not_statements() -> None:
    text = 'MATCH (n {a: \';$x\', b: "$y\\""}) // ; $z\n/* $w */ WHERE n.c = $q RETURN `$k`;'
    assert tokens.parameters(text) == {"q"}
    assert tokens.bare(text).count(";") == 1
    assert tokens.ends(text) == [len(text) - 1]


def test_a_refusal_says_where() -> None:
    with pytest.raises(QueryRefused, match=r"SET is not allowed in it \(line 2, column 3\)"):
        reading.check("MATCH (n) // all\n  SET n.x = 1")
    with pytest.raises(QueryRefused, match=r"RETRN at line 1, column 11 is no word"):
        reading.check("MATCH (n) RETRN n")
    with pytest.raises(QueryRefused, match=r"‘ at line 1, column 8 is no quote of Cypher's"):
        reading.check("RETURN ‘x’")
