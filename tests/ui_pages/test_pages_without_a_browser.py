"""The logic of the pages, run by Streamlit's own test bench on the demo."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from teller.graph.judgement import claims
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.models.slices import slice_of
from teller.ui import desk
from teller.ui.phrase import duration

from .hostile import NAMES, RUN_NAME

APP = Path(desk.__file__).with_name("app.py")


@pytest.fixture
def place(demo: Path) -> Iterator[desk.Place]:
    """Give the demo's place, with a desk that stands on it."""
    here = desk.Place("demo", lambda: Workspace(demo, project=project, rest=rest))
    desk.put(desk.Desk((here,), slice_of))
    yield here
    here.close()


def opened(view: str, **address: object) -> AppTest:
    bench = AppTest.from_file(str(APP), default_timeout=300)
    for name, value in address.items():
        bench.query_params[name] = str(value)
    if view != "incidents":
        bench.switch_page(f"views/{view}.py")
    return bench.run()


def said(bench: AppTest) -> str:
    """Give what a page says as HTML, which is all of its text that is not a label."""
    return "\n".join(str(element.proto.body) for element in bench.get("html"))


def run_of(place: desk.Place, name: str) -> int:
    return next(r.run_id for r in place.runs() if (r.name == RUN_NAME) == (name == "hostile"))


def test_the_first_page_tells_what_is_open_and_what_it_costs(place: desk.Place) -> None:
    bench = opened("incidents")
    assert not bench.exception
    figures = {metric.label: metric.value for metric in bench.metric}
    findings = [f for run in place.runs() for f in place.diagnosis(run.run_id).findings]
    faults = [f for f in findings if f.severity != "info" and claims(f) == "fault"]
    who = {(f.run, f.klass, repr(f.culprit)) for f in faults}
    assert figures["Open incidents"] == str(len(who))
    assert figures["GPU time lost"] == duration(sum(f.cost.gpu_seconds for f in faults) * 1e9)
    assert "layers.2.self_attn.o_proj is slower on rank 1" in said(bench)
    assert "2.88 s" in said(bench)


def test_a_filter_leaves_what_matches(place: desk.Place) -> None:
    bench = opened("incidents", find="o_proj")
    table = bench.dataframe[0].value
    assert list(table["who"]) == ["operator layers.2.self_attn.o_proj on rank 1"]
    assert "Nothing matches" in said(opened("incidents", find="no such thing"))


def test_names_are_escaped_where_they_are_said(place: desk.Place) -> None:
    text = said(opened("incidents", find="pixel"))
    assert NAMES[0] in text  # Markdown is no HTML: it needs no escape
    assert "<img" not in text
    bench = opened("incident", run=run_of(place, "hostile"))
    labels = [link.proto.label for link in bench.get("page_link")]
    assert not [label for label in labels if any(name in label for name in NAMES)]


def test_a_deep_link_names_step_rank_and_run(place: desk.Place) -> None:
    bench = opened("step", run=run_of(place, "demo"), rank=0, step=173)
    assert not bench.exception
    assert "Step 173 of rank 0" in said(bench)
    [ranks] = bench.multiselect
    assert ranks.value == [0, 1]


@pytest.mark.parametrize(
    ("address", "wanted"),
    [({"rank": 0, "step": 99_999}, "rank 0 has no step 99999"),
     ({"rank": 7}, "has no rank 7"), ({"step": "x"}, "Step ")],
)  # fmt: skip
def test_a_link_to_what_is_not_there_says_so(
    place: desk.Place, address: dict[str, object], wanted: str
) -> None:
    bench = opened("step", run=run_of(place, "demo"), **address)
    assert not bench.exception
    assert wanted in said(bench)


def test_nothing_can_be_changed_unless_it_is_allowed(place: desk.Place) -> None:
    run = run_of(place, "demo")
    assert not [b for b in opened("incident", run=run).button if b.label == "Save"]
    assert not opened("runs", run=run).get("file_uploader")
    desk.put(desk.Desk((place,), slice_of, may_note=True, upload_bytes=1 << 20,
                       ingest=lambda *_: ["false"]))  # fmt: skip
    assert [b for b in opened("incident", run=run).button if b.label == "Save"]
    assert opened("runs", run=run).get("file_uploader")


def test_requests_are_found_by_a_part_of_their_id(place: desk.Place) -> None:
    run = run_of(place, "demo")
    every = opened("requests", run=run).dataframe[0].value
    assert len(every) == 26
    name = str(every["name"].iloc[0])
    bench = opened("requests", run=run, request=name)
    assert not bench.exception
    assert len(bench.dataframe[0].value) == 1
    assert name in said(bench)
    assert "Served in" in said(bench)


def test_what_is_covered_is_told_rank_by_rank(place: desk.Place) -> None:
    bench = opened("runs", run=run_of(place, "demo"))
    assert not bench.exception
    text = said(bench)
    assert "Fault found" in text
    assert "Not recorded on any rank" in text
