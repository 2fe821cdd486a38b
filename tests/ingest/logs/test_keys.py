"""Private keys over many lines are cut, line by line, wherever a block of the log ends."""

from pathlib import Path

import pyarrow.compute as pc
import pytest

from teller.ingest.logs.blocks import Lines
from teller.ingest.logs.keys import Keys

BODY = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAAS{n:02d}" for n in range(20)] + ["Qk1z=="]
KEY = ["-----BEGIN RSA PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----"]


def cut(lines: list[str], at: int | None = None) -> list[str]:
    keys, half = Keys(), len(lines) if at is None else at
    parts = ["".join(f"{line}\n" for line in some) for some in (lines[:half], lines[half:])]
    return b"".join(keys.cut(part.encode()) for part in parts).decode().splitlines()


@pytest.mark.parametrize("prefix", ["", "2026-03-04T10:00:00Z node-a svc[7]: ", "[1,3]<stdout>: "])
@pytest.mark.parametrize("at", [None, 0, 1, 2, 9, 22, 23, 24])
def test_a_key_is_gone_and_every_line_stays_a_line(prefix: str, at: int | None) -> None:
    lines = ["before", *(prefix + line for line in KEY), "behind", "more"]
    told = cut(lines, at)
    assert len(told) == len(lines)
    assert not any(line[:-2] in "\n".join(told) for line in BODY[:-1])
    assert (told[0], told[1], told[-2:]) == ("before", prefix + KEY[0], ["behind", "more"])


def test_a_key_without_an_end_takes_no_other_line_with_it() -> None:
    lines = [*KEY[:9], "Engine 000: Running: 1 reqs", "another line"]
    assert cut(lines) == [KEY[0], *["<redacted>"] * 8, *lines[9:]]
    assert cut(["-----BEGIN PRIVATE KEY----- is what it begins with", "a b c"])[1] == "a b c"


def test_a_key_in_one_line_is_left_to_its_rule() -> None:
    line = "\\n".join(KEY)
    assert cut(["x", line, "y"]) == ["x", line, "y"]


def test_a_log_keeps_its_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("\n".join(["one", *KEY, "two"]))
    (block,) = Lines(path).blocks()
    assert block.text[-1].as_py() == "two"
    assert len(block.text) == len(KEY) + 2
    assert pc.sum(pc.equal(block.text, "<redacted>")).as_py() == len(BODY)
