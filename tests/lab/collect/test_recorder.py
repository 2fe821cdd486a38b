"""Programs annotate, the recorder keeps it: nested, timed, named, whatever becomes of them."""

import json
import re
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.collect.nvtx_stream import MARK, PUSH_POP, START_END
from tests.lab.collect.recording import Ran, nested, rows, streams

Recorded = Callable[..., Ran]
FLUSHED = 1024  # ranges that a ring holds at most


def test_ranges_nest_in_their_domain_and_are_timed_as_the_program_saw_it(
    recorded: Recorded, program: Path
) -> None:
    said, (stream,) = recorded(program, "nesting")
    assert re.findall(r"level (\d)", said) == ["0", "1"] * 3
    assert "same 1" in said
    assert "empty -1" in said  # NVTX: a pop without a push
    assert nested(stream)
    steps = [row for row in rows(stream) if row["domain"] == ""]
    begun = [tuple(map(int, m)) for m in re.findall(r"outer (\d+) (\d+)", said)]
    ended = [tuple(map(int, m)) for m in re.findall(r"end (\d+) (\d+)", said)]
    slack = 100_000  # the two clocks of the program and the recorder are read one after the other
    for step, (before, after), (last, gone) in zip(steps, begun, ended, strict=True):
        assert before - slack <= step["start_ns"] <= after + slack
        assert last - slack <= step["end_ns"] <= gone + slack
    model = [(r["name"], r["depth"]) for r in rows(stream) if r["domain"] == "model"]
    assert model == [("layer", 0), ("mlp", 1)] * 3


def test_payloads_keep_their_type_and_their_64_bits(recorded: Recorded, program: Path) -> None:
    _, (stream,) = recorded(program, "payloads")
    marks = rows(stream)
    assert {row["kind"] for row in marks} == {MARK}
    assert [(r.get("payload_type"), r.get("payload")) for r in marks[:5]] == [
        (1, -1), (2, -5), (3, struct.unpack("<q", struct.pack("<d", 0.5))[0]),
        (5, 0xFFFFFFF9), (6, struct.unpack("<I", struct.pack("<f", 0.25))[0]),
    ]  # fmt: skip
    assert [r["name"] for r in marks[5:]] == ["größer → 𝄞", "kept"]
    assert [r["registered"] for r in marks] == [False] * 6 + [True]
    assert stream.categories == {(1, 7): "memory"}


def test_a_structure_that_a_program_describes_becomes_json(
    recorded: Recorded, program: Path
) -> None:
    _, (stream,) = recorded(program, "described")
    assert [json.loads(row["json"]) for row in rows(stream)] == [
        {"NCCL communicator ID": 0xABCDEF0123456789, "Rank": 2, "Message size [bytes]": 1024 << i}
        for i in range(3)
    ]


def test_threads_keep_apart_and_a_range_may_end_in_another(
    recorded: Recorded, program: Path
) -> None:
    said, (stream,) = recorded(program, "threads")
    ender = int(re.findall(r"ender (\d+)", said)[0])
    handed = next(row for row in rows(stream) if row["kind"] == START_END)
    assert (handed["tid"], handed["end_tid"]) == (stream.pid, ender)
    assert handed["end_ns"] > handed["start_ns"]
    assert stream.threads[ender] == "the ender"
    left = next(row for row in rows(stream) if row["name"] == "open when its thread ended")
    assert "end_ns" not in left
    work = stream.events.filter(pc.equal(stream.events["name"].cast(pa.string()), "work"))
    counts = {one["counts"] for one in pc.value_counts(work["tid"]).to_pylist()}
    assert (work.num_rows, work["end_ns"].null_count) == (24_000, 0)
    assert all(count % 1000 == 0 for count in counts)
    assert (stream.ended, stream.lost, stream.damaged) == (True, 0, 0)


def test_a_forked_child_has_a_file_of_its_own_that_stands_alone(
    recorded: Recorded, program: Path
) -> None:
    said, (parent, child) = recorded(program, "forks", RANK="1", WORLD_SIZE="2")
    assert child.pid == int(re.findall(r"child (\d+)", said)[0])
    assert [(r["name"], r["depth"]) for r in rows(parent)] == [
        ("around the fork", 0),
        ("before", 1),
    ]
    assert [(r["name"], r["domain"]) for r in rows(child)] == [
        ("of the parent", "shared"), ("before", ""),
    ]  # fmt: skip
    assert nested(child)
    assert [s.rank for s in (parent, child)] == [1, 1]


def test_a_program_that_is_killed_leaves_all_but_its_last_moments(
    environment: dict[str, str], program: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [program, "killed"], env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        steady = int(running.stdout.readline())
        running.send_signal(signal.SIGKILL)
    (stream,) = streams(tmp_path)
    assert not stream.ended
    outer = stream.events.filter(pc.equal(stream.events["depth"], 0))
    assert outer.num_rows >= steady - FLUSHED
    assert outer["end_ns"].null_count <= 1  # the one that was open
    assert stream.lost == 0
    names = stream.events["name"].cast(pa.string()).to_pylist()
    assert names[:6] == ["step", "even", "step", "odd", "step", "even"]


def test_every_place_at_which_a_file_may_end_leaves_what_stood_before(
    recorded: Recorded, program: Path, tmp_path: Path
) -> None:
    _, (whole,) = recorded(program, "nesting")
    content = whole.path.read_bytes()
    whole.path.unlink()
    cut = tmp_path / "cut.nvtx"
    first = content.index(b"TNXT", content.index(b"TNXT", 1) + 1)  # behind session and anchor
    counts = []
    for size in range(first + 64, len(content), 7):
        cut.write_bytes(content[:size])
        counts += [stream.events.num_rows for stream in streams(tmp_path)]
    assert counts == sorted(counts)
    assert counts[-1] == whole.events.num_rows == 9


def test_a_million_texts_of_their_own_need_no_memory_of_their_own(
    recorded: Recorded, program: Path
) -> None:
    said, (stream,) = recorded(program, "million")
    assert int(re.findall(r"KiB (\d+)", said)[0]) < 4096
    pushed = stream.events.filter(pc.equal(stream.events["kind"], PUSH_POP))
    names = pushed["name"].cast(pa.string()).to_pylist()
    assert names[0] == "warm"
    assert names[1:] == [f"request {i}" for i in range(1_000_000)]
    assert (stream.lost, pushed["end_ns"].null_count) == (0, 0)
