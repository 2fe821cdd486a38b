"""`teller evaluate` on the committed runs: tables are made once, kept, made again when stale."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from teller.cli import main

pytestmark = [
    pytest.mark.slow,
    # of torch and its exporter, about their own future
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.skipif(
        find_spec("torch_geometric") is None or find_spec("lightgbm") is None,
        reason="the extra `learn` is not installed",
    ),
]
RUNS = Path(__file__).parents[1] / "data" / "runs" / "simulated"
SETS = {
    "train": ("run-1a63881eb917", "run-3413ccff0ef7", "run-1504c2be4835"),
    "validation": ("run-1b200ddadc20", "run-9d0a019b2ede"),
    "test": ("run-d5aa1bed5f3c", "run-90e33d331f95"),
}


def _set(place: Path, names: tuple[str, ...]) -> Path:
    place.mkdir(parents=True)
    for name in names:
        shutil.copytree(RUNS / name, place / name)
        shutil.copy(RUNS / f"{name}.truth.json", place)
    return place


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with three sets and a model that learnt for one epoch."""
    place = tmp_path_factory.mktemp("evaluate")
    for role, names in SETS.items():
        _set(place / role, names)
    words = ["train", str(place / "train"), "--validation", str(place / "validation"), "-o",
             str(place / "model"), "--cache", str(place / "cache"), "--epochs", "1",
             "-q"]  # fmt: skip
    assert main(words) == 0
    return place


def _words(place: Path, *more: str, roles: tuple[str, ...] = tuple(SETS)) -> list[str]:
    given = [w for role in roles for w in (f"--{role}", str(place / role))]
    return ["evaluate", str(place / "model"), *given, "-o", str(place / "evaluation"),
            "--cache", str(place / "cache"), "--quick", *more]  # fmt: skip


@pytest.fixture(scope="module")
def evaluated(trained: Path) -> Path:
    """Give the same with all tables that --quick makes."""
    assert main(_words(trained, "-q")) == 0
    return trained


def test_every_table_that_can_be_made_is_there_and_on_the_page(evaluated: Path) -> None:
    made = {p.stem for p in (evaluated / "evaluation").glob("*.json")}
    assert made == {"steps", "causes", "priors", "severity", "classes", "inputs", "calibration",
                    "timing"}  # fmt: skip
    text = (evaluated / "evaluation.md").read_text()
    assert "## Abnormal iterations" in text
    for judge in ("| model |", "| rules alone |", "| boosted trees |", "| chance |"):
        assert judge in text
    assert "Not up to date" not in text
    size = sum(p.stat().st_size for p in (evaluated / "evaluation").rglob("*") if p.is_file())
    assert size < 2_000_000


def test_counts_are_those_of_the_runs(evaluated: Path) -> None:
    table = json.loads((evaluated / "evaluation" / "steps.json").read_text())
    part = table["parts"][0]
    cells = dict(zip(part["columns"], part["rows"][0][1], strict=True))
    assert (cells["runs"], cells["roots"], cells["classes"]) == (2, 2, 1)
    assert cells["positive"] > 0


def test_a_second_time_makes_nothing_and_says_the_same(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def state() -> dict[str, int]:
        kept = sorted((evaluated / "evaluation").rglob("*"))
        return {str(p): p.stat().st_mtime_ns for p in kept if p.suffix in (".json", ".npz")}

    before = state()
    assert main(_words(evaluated)) == 0
    told = capsys.readouterr()
    assert "steps: up to date" in told.err
    assert "Abnormal iterations" in told.out
    assert state() == before


def test_list_tells_what_is_there_what_is_not_and_what_cannot_be(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(evaluated, "--list", "-q")) == 0
    stands = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "up to date" in stands["causes"]
    assert "missing" in stands["siblings"]
    assert "it needs --testbed" in stands["transfer"]


def test_a_table_is_stale_where_its_runs_are_others(
    evaluated: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(evaluated, place)
    shutil.rmtree(place / "test" / "run-90e33d331f95")
    assert main(_words(place, "--list", "-q")) == 0
    assert "another test than before" in capsys.readouterr().out
    assert main(_words(place, "--table", "timing")) == 0
    assert "timing: stale" in capsys.readouterr().err
    assert json.loads((place / "evaluation" / "timing.json").read_text())["made"]["times"] == 2
    assert "Not up to date: another test than before" in (place / "evaluation.md").read_text()


def test_networks_are_trained_again_without_an_engine_and_without_a_group(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = _words(
        evaluated, "--table", "engines", "--table", "siblings", "--minutes", "0.02"
    )  # fmt: skip
    assert main(words) == 0
    said = capsys.readouterr()
    assert "trtllm, unseen" in said.out
    assert "trtllm, seen" in said.out
    table = json.loads((evaluated / "evaluation" / "siblings.json").read_text())
    assert [name for name, _ in table["parts"][0]["rows"]] == ["host_pause", "mean over groups"]
    assert main(words) == 0
    assert "making" not in capsys.readouterr().err


def test_a_folder_without_labelled_runs_is_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", str(trained / "model"), "--test", str(tmp_path), "-o",
             str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]  # fmt: skip
    assert main(words) == 2
    assert "no labelled run" in capsys.readouterr().err


def test_relatives_on_both_sides_are_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", str(trained / "model"), "--validation", str(trained / "test"), "--test",
             str(trained / "test"), "-o", str(tmp_path / "out"), "--cache",
             str(trained / "cache")]  # fmt: skip
    assert main(words) == 2
    assert "root seed" in capsys.readouterr().err


def test_a_model_of_another_version_is_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    (tmp_path / "model" / "card.json").write_text(json.dumps(card | {"version": 0}))
    words = ["evaluate", str(tmp_path / "model"), "--test", str(trained / "test"), "-o",
             str(tmp_path / "out")]  # fmt: skip
    assert main(words) == 2
    assert "version 0" in capsys.readouterr().err


def test_a_table_that_is_not_there_is_named_with_those_that_are(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(trained, "--table", "step")) == 2
    assert "did you mean steps" in capsys.readouterr().err
