"""The page is complete in itself, shows words from traces to the letter, and runs nothing."""

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from teller.graph.finding import Diagnosis, InputSummary
from teller.ui import report
from teller.ui.sights import RunSight, StepSight

ATTACK = "\"><script>alert(1)</script><img src=http://x/y onerror='a()'>{{7*7}}&amp;$x^2$\x1b]"


class _Page(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self.ids: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def sight(
    heat_rows: Callable[..., pa.Table], step_spans: pa.Table, ring_edges: Callable[..., pa.Table]
) -> RunSight:
    hosts = {rank: "node-a" if rank < 4 else "node-b" for rank in range(8)}
    return RunSight(hosts, heat_rows(), ring_edges(), StepSight(5, 44, step_spans))


def test_a_manager_reads_verdict_start_cost_and_culprit_first(
    diagnosis: Diagnosis, sight: RunSight
) -> None:
    page = _Page(report.render(diagnosis, {diagnosis.runs[0].id: sight}))
    body = page.words[page.words.index("TELLER diagnosis") :]
    places = [
        body.index(said)
        for said in (
            "Fault found", "layers.3.mlp.gate_up takes 2.9 times", "steps 40–77",
            "2025-11-29 14:03:24.523 UTC", "460 ms, 17 % of the time", "node-b", "93 %",
            "Compare the kernel", "Rank 2 stood still", "Where and when",
            "Inside step 44 of rank 5",
            "Who talks to whom", "rank5.json:88123", "Span 9007199254740995", "Data quality",
            "byte 4670564", "720,028",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert len(page.ids) == len(set(page.ids))


def test_the_page_asks_no_network_and_has_no_script(diagnosis: Diagnosis, sight: RunSight) -> None:
    source = report.render(diagnosis, {diagnosis.runs[0].id: sight})
    page = _Page(source)
    assert not {"script", "iframe", "object", "embed", "link", "base", "form"} & set(page.tags)
    assert "default-src 'none'" in source
    for name, value in page.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:image/png;base64,"))
    assert not re.search(r"@import|url\((?!#)", source)


def test_words_from_traces_stay_words(diagnosis: Diagnosis, sight: RunSight) -> None:
    finding = replace(diagnosis.findings[0], title=ATTACK, text=ATTACK)
    inputs = (InputSummary(ATTACK, ATTACK, 0, 1, ATTACK),)
    found = replace(diagnosis, findings=(finding,), inputs=inputs, notes=(ATTACK,))
    assert sight.step is not None
    names = pa.array([ATTACK] * sight.step.spans.num_rows)
    spans = sight.step.spans.set_column(0, "name", names)
    hosts = dict.fromkeys(range(8), ATTACK)
    shown = replace(sight, hosts=hosts, step=replace(sight.step, spans=spans))
    page = _Page(report.render(found, {diagnosis.runs[0].id: shown}))
    assert not {"script", "img"} & set(page.tags)
    assert page.words.count(ATTACK.replace("\x1b", "\\x1b")) > 8


def test_a_healthy_run_says_what_was_looked_at(healthy: Diagnosis, sight: RunSight) -> None:
    words = _Page(report.render(healthy, {healthy.runs[0].id: sight})).words
    assert "No fault found" in words
    assert "8 ranks on 2 hosts, 120 steps" in words
    assert "Nothing was wrong with the files." in words
    assert "Findings in detail" not in words


def test_an_answer_that_is_not_in_the_data_leads_with_what_to_record(
    diagnosis: Diagnosis,
) -> None:
    found = replace(
        diagnosis, verdict="not_visible", findings=(), runs=(), notes=("No steps: annotate them.",)
    )
    words = _Page(report.render(found, {})).words
    assert words.index("Not visible in this recording") < words.index("No steps: annotate them.")


def test_a_thousand_ranks_still_make_a_page(
    diagnosis: Diagnosis, heat_rows: Callable[..., pa.Table], ring_edges: Callable[..., pa.Table]
) -> None:
    run = replace(diagnosis.runs[0], ranks=tuple(range(1024)))
    hosts = {rank: f"node-{rank // 8}" for rank in range(1024)}
    sight = RunSight(hosts, heat_rows(1024, 130), ring_edges(1024, 15))
    source = report.render(replace(diagnosis, runs=(run,)), {run.id: sight})
    assert "rank, 8 a row" in source
    assert "sending host" in source
    assert len(source) < 500_000
