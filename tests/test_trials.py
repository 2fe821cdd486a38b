"""Users' own rules: what is wrong with them is told, and their examples are held to them."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from teller.cli import main

RULE = """
id = "slow_copy"
class = "blocking_copy"
title = "{calls} slow copies"
claim = "Copies that take longer than they may."
text = "{calls} copies take longer than {limit_ns:time}, the longest {most_ns:time}."
next_step = "Pin the memory."
confidence = 0.8
thresholds = { limit_ns = 500_000 }
find = '''
MATCH (s:Span)
WHERE s.run_id = $run AND s.name = 'aten::copy_' AND s.dur_ns > $limit_ns
WITH count(*) AS calls, max(s.dur_ns) AS most_ns
WHERE calls > 0
RETURN calls, most_ns
'''

[[example]]
path = "slow"
expect = "finds"

[[example]]
path = "quick"
expect = "silent"
"""


def trace(path: Path, durations_us: Iterable[int]) -> None:
    """Write a trace whose copies take so long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 7, "tid": 7,
         "ts": 10_000 * n, "dur": dur}
        for n, dur in enumerate(durations_us)
    ]  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), "utf-8")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Give a folder with one right rule and the examples that it names."""
    folder = tmp_path / "mine"
    trace(folder / "copies.examples" / "slow" / "rank0.json", [80, 900, 1200])
    trace(folder / "copies.examples" / "quick" / "rank0.json", [80, 90, 120])
    (folder / "copies.toml").write_text(RULE, "utf-8")
    return folder


def test_a_right_rule_and_its_examples_hold(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "test", str(mine)]) == 0
    assert "rule slow_copy: right as it stands and on 2 of its examples" in capsys.readouterr().out


def test_an_example_that_does_not_hold_is_told(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace(mine / "copies.examples" / "slow" / "rank0.json", [80, 90])
    trace(mine / "copies.examples" / "quick" / "rank0.json", [80, 1900])
    assert main(["rules", "test", str(mine / "copies.toml")]) == 1
    said = capsys.readouterr().out
    assert "example slow (finds): it finds nothing" in said
    assert "example quick (silent): it is to be silent, and finds: 1 slow copies" in said


def test_an_example_that_is_not_there_is_told(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine / "copies.toml").write_text(RULE.replace('"slow"', '"slaw"'), "utf-8")
    assert main(["rules", "test", str(mine), "--format", "json"]) == 1
    [said] = json.loads(capsys.readouterr().out)
    assert not said["good"]
    assert "copies.examples/slaw is not there" in said["examples"][0]["wrong"]


def test_a_flaw_is_told_with_its_line_and_two_rules_of_one_id_too(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine / "other.toml").write_text(RULE.replace("{most_ns:time}", "{mast_ns:time}"), "utf-8")
    assert main(["rules", "test", str(mine)]) == 1
    said = capsys.readouterr().out
    assert f"{mine / 'other.toml'}:6: rule slow_copy: text: no column 'mast_ns'" in said
    assert "copies.toml has a rule of this id too" in said


def test_one_rule_is_run_on_a_stored_run(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--workspace", str(tmp_path / "w"), "--quiet"]
    assert main(["ingest", str(mine / "copies.examples" / "slow"), *place]) == 0
    capsys.readouterr()
    assert main(["rules", "run", "slow_copy", "--rules", str(mine), *place]) == 1
    said = capsys.readouterr().out
    assert "limit_ns = 500000" in said
    assert "1200000 (most 1.20 ms)" in said
    assert "2 copies take longer than 500 µs, the longest 1.20 ms." in said
    assert main(["rules", "run", "slow_rank", "--rules", str(mine), *place]) == 0
    assert "gives no row" in capsys.readouterr().out
