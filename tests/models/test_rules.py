"""Every rule can be asked, names a class, and says only what its queries give."""

from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pyarrow as pa
import pytest

from teller.errors import BadUsage, UnknownName
from teller.graph.classes import class_named
from teller.graph.embedded import EmbeddedStore
from teller.models.case import PARAMETER
from teller.models.rule import Rule, rule_named, rules

RULES = rules()
# What the runner adds to a candidate's row.
ADDED = {
    "host": pa.string(),
    "device": pa.string(),
    "rank_count": pa.int64(),
    "share": pa.float64(),
    "run": pa.int64(),
}
COMPARED = dict.fromkeys(("usual_ns", "factor", "over_ns", "over_share", "excess_ns"), pa.float64())
SAMPLE = {"string": "x", "int64": 1, "double": 1.0}
EPISODE = dict.fromkeys(
    ("first_step", "last_step", "step_count", "level_ns", "excess_ns", "start_ns", "end_ns"),
    pa.int64(),
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path_factory.mktemp("empty") / "graph.lbdb") as store:
        yield store


def ask(store: EmbeddedStore, text: str, known: dict[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Run a query with a value of the right type for each parameter, and give its columns."""
    names = set(PARAMETER.findall(text)) - {"run"}
    assert names <= set(known), f"asks for {sorted(names - set(known))}"
    values = {n: SAMPLE[str(known[n])] for n in names}
    table = store.query(text.replace("$run", "1"), values)
    return dict(zip(table.schema.names, table.schema.types, strict=True))


def words(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def row_of(rule: Rule, store: EmbeddedStore) -> dict[str, pa.DataType]:
    limits = {n: pa.float64() for n in rule.thresholds}
    row = ADDED | limits
    if rule.each == "episode":
        row |= EPISODE | {"rank": pa.int64(), "episode_ns": pa.int64()}
    if rule.compare:
        asked = ask(store, rule.compare.cypher, limits)
        assert {*rule.compare.keys, "each_ns", "calls"} <= set(asked)
        row |= asked | COMPARED
    else:
        row |= ask(store, rule.find, row)
    return row | EPISODE if rule.episode else row


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_says_only_what_its_queries_give(name: str, empty: EmbeddedStore) -> None:
    rule = RULES[name]
    row = row_of(rule, empty)
    for template in (rule.title, rule.text, rule.next_step):
        assert words(template) <= set(row), template
    assert set(rule.numbers.values()) <= set(row)
    assert set(rule.culprit) <= set(row)
    if rule.episode:
        steps = ask(empty, rule.episode.cypher, row)
        assert {"step_index", "excess_ns", "start_ns", "end_ns"} <= set(steps)
    for shown in rule.evidence:
        columns = ask(empty, shown.cypher, row)
        assert words(shown.text) <= set(row) | set(columns), shown.text
        assert "id" in columns
        if shown.kind == "Span":
            assert "input_id" in columns
    for one in rule.against:
        assert words(one.text) <= set(row) | set(ask(empty, one.cypher, row))


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_names_a_class_and_rules_that_exist(name: str) -> None:
    rule = RULES[name]
    assert class_named(rule.klass)
    assert set(rule.unless) <= set(RULES)
    assert 0 < rule.confidence <= 1


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
