"""Every rule can be asked, names a class, and says only what its queries give."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from teller.errors import BadUsage, UnknownName
from teller.graph.classes import class_named
from teller.graph.embedded import EmbeddedStore
from teller.models.check import check, flaws, read
from teller.models.rule import rule_named, rules

RULES = rules()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path_factory.mktemp("empty") / "graph.lbdb") as store:
        yield store


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_says_only_what_its_queries_give(name: str, empty: EmbeddedStore) -> None:
    assert [flaw.what for flaw in flaws(RULES[name], empty, RULES)] == []


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_names_a_class_and_rules_that_exist(name: str) -> None:
    rule = RULES[name]
    assert class_named(rule.klass)
    assert set(rule.unless) <= set(RULES)
    assert 0 < rule.confidence <= 1


OURS = (Path(__file__).parents[2] / "models/rules/slow_rank.toml").read_text("utf-8")
# What a user may get wrong in a copy of one of our rules, what is said of it, and what stands in
# the line that is named.
WRONG = {
    "sentence": ("Rank {rank} computes", "Rank {rnk} computes", "title: no column 'rnk'", "{rnk}"),
    "unit": ("{ratio:times} slower", "{ratio:tims} slower", "title cannot be said", "{ratio:tims}"),
    "property": ("s.layer <> 'comm'", "s.layr <> 'comm'", "find: no property 'layr'", "MATCH (s"),
    "parameter": ("$min_ratio *", "$min_ration *", "find asks for $min_ration", "$min_ration"),
    "Cypher": (
        "WHERE t.run_id = $run AND t.rank",
        "WHERE (t.run_id = $run AND t.rank",
        "never closed",
        "",
    ),
    "culprit": ('"host", "device"]', '"host", "card"]', "culprit 'card' names nobody", "card"),
    "number": ('compute_ratio = "ratio"', 'compute_ratio = "rate"', "no column 'rate'", "rate"),
    "episode": ("t.step_index AS step_index,", "", "query does not give step_index", "MATCH (t"),
    "class": ('class = "slow_rank"', 'class = "slow_rnk"', "no class 'slow_rnk'", ""),
    "TOML": ('each = "episode"', "each = episode", "Invalid value", "each"),
    "key": ("each =", "eech =", "unknown field `eech`", ""),
    "look-alike": ("unless = [", 'unless = ["slow_rk", ', "is not there: slow_rk", "slow_rk"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_rule_is_told_with_what_is_wrong_and_its_line(
    kind: str, empty: EmbeddedStore, tmp_path: Path
) -> None:
    right, wrong, said, line = WRONG[kind]
    assert right in OURS
    path = tmp_path / "mine.toml"
    path.write_text(OURS.replace(right, wrong, 1), "utf-8")
    flaw = check(read(path), empty, RULES).flaws[0]
    assert said in flaw.what
    if line:
        assert line in path.read_text("utf-8").splitlines()[(flaw.line or 0) - 1]


def test_a_right_rule_has_no_flaw(empty: EmbeddedStore, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OURS, "utf-8")
    checked = check(read(path), empty, RULES)
    assert checked.rule == RULES["slow_rank"]
    assert not checked.flaws


def test_a_rule_that_does_not_exist_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownName, match="slow_rank"):
        rule_named("slow_rnk")


def test_a_users_rule_replaces_ours_and_a_broken_one_is_named(tmp_path: Path) -> None:
    ours = Path("models/rules/slow_rank.toml")
    text = (Path(__file__).parents[2] / ours).read_text("utf-8")
    (tmp_path / "mine.toml").write_text(text.replace("min_ratio = 0.08", "min_ratio = 0.5"))
    assert rule_named("slow_rank", tmp_path).thresholds["min_ratio"] == 0.5
    (tmp_path / "bad.toml").write_text("id = 3")
    with pytest.raises(BadUsage, match=r"bad\.toml"):
        rules(tmp_path)
