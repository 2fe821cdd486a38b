"""The doctor says of each file what it is, what was read, and what is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from teller.cli import main
from teller.ingest.discover import discover, reader_named
from teller.ingest.foreign import kinds


def asked(
    paths: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    """Ask the doctor, and give its exit code and its JSON."""
    capsys.readouterr()
    words = ["doctor", *map(str, paths), "--workspace", str(tmp_path / "w"), "--quiet"]
    code = main([*words, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


KINDS = (
    "dmesg_xid", "flight_recorder", "kineto", "kineto_inference", "nccl_log", "nccl_profiler",
    "nccl_tests_log", "nsys_parquet", "nsys_sqlite", "sglang_log", "triton_log", "vllm_log",
)  # fmt: skip


@pytest.mark.slow
def test_every_reference_file_is_read_or_refused_with_a_reason(shared: Path) -> None:
    folder = shared / "traces"
    found = discover([folder])
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert names == {c.name for c in found.candidates} | set(found.others)
    assert {name.partition("/")[0] for name in names} >= set(KINDS)
    looks = kinds([folder], found.others)
    assert sorted(name for files in looks.values() for name in files) == sorted(found.others)
    assert not {"gone", "not readable", "binary data"} & set(looks)
    for candidate in found.candidates:
        reading = reader_named(candidate.format).read(candidate.path)
        assert reading.sources or reading.records or reading.remarks, candidate.name
        assert all(r.what and r.remedy for r in reading.remarks), candidate.name


@pytest.mark.parametrize("kind", ["dmesg_xid", "flight_recorder", "nccl_log", "nccl_tests_log"])
def test_the_doctor_has_a_line_for_every_file(
    kind: str, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shared / "traces" / kind
    code, said = asked([folder], tmp_path, capsys)
    assert code == 0
    remarked = {remark["file"] for remark in said["data_quality"]}
    read = {file["file"]: file for file in said["files"]}
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert names == read.keys() | set(said["others"])
    for name, file in read.items():
        # a recorder's dump without an entry is a fact of its own
        assert file["used"] or file["format"] == "flight_recorder" or name in remarked, name


def test_an_engines_log_lacks_captures_and_is_told_how_they_are_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run" / "serve.log"
    log.parent.mkdir()
    stats = (
        "INFO 10-02 12:00:{:02d} [loggers.py:118] Engine 000: "
        "Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 20.0 tokens/s, "
        "Running: 2 reqs, Waiting: 0 reqs, "
        "GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
    )
    secret = "INFO 10-02 12:00:40 [api.py:1] api_key='sk-abcdefghijklmnop1234567890'\n"
    log.write_text("".join(stats.format(n) for n in range(0, 40, 10)) + secret, "utf-8")
    (log.parent / "notes.md").write_text("# about the run\n", "utf-8")
    (log.parent / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(64)))
    code, said = asked([log.parent], tmp_path, capsys)
    assert code == 0
    [file] = said["files"]
    assert (file["file"], file["format"], file["redacted"]) == ("serve.log", "log", 1)
    assert int(file["last_epoch_ns"]) - int(file["first_epoch_ns"]) == 40_000_000_000
    assert {f["kind"]: f["files"] for f in said["foreign"]} == {
        "a picture": ["plot.png"], "a text for people": ["notes.md"],
    }  # fmt: skip
    missing = " ".join(layer["name"] for layer in said["missing"])
    assert "captures" in missing
    assert "service logs" not in missing
    assert all(layer["record"] for layer in said["missing"])
    assert "year" in " ".join(remark["what"] for remark in said["data_quality"])
    assert "abcdefghijklmnop" not in json.dumps(said)
    main(["doctor", str(log.parent), "--workspace", str(tmp_path / "w"), "--quiet"])
    text = capsys.readouterr().out
    assert "secrets left out in 1 line" in text
    assert "2 files are no input" in text
    assert "Not there, and how to record it" in text


def test_records_that_cannot_be_read_are_counted_with_an_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "serve.log"
    good = "[2026-10-02 12:00:0{}] INFO server up\n"
    bad = "[2026-10-02 12:00:09] INFO Watchdog caught collective, and then the line is torn\n"
    log.write_text("".join(good.format(n) for n in range(8)) + bad, "utf-8")
    _, said = asked([log], tmp_path, capsys)
    [file] = said["files"]
    assert file["unread"] == 1
    assert "Watchdog caught" in file["unread_example"]


def test_nothing_to_read_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(64)))
    code, said = asked([folder], tmp_path, capsys)
    assert code == 2
    assert not said["files"]
    assert said["foreign"] == [{"kind": "a picture", "files": ["plot.png"]}]
