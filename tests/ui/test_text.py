"""A terminal shows the verdict first and can be neither coloured nor moved by a trace."""

import io
from dataclasses import replace

from teller.graph.finding import Diagnosis
from teller.ui import listing, phrase, text


def _shown(diagnosis: Diagnosis) -> str:
    file = io.StringIO()
    text.write(diagnosis, text.console(file))
    return file.getvalue()


def test_the_verdict_comes_first_and_the_findings_follow(diagnosis: Diagnosis) -> None:
    lines = _shown(diagnosis).splitlines()
    assert lines[0] == (
        "Fault found: layers.3.mlp.gate_up takes 2.9 times as long on rank 5 as on its peers"
    )
    assert lines[1] == "night-run: 8 ranks on 2 hosts, 120 steps"
    assert lines[3].startswith("1  HIGH  layers.3.mlp.gate_up takes")
    for line in (
        "  who        operator layers.3.mlp.gate_up · rank 5 · host node-b",
        "  when       steps 40–77, from 2025-11-29 14:03:24.523 UTC",
        "  cost       460 ms, 17 % of the time, 3.68 s of GPU time",
        "  sure       93 % (rules 0.90 · numeric 0.97)",
        "  evidence   cause: gate_up took 18.6 ms  [rank5.json:88123]",
        "             and 1 piece more (--format markdown)",
        "kineto   8      0–7    720,028",
    ):
        assert line in lines


def test_words_from_traces_are_shown_and_never_obeyed(diagnosis: Diagnosis) -> None:
    nasty = "[bold]a[/bold] :boom: \x1b[31mred\x07\r\n\u202eb"
    found = replace(diagnosis, findings=(replace(diagnosis.findings[0], title=nasty),))
    shown = _shown(found)
    assert "[bold]a[/bold] :boom: \\x1b[31mred\\x07\\r\\n\\u202eb" in shown
    assert "\x1b" not in shown


def test_nothing_found_is_an_answer(healthy: Diagnosis) -> None:
    assert _shown(healthy).splitlines()[:2] == [
        "No fault found",
        "night-run: 8 ranks on 2 hosts, 120 steps",
    ]


def test_each_input_is_listed_with_its_rank(diagnosis: Diagnosis) -> None:
    file = io.StringIO()
    read = listing.what_was_read(
        diagnosis.runs, diagnosis.inputs, diagnosis.data_quality, each=True
    )
    text.show(text.console(file, wide=True), read)
    shown = file.getvalue()
    assert "night-run  4611686018427387905  0–7" in shown
    assert "rank3.json  kineto   3     90,003" in shown
    assert "rank6.json at byte 4670564: the file ends inside an event" in shown


def test_times_and_shares_read_as_people_say_them() -> None:
    assert [phrase.duration(ns) for ns in (0, 999, 1_234, 999_600, 45_600_000, -2e9, 3725e9)] == [
        "0 ns", "999 ns", "1.23 µs", "1.00 ms", "45.6 ms", "-2 s", "62 min 5 s",
    ]  # fmt: skip
    assert [phrase.share(part) for part in (0, 0.0004, 0.013, 0.172, 1)] == [
        "0 %", "under 0.1 %", "1.3 %", "17 %", "100 %",
    ]  # fmt: skip
    assert phrase.ranges([3, 1, 2, 7, 9, 10]) == "1–3, 7, 9–10"
    assert phrase.clock(1_764_425_002_123_456_789) == "2025-11-29 14:03:22.123 UTC"
    assert phrase.clock(1 << 62) == "2116-02-20 23:53:38.427 UTC"
