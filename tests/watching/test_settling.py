"""What a watch reads at which moment, by a clock that is made here."""

from itertools import pairwise
from pathlib import Path

import pytest

from teller.ingest.glance import Mark, Sight, look
from teller.watching.settling import SHARE, Settling

LOG = "INFO 11-29 10:00:00 [loggers.py:127] Engine 000: Running: 1 reqs, Waiting: 0 reqs\n"
CUT = '{"traceEvents": [{"ph": "X", "name": "a", "cat": "kernel", "ts": 1, "dur": 1'
WHOLE = CUT + "}]}"
PATIENCE = 30.0
AGES_NS = 3600 * 10**9


class Folder:
    """A folder that is looked at; the wall clock stands still at the last change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settling = Settling(settle=1.0, patience=PATIENCE)
        self.read: dict[str, Mark] = {}

    def put(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(text)

    def due(self, now: float, *, later_ns: int = 0) -> list[str]:
        """Give the names of what is due, and count it as read."""
        sights = self.sights()
        wall = max((s.mark.changed_ns for s in sights), default=0) + later_ns
        due = self.settling.due(sights, self.read, now, wall)
        self.read |= {s.name: s.mark for s in due}
        self.settling.done(due, now, cost_s=3.0)
        return [s.name for s in due]

    def sights(self) -> list[Sight]:
        return look(self.path)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_file_is_read_once_when_it_was_left_alone(folder: Folder) -> None:
    folder.put("rank0.json", WHOLE)
    assert folder.due(0) == []
    assert folder.due(0.9) == []
    assert folder.due(1.1) == ["rank0.json"]
    assert folder.due(9) == []
    assert folder.settling.waiting == 0


def test_an_old_file_is_not_waited_for(folder: Folder) -> None:
    folder.put("rank0.json", WHOLE)
    assert folder.due(0, later_ns=AGES_NS) == ["rank0.json"]


def test_a_clock_that_runs_ahead_delays_nothing_for_ever(folder: Folder) -> None:
    folder.put("rank0.json", WHOLE)
    assert folder.due(0, later_ns=-AGES_NS) == []
    assert folder.due(1.1, later_ns=-AGES_NS) == ["rank0.json"]


def test_what_does_not_end_is_waited_for_but_not_for_ever(folder: Folder) -> None:
    folder.put("rank0.json", CUT)
    assert folder.due(0) == folder.due(5) == []
    folder.put("rank0.json", WHOLE)
    assert folder.due(6) == []
    assert folder.due(7.1) == ["rank0.json"]
    folder.put("rank1.json", CUT)
    assert folder.due(100) == folder.due(99 + PATIENCE) == []
    assert folder.due(101 + PATIENCE) == ["rank1.json"]


def test_files_of_a_folder_that_is_being_filled_come_together(folder: Folder) -> None:
    folder.put("run/rank0.json", WHOLE)
    folder.put("other/rank0.json", WHOLE)
    assert folder.due(0) == []
    folder.put("run/rank1.json", CUT)
    assert folder.due(1.1) == ["other/rank0.json"]
    folder.put("run/rank1.json", WHOLE)
    assert folder.due(2) == []
    assert folder.due(3.1) == ["run/rank0.json", "run/rank1.json"]


def test_a_log_that_never_rests_is_read_at_a_share_of_the_time(folder: Folder) -> None:
    seen = []
    for tenth in range(400):
        folder.put("serve.log", LOG * (tenth + 1))
        if folder.due(tenth / 10):
            seen.append(tenth / 10)
    assert seen[0] == 2.0
    gaps = {round(b - a, 1) for a, b in pairwise(seen)}
    assert gaps == {SHARE * 3.0}
