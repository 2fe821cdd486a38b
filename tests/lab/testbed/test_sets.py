"""Two makings of a set are judged by how their figures are spread."""

from pathlib import Path

import msgspec
import pytest

from teller.cli import main
from teller.errors import NothingUsable
from teller.lab.testbed import sets
from teller.lab.truth import Truth, write_truth


def a_set(folder: Path, truth: Truth, factors: list[float]) -> Path:
    """Write runs whose slow episode has the recorded strength times a factor."""
    slow = truth.episodes[0]
    for number, factor in enumerate(factors):
        run = folder / f"run{number}"
        run.mkdir(parents=True)
        (run / "manifest.json").write_text(f"{{{number}}}")
        told = slow.measured | {"direct_share": slow.measured["direct_share"] * factor}
        one = msgspec.structs.replace(slow, measured=told)
        write_truth(msgspec.structs.replace(truth, run=run.name, episodes=(one,)), run)
    return folder


def test_a_set_names_its_files_by_hash_and_tells_what_was_measured(
    tmp_path: Path, truth: Truth
) -> None:
    made = sets.write_set(a_set(tmp_path, truth, [1.0, 2.0, 3.0]))
    assert sorted(made["runs"]) == ["run0", "run1", "run2"]
    hashes = {one["files"]["manifest.json"] for one in made["runs"].values()}
    assert len(hashes) == 3
    (told,) = made["faults"].values()
    assert (told["episodes"], told["with_effect"]) == (3, 3)
    base = truth.episodes[0].measured["direct_share"]
    assert told["direct_share"] == pytest.approx([1.5 * base, 2 * base, 2.5 * base], rel=1e-3)


def test_makings_of_one_law_agree_and_others_do_not(tmp_path: Path, truth: Truth) -> None:
    steady = [0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3]
    one = a_set(tmp_path / "one", truth, steady)
    again = a_set(tmp_path / "again", truth, [f + 0.05 for f in steady])
    other = a_set(tmp_path / "other", truth, [f + 0.65 for f in steady])
    row, whole = sets.compared(one, again)
    assert whole == {**row, "fault": sets.ALL}  # there is one kind
    assert row["distance"] == pytest.approx(1 / 7, abs=1e-3)
    assert row["distance"] < row["bound"]
    row, _ = sets.compared(one, other)
    assert row["distance"] == 1.0 > row["bound"]
    assert main(["testbed", "compare", str(one), str(again)]) == 0
    assert main(["testbed", "compare", str(one), str(other)]) == 1


def test_a_folder_without_runs_is_said(tmp_path: Path) -> None:
    with pytest.raises(NothingUsable, match="no runs of the testbed here"):
        sets.truths(tmp_path)


def test_the_list_of_faults_says_what_each_needs_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["testbed", "faults", "--net", "loopback"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["slow_op"].endswith("yes")
    assert "needs namespaces, iptables, delay line" in lines["net_delay"]


def test_what_makes_no_sense_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["testbed", "run", "--fault", "slow_opp"]) == 2
    assert "did you mean slow_op" in capsys.readouterr().err
    assert main(["testbed", "run", "--fault", "slow_op", "--tp", "3"]) == 2
    assert "must be divisible" in capsys.readouterr().err
    assert main(["testbed", "run", "--fault", "cpu_quota", "--severity", "100"]) == 2
    assert "cpu_quota goes from 25 to 85 % of a core left" in capsys.readouterr().err
