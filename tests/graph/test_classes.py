"""The list of classes is whole, and each fault can be claimed, or it is said why not."""

import csv
from pathlib import Path

from teller.graph.classes import ClaimClass, classes
from teller.models.rule import rules


def _line(said: ClaimClass) -> list[str]:
    lists = (said.faults, said.testbed, said.culprits, said.also_changes)
    faults, testbed, culprits, changes = (",".join(one) or "-" for one in lists)
    own = [said.name, said.title, said.verdict, said.cases]
    return [*own, faults, testbed, culprits, said.siblings, changes]


def test_the_list_of_classes_is_the_common_one(shared: Path) -> None:
    with (shared / "classes.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows[0] == [
        "class", "title", "verdict", "case_class", "faults", "testbed", "culprit_kind",
        "siblings", "also_changes",
    ]  # fmt: skip
    assert [_line(c) for c in classes().values()] == rows[1:]


def test_each_fault_has_a_rule_or_a_head_of_the_model_or_a_reason() -> None:
    claimed = {rule.klass for rule in rules().values()}
    faults = [c for c in classes().values() if c.verdict == "fault"]
    lacking = [c.name for c in faults if c.name not in claimed and not c.model and not c.neither]
    assert not lacking, f"no rule, no model and no reason: {', '.join(lacking)}"


def test_no_class_says_why_it_has_no_rule_and_has_one() -> None:
    claimed = {rule.klass for rule in rules().values()}
    assert not [c.name for c in classes().values() if c.neither and c.name in claimed]


def test_only_a_model_that_is_there_claims_a_class() -> None:
    # There is no model yet; whoever adds one holds these heads to it.
    assert not [c.name for c in classes().values() if c.model]
