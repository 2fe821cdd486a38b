"""Targets of requests: strictly read, kept with the run, and counted in every answer."""

import json
import shutil
from pathlib import Path

import pytest

from teller import cli
from teller.errors import BadUsage, UnknownName
from teller.graph import targets

Capture = pytest.CaptureFixture[str]
Run = dict[str, object]


def test_targets_are_numbers_with_units() -> None:
    assert targets.parsed("ttft=500ms, itl=50ms,e2e=1.5min") == {
        "ttft": 500_000_000, "itl": 50_000_000, "e2e": 90_000_000_000,
    }  # fmt: skip
    assert targets.parsed("itl=800us") == targets.parsed("itl=800µs") == {"itl": 800_000}
    assert targets.parsed("") == {}


@pytest.mark.parametrize(
    "text",
    ["ttft", "ttft=", "ttft=500", "ttft=ms", "ttft=5 ms", "ttft=-5ms", "ttft=0ms", "ttft=1e3ms",
     "ttft=999999999min", "ttft=5ms,ttft=6ms", "ttft=5parsecs"],
)  # fmt: skip
def test_what_is_no_target_is_refused_with_what_would_be(text: str) -> None:
    with pytest.raises(BadUsage, match="ttft"):
        targets.parsed(text)


def test_an_unknown_target_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no target 'tpot'; did you mean ttft"):
        targets.parsed("tpot=5ms")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[slo]\nttft = 500\n", "give a number and its unit"),
        ("[slo]\ntpot = '5ms'\n", "no target 'tpot'"),
        ("slo = 5\n", "slo is a table"),
        ("[slo\n", "settings.toml"),
    ],
)
def test_broken_settings_are_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(BadUsage, match=said) as caught:
        targets.of_settings(tmp_path)
    assert "settings.toml" in str(caught.value)


def test_targets_stay_with_the_run_until_others_are_set(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    where = ["--workspace", str(tmp_path), "--quiet"]

    def run(*words: str) -> Run:
        cli.main([*words, "--format", "json"])
        return dict(json.loads(capsys.readouterr().out)["runs"][0])

    def counted(said: Run) -> tuple[object, ...]:
        return said["requests"], said["requests_over_target"], said["targets"]

    plain = run("ingest", str(folder), *where)
    assert counted(plain) == (3, None, {})
    set_ = run("diagnose", str(folder), "--slo", "ttft=500ms,itl=2s", *where)
    assert counted(set_) == (3, 1, {"ttft": 500_000_000, "itl": 2_000_000_000})
    assert run("diagnose", str(folder), *where) == set_
    assert run("runs", "show", "made-run", "--workspace", str(tmp_path)) == set_
    cli.main(["diagnose", str(folder), *where])
    text = " ".join(capsys.readouterr().out.split())
    assert "10 steps, 1 of 3 requests over target (ttft 500 ms, itl 2 s)" in text
    cli.main(["report", "--format", "html", "-o", str(tmp_path / "page.html"), *where])
    assert "1 of 3 requests over target" in (tmp_path / "page.html").read_text()
    shutil.rmtree(tmp_path / "graph")  # it is made again from the archive
    assert run("runs", "show", "made-run", "--workspace", str(tmp_path)) == set_
    (tmp_path / "settings.toml").write_text('[slo]\nttft = "5s"\n')
    assert counted(run("ingest", str(folder), *where)) == (3, 0, {"ttft": 5_000_000_000})


def test_a_missed_target_is_said_in_the_story(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    where = ["--workspace", str(tmp_path)]
    cli.main(["ingest", str(folder), "--slo", "ttft=500ms", "--quiet", *where])
    capsys.readouterr()
    cli.main(["trace", "7c9e", *where])
    assert "first token     900 ms after it came, over the target of 500 ms" in (
        capsys.readouterr().out
    )
    cli.main(["trace", "7c9e", "--format", "json", *where])
    assert json.loads(capsys.readouterr().out)["missed"] == ["ttft"]
