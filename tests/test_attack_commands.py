"""Wrong flags, rules and values end in one plain line that names what is wrong."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from teller import cli
from teller.errors import BadUsage, NoRoom
from teller.graph.embedded import EmbeddedStore
from teller.graph.engine_words import translated
from teller.ingest.who import Told
from teller.models.case import Case
from teller.models.diagnose import judge
from teller.models.rule import rules

RULE = """
id = "mine"
class = "slow_rank"
title = "T {a}"
claim = "c"
text = "x {a}"
next_step = "n"
confidence = 0.9
culprit = ["rank"]
"""


@pytest.mark.parametrize(
    ("regex", "said"),
    [
        ("(", "missing"),
        ("rank", "no group 'rank'"),
        (r"(?P<host>\d+)", "no group 'rank'"),
    ],
)
def test_a_regex_that_can_name_no_rank_is_refused_at_once(regex: str, said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        Told(rank_regex=regex)


def test_a_regex_that_finds_no_number_names_the_file() -> None:
    told = Told(rank_regex=r"rank(?P<rank>.*)", host_regex="(?P<host>zz)?rank")
    with pytest.raises(BadUsage, match=r"'1\.json' in rank1\.json"):
        told.rank_of("rank1.json")
    assert told.rank_of("other.json") is None
    assert told.rank_of("rank12") == 12
    assert told.host_of("rank1.json") == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"id = [", "Invalid value"),
        (b"\xff\xfe", "Invalid statement"),
        (RULE.encode(), "one of find and compare"),
        (RULE.replace("slow_rank", "nope").encode() + b'find = "RETURN 1"', "no class 'nope'"),
        (RULE.replace("0.9", "7").encode() + b'find = "RETURN 1"', "<= 1.0"),
        (RULE.replace("0.9", "nan").encode() + b'find = "RETURN 1"', ">= 0.0"),
    ],
    ids=["toml", "utf-8", "find", "class", "sure", "nan"],
)
def test_a_broken_rule_is_named_with_its_file(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "mine.toml").write_bytes(text)
    with pytest.raises(BadUsage, match=r"mine\.toml: ") as caught:
        rules(tmp_path)
    assert said in str(caught.value)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedStore:
    return EmbeddedStore(tmp_path_factory.mktemp("store") / "graph.lbdb")


@pytest.mark.parametrize(
    ("find", "said"),
    [
        ("MATCH (n", "never closed"),
        ("MATCH (n:Nope) RETURN n.id AS a", "no label or relation 'Nope'"),
        ("MATCH (n:Step) DETACH DELETE n", "only reads"),
        ("RETURN 1 AS b, 0 AS rank", "none of its columns is 'a'"),
        ("RETURN $zz AS a, 0 AS rank", "needs \\$zz"),
        ("RETURN 1 AS a, 'zero' AS rank", "'zero', which names none"),
        ("RETURN 1 AS a, 0 AS rank, 'awful' AS severity", "'awful' is none of"),
    ],
)
def test_a_rule_that_fails_is_named(
    tmp_path: Path, store: EmbeddedStore, find: str, said: str
) -> None:
    (tmp_path / "mine.toml").write_text(f'{RULE}find = "{find}"')
    with pytest.raises(BadUsage, match=f"^rule mine: .*{said}"):
        judge(store, 1, tmp_path)


def test_a_rule_that_cannot_see_the_cost_is_heard(tmp_path: Path, store: EmbeddedStore) -> None:
    (tmp_path / "mine.toml").write_text(f'{RULE}find = "RETURN 1 AS a, 0 AS rank"')
    found = judge(store, 1, tmp_path).findings
    assert [(f.title, f.severity, f.culprit.ranks) for f in found] == [("T 1", "medium", (0,))]
    assert Case(store, 1).ranks == {}


def test_a_rule_that_needs_too_much_is_told_and_the_others_answer(tmp_path: Path) -> None:
    endless = "UNWIND range(1, 1000000000) AS x WITH sum(x % 7) AS a RETURN a, 0 AS rank"
    (tmp_path / "endless.toml").write_text(f'{RULE}find = "{endless}"')
    (tmp_path / "zeta.toml").write_text(
        RULE.replace("mine", "zeta") + 'find = "RETURN 1 AS a, 0 AS rank"'
    )
    with EmbeddedStore(tmp_path / "graph.lbdb", timeout_s=1.0) as slow:
        judged = judge(slow, 1, tmp_path)
    assert [f.title for f in judged.findings] == ["T 1"]
    assert [
        n for n in judged.notes if n.startswith("rule mine was not answered: stopped after 1 s")
    ]


def test_a_value_of_mixed_kinds_is_refused_in_words(store: EmbeddedStore) -> None:
    with pytest.raises(BadUsage, match=r"a value of \$x"):
        store.query("RETURN $x", {"x": [1, "a"]})
    assert store.query("RETURN 1 AS one")["one"].to_pylist() == [1]


def test_questions_without_end_do_not_fill_the_memory(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "graph.lbdb", pool_bytes=96 << 20, threads=1) as small:
        for i in range(400):
            text = (
                f"MATCH (s:Span)-[:IN_STEP]->(t:Step) WHERE s.run_id = {i} AND t.rank = $rank "
                "WITH t.step_index AS k, count(*) AS n RETURN k, n ORDER BY n LIMIT 3"
            )
            assert small.query(text, {"rank": 0}).num_rows == 0


def test_closed_streams_leave_the_exit_code() -> None:
    code = "import sys; sys.stdout = sys.stderr = None; from teller.cli import run; run()"
    for words, expected in ((["rules", "list"], 0), (["rules", "show", "nope"], 2)):
        done = subprocess.run([sys.executable, "-c", code, *words], check=False)
        assert done.returncode == expected


def test_a_full_disk_is_said_plainly() -> None:
    said = "IO exception: Cannot write to file. Error: No space left on device"
    assert isinstance(translated(said, 1.0, "graph.lbdb"), NoRoom)
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(OSError, match="No space") as caught:
        full.write_text("x")
    assert caught.value.errno == errno.ENOSPC
    assert cli._failed(caught.value).endswith("make room, or name another place with --workspace")
