"""The command line: exit codes, clean streams, and flags that mean the same everywhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer

from teller import cli
from teller.cli import export, options, out, query
from teller.errors import BadUsage

TELLER = [sys.executable, "-c", "from teller.cli import run; run()"]
Capture = pytest.CaptureFixture[str]


def _commands() -> Iterator[list[str]]:
    root = typer.main.get_command(cli.app)
    for name, command in getattr(root, "commands", {}).items():
        below = getattr(command, "commands", {})
        shown = [inner for inner, one in below.items() if not one.hidden]
        yield from ([name, inner] for inner in shown) if below else [[name]]


COMMANDS = list(_commands())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_ends_with_an_example_of_that_command(words: list[str], capsys: Capture) -> None:
    assert cli.main([*words, "--help"]) == 0
    last = capsys.readouterr().out.strip().split("\n\n")[-1]
    assert " ".join(last.split()).startswith(f"Example: teller {' '.join(words)}")


def test_flags_mean_the_same_everywhere(capsys: Capture) -> None:
    said: dict[str, set[str]] = {}
    for words in COMMANDS:
        cli.main([*words, "--help"])
        text = " ".join(capsys.readouterr().out.split())
        for flag in ("--workspace DIR", "--store URI", "--run ID|NAME", "-q, --quiet"):
            if flag in text:
                after = text.partition(flag)[2].split(" -")[0].split("Example:")[0]
                said.setdefault(flag, set()).add(after.strip())
    assert {flag: len(texts) for flag, texts in said.items()} == dict.fromkeys(said, 1)
    assert len(said) == 4


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["diagnos", "."], "Did you mean 'diagnose'?"),
        (["diagnose", "nowhere-at-all"], "'nowhere-at-all' does not exist"),
        (["diagnose", ".", "--format", "yaml"], "not one of 'text', 'json', 'markdown', 'html'"),
        (["diagnose"], "PATH"),
        (["query", "RETURN 1", "--format", "parquet"], "needs -o FILE"),
        (["query", "RETURN $x", "--param", "x"], "NAME=VALUE"),
        (["export"], "one of --perfetto FILE and --table NAME"),
        (["runs", "list", "--store", "sql://db"], "--store embedded"),
        (["push", "night-run"], "--store neo4j://HOST:7687"),
        (["rules", "show", "no_such_rule"], "no rule 'no_such_rule'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_plain_message_and_exit_code_2(
    words: list[str], hint: str, capsys: Capture
) -> None:
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("teller: ")
    assert hint in captured.err
    assert "Traceback" not in captured.err


def test_a_group_alone_answers_with_its_help(capsys: Capture) -> None:
    assert cli.main([]) == 2
    assert capsys.readouterr().err.startswith("Usage: teller ")


def test_the_front_door_is_light() -> None:
    heavy = ("pyarrow", "numpy", "ladybug", "matplotlib", "dask", "torch", "streamlit", "jinja2")
    script = f"import sys, teller.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_reader_that_leaves_early_sees_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*TELLER, "--help"], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_screen_that_knows_ascii_alone_gets_escapes_and_no_traceback() -> None:
    done = subprocess.run(
        [*TELLER, "diagnose", "nowhere-→"], capture_output=True, check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 2
    assert b"nowhere-\\u2192" in done.stderr


def test_a_value_is_json_where_it_is_that() -> None:
    given = ["a=7", "b=x=y", 'c="7"', "d=[1, 2]", "e=true", "f=9007199254740993", "g="]
    assert dict(map(query.parsed, given)) == {
        "a": 7, "b": "x=y", "c": "7", "d": [1, 2], "e": True, "f": 9007199254740993, "g": "",
    }  # fmt: skip


def test_step_ranges_may_be_open() -> None:
    assert [export.step_range(given) for given in ("", "3", "3:7", ":7", "3:")] == [
        (None, None), (3, 3), (3, 7), (None, 7), (3, None),
    ]  # fmt: skip
    with pytest.raises(BadUsage, match="A:B"):
        export.step_range("a:b")


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "result.txt"
    out.write("first", file)
    with pytest.raises(UnicodeEncodeError), out.destination(file) as half:
        half.write("sec\udc80")
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(BadUsage, match="cannot write"):
        out.write("x", tmp_path / "no-folder" / "x.txt")


def test_json_has_null_for_what_is_no_number() -> None:
    said = json.loads(out.as_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": "漢"}))
    assert said == {"a": None, "b": [None, 1.5], "c": "漢"}


def test_notes_are_silent_when_asked_and_cannot_move_the_cursor(capsys: Capture) -> None:
    out.note("file \x1b[2Jx", quiet=True)
    out.note("file \x1b[2Jx")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "file \\x1b[2Jx\n")


def test_a_store_is_embedded_or_a_server(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="no such store"):
        options.workspace_at(tmp_path, "postgres://user:secret@db")
    assert options.shared_at(tmp_path, "neo4j://db").address.uri == "neo4j://db:7687"


def test_rules_are_listed_with_what_they_claim(capsys: Capture) -> None:
    assert cli.main(["rules", "list", "--format", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)
    assert all({"id", "class", "title", "claim"} <= rule.keys() for rule in rules)
    for rule in rules[:1]:
        assert cli.main(["rules", "show", rule["id"]]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{rule['id']}: claims {rule['class']}")
        assert re.search(r"\bMATCH\b", shown)
    assert cli.main(["rules", "list"]) == 0
    assert "\\n" not in capsys.readouterr().out  # a claim is one sentence, not lines of a file


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a workspace in which the demo was diagnosed."""
    folder = tmp_path_factory.mktemp("teller") / "workspace"
    done = subprocess.run(
        [*TELLER, "demo", "--workspace", str(folder)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert done.stdout.startswith("Fault found: ")
    assert f"report: {folder / 'demo-report.html'}" in done.stdout
    return folder


@pytest.fixture(scope="module")
def truth() -> dict[str, object]:
    """Give the culprit that was planted in the demo run."""
    text = resources.files("teller").joinpath("demo", "run.truth.json").read_text()
    episode: dict[str, object] = json.loads(text)["episodes"][0]
    return episode


@pytest.mark.slow
def test_the_demo_page_names_the_culprit(
    place: Path, truth: dict[str, dict[str, list[str]]]
) -> None:
    page = (place / "demo-report.html").read_text()
    assert truth["culprit"]["operators"][0] in page
    assert page.count("<svg ") == 3


@pytest.mark.slow
def test_json_stands_alone_on_stdout(place: Path, tmp_path: Path) -> None:
    run = resources.files("teller") / "demo" / "run"
    words = ["diagnose", str(run), "--workspace", str(place), "--format", "json"]
    steps = tmp_path / "steps.parquet"
    done = subprocess.run(
        [*TELLER, *words, "--steps", str(steps)], capture_output=True, text=True, check=False
    )
    said = json.loads(done.stdout)
    assert (done.returncode, said["schema"], said["verdict"]) == (1, "teller.diagnosis/1", "fault")
    assert pq.read_metadata(steps).num_rows == sum(r["steps"] * 2 for r in said["runs"])
    assert done.stderr == f"steps: {steps}\n"


@pytest.mark.slow
def test_a_stored_run_can_be_listed_shown_and_reported(
    place: Path, tmp_path: Path, capsys: Capture
) -> None:
    at = ["--workspace", str(place)]
    assert cli.main(["runs", "list", "--format", "json", *at]) == 0
    [run] = json.loads(capsys.readouterr().out)
    assert cli.main(["runs", "show", run["id"], *at]) == 0
    assert "rank1.nsys.sqlite.gz" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert cli.main(["report", "--run", run["name"], "-o", str(page), *at]) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert capsys.readouterr() == ("", f"html: {page}\n")
    assert cli.main(["report", "--run", "other", *at]) == 2
    assert "no run 'other'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_query_gives_ids_to_the_last_digit(place: Path, tmp_path: Path, capsys: Capture) -> None:
    at = ["--workspace", str(place), "--quiet"]
    text = "MATCH (s:Step) WHERE s.run_id = $run AND s.rank = $rank RETURN s.id AS id ORDER BY id"
    found = {}
    for format in ("table", "json", "csv", "parquet"):
        file = tmp_path / f"out.{format}"
        words = ["query", text, "--param", "rank=1", "--format", format, "-o", str(file), *at]
        assert cli.main(words) == 0
        found[format] = file
    ids = [str(i) for i in pq.read_table(found["parquet"])["id"].to_pylist()]
    assert len(ids) > 100
    assert max(map(int, ids)) > 1 << 53
    assert [row["id"] for row in json.loads(found["json"].read_text())] == ids
    assert found["csv"].read_text().split()[1:] == ids
    assert found["table"].read_text().split()[1:] == ids
    assert cli.main(["query", "MATCH (n:Nothing) RETURN n", *at]) == 2
    assert capsys.readouterr().err.startswith("teller: ")


@pytest.mark.slow
def test_a_run_can_be_exported_and_removed(place: Path, tmp_path: Path, capsys: Capture) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(place, copy)
    at = ["--workspace", str(copy)]
    trace, table = tmp_path / "run.json", tmp_path / "child.parquet"
    cut = ["--steps", "200:201", "--rank", "1"]
    assert cli.main(["export", "--perfetto", str(trace), *cut, *at]) == 0
    slices = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    assert {e["args"]["step_index"] for e in slices if e["pid"] == 1} == {200, 201}
    words = ["export", "--table", "CHILD", "--format", "parquet", "-o", str(table), *at]
    assert cli.main(words) == 0
    assert pq.read_metadata(table).num_rows > 1_000
    assert cli.main(["runs", "list", *at]) == 0
    name = capsys.readouterr().out.splitlines()[1].split()[0]
    assert cli.main(["runs", "rm", name, "--yes", *at]) == 0
    assert cli.main(["report", *at]) == 2
    assert "holds no run yet" in capsys.readouterr().err


@pytest.mark.slow
def test_the_doctor_looks_and_stores_nothing(tmp_path: Path, capsys: Capture) -> None:
    run = resources.files("teller") / "demo" / "run"
    folder = tmp_path / "workspace"
    words = ["doctor", str(run), "--workspace", str(folder), "--format", "json"]
    assert cli.main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert [i["rank"] for i in said["inputs"] if i["kind"] == "nsys_sqlite"] == [0, 1]
    assert said["environment"]["runs stored"] == "0"
    assert said["next"][-1] == "teller diagnose with the same paths"
    assert not folder.exists()


def test_a_folder_without_traces_is_exit_code_2_and_says_so(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "notes.txt").write_text("nothing to see")
    words = ["diagnose", str(tmp_path / "notes.txt"), "--workspace", str(tmp_path / "w")]
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert "Not visible in this recording" in captured.out
    assert "Traceback" not in captured.err
