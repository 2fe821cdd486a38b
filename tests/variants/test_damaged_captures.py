"""Damaged captures, and captures that are odd but whole."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

BENIGN = ("whole", "spaces", "gzip", "names", "unlike keys", "large numbers", "one line")


class Capture:
    """Kineto traces of a few ranks, as text that can be damaged."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.benign = BENIGN[seed // 3 % len(BENIGN)] if seed % 3 == 2 else ""
        self.ranks = self.random.choice((1, 2, 4))

    def text(self, rank: int) -> str:
        begin = 1_700_000_000_000_000
        events: list[dict[str, Any]] = []
        for step in range(12):
            at = begin + step * 20_000
            events.append(self.event("user_annotation", f"ProfilerStep#{step}", at, 19_000, rank))
            for layer in range(8):
                name = 'quote "in" name' if self.benign == "names" else f"aten::mm_{layer % 3}"
                events.append(self.event("cpu_op", name, at + 100 + layer * 2000, 1500, rank))
        whole = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": self.ranks},
            "traceEvents": events,
        }
        if self.benign == "unlike keys":
            whole["vendor"] = {"note": "\u00e9\u4e2d", "list": [1, None, True]}
        return json.dumps(whole, indent=None if self.benign == "one line" else 1)

    def event(self, kind: str, name: str, at: int, dur: int, rank: int) -> dict[str, Any]:
        args = {"Big": 2**63 + 7} if self.benign == "large numbers" else {}
        return {"ph": "X", "cat": kind, "name": name, "pid": 100 + rank, "tid": 7, "ts": at,
                "dur": dur, "args": args}  # fmt: skip

    def damaged(self, text: str) -> str:
        how = self.random.choice(("cut", "control", "nan", "quote", "cut"))
        middle = len(text) * self.random.randint(40, 90) // 100
        if how == "cut":
            return text[:middle]
        if how == "control":
            at = text.index("aten", middle)
            return text[:at] + "\x01\x02" + text[at:]
        if how == "nan":
            at = text.index('"dur": 1500', middle // 2)
            return text[:at] + '"dur": nan' + text[at + len('"dur": 1500') :]
        at = text.index("aten::", middle)
        return text[:at] + 'the "quoted" ' + text[at:]

    def write(self, folder: Path) -> list[str]:
        """Write all ranks; give the files that are damaged."""
        hurt = self.random.sample(range(self.ranks), self.random.randint(1, self.ranks))
        broken = []
        for rank in range(self.ranks):
            text, name = self.text(rank), f"trace_rank{rank}.json"
            if rank in hurt and not self.benign:
                text = self.damaged(text)
                broken.append(name)
            if self.benign == "spaces":
                text = "\ufeff\n  " + text + "\n\n"
            if self.benign == "gzip":
                (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
            else:
                (folder / name).write_text(text)
        return broken


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files_are_named_and_whole_ones_are_not(
    seed: int, tmp_path: Path, answer: Callable[[Path], dict[str, Any]]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    capture = Capture(seed)
    broken = capture.write(folder)
    said = answer(folder)
    named = {q["file"] for q in said["data_quality"]} & {p.name for p in folder.iterdir()}
    claimed = {f["class"] for f in said["findings"]}
    assert ("corrupt_file" in claimed) == bool(broken)
    assert set(broken) <= named
    shown = [e["text"] for f in said["findings"] if f["class"] == "corrupt_file"
             for e in f["evidence"]]  # fmt: skip
    assert not [s for s in shown if "no zone" in s], "that is a remark, and no damage"
    assert not [f for f in said["findings"] if f["culprit"]["ranks"]]
