"""Incidents follow from the findings of runs, and notes outlive all else."""

from dataclasses import replace
from pathlib import Path

import pytest

from teller.errors import BadUsage
from teller.graph import incidents, journal, saved
from teller.graph.finding import Cost, Culprit, Finding
from teller.graph.incidents import Watched, gather
from teller.graph.journal import Note

DAY = 86_400_000_000_000
SLOW = Finding(
    id=1, run=0, klass="slow_rank", case_class="slow_rank", title="Rank 3 is slow",
    severity="high", confidence=0.9, culprit=Culprit("rank", ranks=(3,)), text="", next_step="",
    ruleset="rules-1", start_ns=5, end_ns=9, cost=Cost(1_000, 0.2, 2.0),
)  # fmt: skip
OTHER = replace(SLOW, id=2, culprit=Culprit("rank", ranks=(4,)), title="Rank 4 is slow")


def runs(*found: tuple[Finding, ...] | None, deployment: str = "chat") -> list[Watched]:
    """Give one run a day with these findings; None is a run that nobody diagnosed."""
    return [
        Watched(at, f"run {at}", deployment, (at + 1) * DAY, one is not None, one or ())
        for at, one in enumerate(found)
    ]


def states(watched: list[Watched], *notes: Note, clean_runs: int = 3) -> list[str]:
    return [one.state for one in gather(watched, notes, clean_runs)]


def test_one_class_and_culprit_is_one_incident_over_runs() -> None:
    [one] = gather(runs((SLOW,), (SLOW,), ()))
    assert (one.culprit, one.state, one.run_count, one.clean_runs) == ("rank 3", "open", 2, 1)
    assert (one.since_epoch_ns, one.last_epoch_ns) == (DAY + 5, 2 * DAY + 9)
    assert (one.gpu_seconds, one.excess_ns) == (4.0, 2_000)


def test_all_stretches_of_a_run_count() -> None:
    later = replace(SLOW, id=3, severity="low", start_ns=50, end_ns=90)
    [one] = gather(runs((SLOW, later)))
    assert (one.gpu_seconds, one.excess_ns, one.run_count) == (4.0, 2_000, 1)
    assert (one.since_epoch_ns, one.last_epoch_ns, one.severity) == (DAY + 5, DAY + 90, "high")
    assert one.latest.share == 0.4


def test_two_culprits_are_two_incidents_and_so_are_two_deployments() -> None:
    assert len(gather(runs((SLOW, OTHER)))) == 2
    assert len(gather(runs((SLOW,)) + runs((SLOW,), deployment="search"))) == 2


def test_it_is_closed_by_enough_clean_runs_in_a_row() -> None:
    assert states(runs((SLOW,), (), ())) == ["open"]
    assert states(runs((SLOW,), (), (), ())) == ["closed"]
    assert states(runs((SLOW,), (), (SLOW,), (), ())) == ["open"]
    assert states(runs((SLOW,), ()), clean_runs=1) == ["closed"]


def test_a_run_that_nobody_diagnosed_closes_nothing() -> None:
    assert states(runs((SLOW,), None, None, None)) == ["open"]


def test_what_comes_back_after_it_was_closed_is_since_then() -> None:
    [one] = gather(runs((SLOW,), (), (), (), (SLOW,)))
    assert (one.state, one.since_epoch_ns, one.run_count) == ("open", 5 * DAY + 5, 2)
    assert one.gpu_seconds == 2.0  # of the latest stretch


def test_resolved_stays_so_until_it_is_seen_in_a_later_run() -> None:
    number = incidents.incident_id("chat", "slow_rank", "rank 3")
    done = Note(time_epoch_ns=2 * DAY, incident=number, act="resolve", text="card replaced")
    assert states(runs((SLOW,)), done) == ["resolved"]
    assert states(runs((SLOW,), (), (SLOW,)), done) == ["open"]


def test_acknowledged_and_opened_again() -> None:
    number = incidents.incident_id("chat", "slow_rank", "rank 3")
    seen = Note(time_epoch_ns=DAY + 1, incident=number, act="acknowledge")
    again = Note(time_epoch_ns=DAY + 2, incident=number, act="reopen")
    assert states(runs((SLOW,)), seen) == ["acknowledged"]
    assert states(runs((SLOW,)), seen, again) == ["open"]
    assert states(runs((SLOW,), (), (), ()), seen) == ["closed"]


def test_what_is_benign_or_about_data_is_no_incident() -> None:
    benign = replace(SLOW, klass="idle", severity="info")
    data = replace(SLOW, klass="clock_skew", severity="medium")
    assert gather(runs((benign, data))) == []


def test_open_and_grave_ones_come_first() -> None:
    low = replace(OTHER, severity="low", cost=Cost(9, 0.9, 99.0))
    assert [one.severity for one in gather(runs((low, SLOW)))] == ["high", "low"]


def test_an_operator_is_named_with_its_few_ranks() -> None:
    who = Culprit("operator", ranks=(1,), hosts=("a",), operators=("o_proj",))
    assert incidents.blamed(who) == "operator o_proj on rank 1"
    assert incidents.blamed(replace(who, ranks=tuple(range(8)))) == "operator o_proj"
    assert incidents.blamed(Culprit("link", links=(("a", "b"),))) == "link a → b"
    assert incidents.blamed(Culprit()) == "nobody"


def test_notes_are_kept_in_order_and_a_cut_line_is_passed_over(tmp_path: Path) -> None:
    for at, text in ((3, "second"), (1, "first")):
        journal.write(tmp_path / "notes", Note(time_epoch_ns=at, incident=7, act="note", text=text))
    with (tmp_path / "notes" / journal.NAME).open("ab") as file:
        file.write(b'{"time_epoch_ns": 4, "inci')
    assert [note.text for note in journal.read(tmp_path / "notes")] == ["first", "second"]


def test_a_secret_in_a_note_is_not_kept(tmp_path: Path) -> None:
    secret = "hf_" + "a1B2" * 9
    journal.write(tmp_path, Note(time_epoch_ns=1, incident=7, act="note", text=f"token {secret}"))
    assert secret not in (tmp_path / journal.NAME).read_text()


def test_an_empty_or_endless_note_is_refused(tmp_path: Path) -> None:
    for text in ("", " \n", "x" * 2_001):
        with pytest.raises(BadUsage):
            journal.write(tmp_path, Note(time_epoch_ns=1, incident=7, act="note", text=text))
    assert not (tmp_path / journal.NAME).exists()


def test_settings_say_how_many_clean_runs(tmp_path: Path) -> None:
    assert incidents.clean_runs_of(tmp_path) == incidents.CLEAN_RUNS
    (tmp_path / "settings.toml").write_text("[incidents]\nclean_runs = 5\n")
    assert incidents.clean_runs_of(tmp_path) == 5
    (tmp_path / "settings.toml").write_text("[incidents]\nclean_runs = 'many'\n")
    with pytest.raises(BadUsage, match="from 1 to 1000"):
        incidents.clean_runs_of(tmp_path)


def test_a_kept_query_is_replaced_and_taken_away(tmp_path: Path) -> None:
    for text in ("RETURN 1 AS a", "RETURN 2 AS a"):
        saved.keep(tmp_path, saved.Kept(name="mine", text=text))
    assert saved.read(tmp_path) == {"mine": "RETURN 2 AS a"}
    saved.keep(tmp_path, saved.Kept(name="mine", text=""))
    assert saved.read(tmp_path) == {}
    with pytest.raises(BadUsage):
        saved.keep(tmp_path, saved.Kept(name=" ", text="RETURN 1 AS a"))
