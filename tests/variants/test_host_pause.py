"""A process that stands still, and what looks like it: idleness, a cut log, short collections."""

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

HOSTS = ("node-a", "gpu-17", "ip-10-0-3-4", "infer-7f9c-0", "rack2-h100-05")
BENIGN = ("healthy", "common", "cut", "short", "healthy", "common", "cut")
RUNTIME, KERNEL, NVTX = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"
PAUSE_NS = 6_300_000_000
STEP = 6  # before which the process of the capture stands still


@dataclass
class Story:
    """A capture of four processes whose pause is moved, stretched or taken out, and a log."""

    seed: int

    def __post_init__(self) -> None:
        self.random = random = Random(self.seed)
        self.benign = BENIGN[self.seed // 3 % len(BENIGN)] if self.seed % 3 == 2 else ""
        self.host = random.choice(HOSTS)
        self.order = random.sample(range(4), 4)  # rank of each process
        self.pause = random.choice((0.4, 1.5, 6.3, 19.0)) * random.uniform(0.9, 1.1)
        self.log = random.choice(("growing", "growing", "gc", "none"))
        self.captured = self.benign != "cut" and (bool(self.benign) or self.seed % 6 != 4)
        if not self.captured:
            self.log = "growing"
        self.begin = datetime(2026, random.randint(1, 12), random.randint(1, 28), 1, 2)

    @property
    def rank(self) -> int:
        """Give the rank whose process stands still."""
        return self.order[3]

    def capture(self, source: Path, folder: Path) -> None:
        """Write the capture, its times, names and processes changed."""
        path = folder / f"{self.host}{self.random.choice(('', '.trace'))}.sqlite"
        shutil.copyfile(source, path)
        path.chmod(0o644)
        with sqlite3.connect(path) as db:
            for process, rank in enumerate(self.order):
                db.execute(
                    "UPDATE StringIds SET value = ? WHERE id = ?",
                    (f"sglang::scheduler_TP{rank}", process + 1),
                )
            db.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value = ? WHERE name = 'Hostname'",
                       (self.host,))  # fmt: skip
            db.execute("UPDATE META_DATA_CAPTURE SET value = ? WHERE name = 'DEVICE_DISPLAY_NAME'",
                       (self.host,))  # fmt: skip
            begins = self._begins(db, STEP)
            pause = 0.0003 if self.benign else self.pause
            self._stretch(db, begins - PAUSE_NS // 2, int(pause * 1e9) - PAUSE_NS)
            if self.benign == "common":  # nobody has work for a while
                quiet = self._begins(db, 4) - 100_000
                self._stretch(db, quiet, int(self.pause * 1e9))
        db.close()

    def _begins(self, db: sqlite3.Connection, step: int) -> int:
        asked = f"SELECT max(start) FROM {NVTX} WHERE text LIKE '%step={step}'"
        found: int = db.execute(asked).fetchone()[0]
        return found

    def _stretch(self, db: sqlite3.Connection, at: int, more: int) -> None:
        for table in (RUNTIME, KERNEL, NVTX):
            for column in ("end", "start"):
                db.execute(
                    f'UPDATE {table} SET "{column}" = "{column}" + ? WHERE "{column}" > ?',
                    (more, at),
                )

    def lines(self) -> list[str]:
        """Give the lines of the engine's log."""
        told = []
        pauses = (0.0, 0.0, 0.0) if self.benign else (6.0, 19.0, 41.0)
        if self.log == "gc":
            generation = "generation 2" if not self.benign else "generation 0"
            took = 1000 * self.pause if not self.benign else 3.0
            return [
                f"(Worker_TP{self.rank} pid=6104) INFO {self.begin:%m-%d %H:%M:%S} [gc_utils.py:4] "
                f"GC took {took:.3f}ms to complete. Collected 812 objects in GC {generation}."
            ]
        for number, pause in enumerate(pauses):
            at = self.begin + timedelta(hours=2 * number)
            for _ in range(4):
                told.append(self.decode(at, 2310.5))
                at += timedelta(seconds=2)
            if pause > 20:
                told.append(
                    f"[{at + timedelta(seconds=pause / 2):%Y-%m-%d %H:%M:%S}] Health check failed. "
                    "Server couldn't get a response from detokenizer for last 20 seconds."
                )
            if pause:
                at += timedelta(seconds=pause)
                told.append(self.decode(at, 2310.5 * 2 / (pause + 2)))
        return told

    def decode(self, at: datetime, rate: float) -> str:
        return (
            f"[{at:%Y-%m-%d %H:%M:%S} TP0] Decode batch. #running-req: 48, #token: 91000, "
            f"token usage: 0.44, cuda graph: False, gen throughput (token/s): {rate:.2f}, "
            "#queue-req: 0, "
        )

    def write(self, source: Path, folder: Path) -> None:
        """Write the files of the story."""
        folder.mkdir()
        if self.captured:
            self.capture(source, folder)
        if self.log != "none":
            (folder / "engine.log").write_text("\n".join(self.lines()) + "\n", "utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_a_pause_of_one_process_is_told_from_idleness(
    seed: int, tmp_path: Path, shared: Path, right: Callable[..., dict[str, Any]]
) -> None:
    source = next((shared / "cases").glob("o09_*/*.sqlite"))
    story = Story(seed)
    story.write(source, tmp_path / "run")
    never = ("slow_path", "slow_rank", "gpu_throttle", "collective_missing_rank")
    if story.benign:
        said = right(tmp_path / "run", "")
        told = {f["class"] for f in said["findings"]}
        assert ("no_effect" in told) == (story.benign == "common")
        return
    if not story.captured:  # a log alone does not tell who stands still
        said = right(tmp_path / "run", "host_pause", {"ranks": []}, never=never)
        assert any("no line for 43 s" in e["text"] for e in said["findings"][0]["evidence"])
        return
    culprit = {"ranks": [story.rank], "hosts": [story.host]}
    said = right(tmp_path / "run", "host_pause", culprit, never=never)
    finding = said["findings"][0]
    assert finding["numbers"]["step_index"] == STEP
    assert finding["numbers"]["pause_ns"] == pytest.approx(story.pause * 1e9, rel=0.02)
    if story.log == "growing":
        assert any(e["source"].startswith("engine.log:") for e in finding["evidence"])
