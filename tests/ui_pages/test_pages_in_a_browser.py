"""The pages as people see them, in real Chromium, offline."""

import io
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from teller.graph import incidents, journal
from teller.graph.workspace import Workspace

from .conftest import RUN, Pages, Seen, serving
from .hostile import LINE, NAMES, OUT, RUN_NAME, write_traces

pytestmark = pytest.mark.slow
See = Callable[..., Seen]

PAGES = ("", "incident", "step", "network", "requests", "cypher", "runs")
SEVERE = ("serious", "critical")
# the little charts inside figures are drawn by Vega, which names no mark of them
KNOWN = {"svg-img-alt"}


def entry(workspace: Path, wanted: str) -> Any:
    """Give the demo run or the hostile one."""
    runs = Workspace(workspace).entries()
    return next(run for run in runs if (run.name == RUN_NAME) == (wanted == "hostile"))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_readable_and_asks_nothing_outside(
    pages: Pages, demo: Path, see: See, path: str, theme: str
) -> None:
    run = entry(demo, "demo").run_id
    seen = see(f"{pages.url}/{path}?run={run}", theme)
    seen.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found = seen.page.evaluate(
        "() => axe.run(document, {runOnly: {type: 'tag', values: "
        "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}})"
    )
    bad = [
        (one["id"], one["impact"], one["nodes"][0]["html"][:160])
        for one in found["violations"]
        if one["impact"] in SEVERE and one["id"] not in KNOWN
    ]
    assert not bad
    paper = seen.page.evaluate(
        "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (theme == "dark")
    seen.calm()


def test_four_clicks_lead_from_the_incident_to_the_slow_work(pages: Pages, see: See) -> None:
    seen = see(pages.url)
    page = seen.page
    assert "layers.2.self_attn.o_proj is slower on rank 1" in seen.text()
    card = page.locator("section.t-card", has_text="layers.2.self_attn.o_proj is slower").first
    card.wait_for()
    links = page.get_by_role("link", name="Open the incident")
    titles = page.locator("section.t-card h2").all_inner_texts()
    at = next(n for n, title in enumerate(titles) if "o_proj" in title)
    links.nth(at).click()  # 1
    page.wait_for_url("**/incident?**")
    seen.settle()
    page.get_by_role("link", name="Step 258 of rank 1").click()  # 2
    page.wait_for_url("**/step?**")
    seen.settle()
    chosen = page.locator('section[aria-label="chosen span"]')
    chosen.wait_for()
    said = chosen.inner_text()
    assert "layers.2.self_attn.o_proj" in said
    assert "12.9 ms" in said
    assert "ModelRunner.execute_model" in said  # who called it
    seen.calm()


def test_a_link_leads_to_the_same_step_and_span(pages: Pages, demo: Path, see: See) -> None:
    run = entry(demo, "demo").run_id
    seen = see(f"{pages.url}/step?run={run}&rank=0&step=173")
    assert "Step 173 of rank 0" in seen.text()
    canvas = seen.page.locator("canvas[role=application]").first
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        seen.page.keyboard.press(key)
    seen.page.wait_for_function("() => location.search.includes('span=')")
    seen.page.locator('section[aria-label="chosen span"]').wait_for()
    told = seen.page.locator("[role=status][aria-live=polite]").first.inner_text()
    name = told.split(",")[0]
    again = see(seen.page.url)
    card = again.page.locator('section[aria-label="chosen span"]')
    card.wait_for()
    assert name in card.inner_text()
    again.calm()


def test_a_zoom_by_keys_shows_a_shorter_stretch(pages: Pages, demo: Path, see: See) -> None:
    run = entry(demo, "demo").run_id
    seen = see(f"{pages.url}/step?run={run}&rank=1&step=200")
    seen.page.locator(".tl[data-ready]").first.wait_for()
    before = seen.page.locator("canvas[role=application]").first.screenshot()
    seen.page.locator("canvas[role=application]").first.focus()
    for _ in range(4):
        seen.page.keyboard.press("w")
    seen.page.wait_for_timeout(600)
    seen.settle()
    assert seen.page.locator("canvas[role=application]").first.screenshot() != before
    seen.calm()


@pytest.mark.parametrize("path", PAGES)
def test_what_traces_and_logs_say_is_text_and_nothing_else(
    pages: Pages, demo: Path, see: See, path: str
) -> None:
    run = entry(demo, "hostile").run_id
    [one] = [i for i in _incidents(demo) if i.latest.run.run == run]
    seen = see(f"{pages.url}/{path}?run={run}&rank=1&step=1&finding={one.finding.id}"
               f"&incident={one.id}&span={one.finding.evidence[0].id}")  # fmt: skip
    made = seen.page.evaluate(
        "() => [...document.querySelectorAll('img, a, script, iframe, object')]"
        ".map(e => (e.src || e.href || e.data || '') + ' ' + e.textContent)"
        ".filter(s => s.includes('attacker') || s.includes('alert('))"
    )
    assert made == []
    assert seen.page.locator(".katex").count() == 0
    said = seen.text()
    wanted: dict[str, list[str]] = {
        "": [NAMES[0]], "incident": [NAMES[0], NAMES[1], NAMES[2], NAMES[3], NAMES[4], NAMES[5]],
        "step": [NAMES[0]],
    }  # fmt: skip
    for name in wanted.get(path, []):
        assert name in said, (path, name)
    seen.calm()


def test_log_lines_are_shown_as_they_are(pages: Pages, demo: Path, see: See) -> None:
    run = entry(demo, "hostile").run_id
    text = "MATCH (l:LogLine) WHERE l.run_id = $run RETURN l.text AS text, l.rank AS rank"
    seen = see(f"{pages.url}/cypher?run={run}")
    _ask(seen, text)
    seen.page.get_by_text("3 rows").wait_for()
    with seen.page.expect_download() as got:
        seen.page.get_by_role("button", name="Parquet", exact=True).click()
    rows = pq.read_table(io.BytesIO(Path(got.value.path()).read_bytes()))["text"].to_pylist()
    assert all(NAMES[1] in row for row in rows), LINE
    seen.calm()


def _ask(seen: Seen, text: str) -> None:
    editor = seen.page.locator(".cm-content").first
    editor.click()
    seen.page.keyboard.press("Control+a")
    seen.page.keyboard.insert_text(text)
    seen.page.keyboard.press("Control+Enter")


def test_a_query_is_answered_and_one_that_writes_is_refused(
    pages: Pages, demo: Path, see: See
) -> None:
    seen = see(f"{pages.url}/cypher?run={entry(demo, 'demo').run_id}")
    _ask(seen, "MATCH (r:Rank) WHERE r.run_id = $run RETURN r.rank AS rank ORDER BY rank")
    seen.page.get_by_text("2 rows").wait_for()
    seen.settle()
    _ask(seen, "MATCH (r:Rank) DETACH DELETE r")
    seen.page.get_by_text("Not answered").wait_for()
    assert "DETACH" in seen.page.locator('[role="alert"]').first.inner_text()
    _ask(seen, "LOAD FROM '/etc/passwd' RETURN *")
    seen.page.wait_for_function("() => document.body.innerText.includes('LOAD')")
    assert "root:" not in seen.text()
    seen.calm()


def test_the_editor_completes_labels_of_the_schema(pages: Pages, see: See) -> None:
    seen = see(f"{pages.url}/cypher")
    editor = seen.page.locator(".cm-content").first
    editor.click()
    seen.page.keyboard.press("Control+a")
    seen.page.keyboard.type("MATCH (c:Colle")
    seen.page.locator(".cm-tooltip-autocomplete", has_text="Collective").wait_for()


def test_nobody_writes_a_note_unless_it_is_allowed(pages: Pages, see: See, own_demo: Path) -> None:
    wanted = "Acknowledge or note"
    assert wanted not in see(f"{pages.url}/incident").text()
    with serving("--workspace", str(own_demo), "--allow-notes") as running:
        seen = see(f"{running.url}/incident")
        page = seen.page
        page.get_by_role("button", name=wanted).click()
        page.get_by_text("Acknowledge", exact=True).click()
        page.get_by_label("Note", exact=True).fill(f"seen it, {NAMES[0]}")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("acknowledged").first.wait_for()
        page.get_by_text("seen it").first.wait_for()
        assert page.locator("img[src*=attacker]").count() == 0
        seen.calm()
    [note] = journal.read(own_demo / "notes")
    assert (note.act, note.text) == ("acknowledge", f"seen it, {NAMES[0]}")
    assert any(one.state == "acknowledged" for one in _incidents(own_demo))


def test_one_page_to_print_comes_as_a_file(pages: Pages, see: See) -> None:
    seen = see(f"{pages.url}/incident")
    with seen.page.expect_download() as got:
        seen.page.get_by_role("button", name="One page to print").click()
    text = Path(got.value.path()).read_text()
    assert "<svg" in text
    assert OUT not in re.findall(r'(?:src|href)="([^"]*)"', text)


def test_the_pages_answer_while_a_run_is_read(see: See, own_demo: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    with serving("--workspace", str(own_demo)) as running:
        first = see(f"{running.url}/runs")
        assert "All 2 runs" in first.text()
        words = ["simulate", "--fault", "late_rank", "--seed", "5", "--steps", "8", "--layout",
                 "tp=2", "-o", str(tmp_path / "more")]  # fmt: skip
        subprocess.run([sys.executable, "-c", RUN, *words], check=True, capture_output=True)
        reading = subprocess.Popen(
            [sys.executable, "-c", RUN, "diagnose", str(tmp_path / "more"), "--workspace",
             str(own_demo), "--quiet"], stdout=subprocess.DEVNULL,
        )  # fmt: skip
        while reading.poll() is None:  # it takes some seconds; each look is a whole page
            first.open(f"{running.url}/incident")
            first.calm()
        assert reading.returncode in (0, 1)
        first.open(f"{running.url}/runs")
        assert "All 3 runs" in first.text()
        first.calm()


def test_a_folder_that_is_sent_is_read_and_shown(
    pages: Pages, see: See, own_demo: Path, tmp_path: Path
) -> None:
    wanted = "Send the folder of a run"
    assert wanted not in see(f"{pages.url}/runs").text()
    folder = tmp_path / "run"
    write_traces(folder, later_us=3_600_000_000)  # another run than the one that is there
    with serving("--workspace", str(own_demo), "--allow-upload", "8") as running:
        seen = see(f"{running.url}/runs")
        seen.page.get_by_text(wanted).click()
        seen.page.locator('input[type="file"]').set_input_files(str(folder))
        uploader = seen.page.get_by_test_id("stFileUploader")
        uploader.get_by_text("KB").first.wait_for()  # long names are cut in the middle
        seen.page.get_by_role("button", name="Read and diagnose it").click()
        seen.page.get_by_text("All 3 runs").wait_for()
        seen.calm()
    assert not list((own_demo / "uploads").glob("*/run"))  # what was sent is gone again


def test_a_narrow_window_shows_all_without_scrolling_sideways(pages: Pages, see: See) -> None:
    for path in ("", "incident", "step"):
        seen = see(f"{pages.url}/{path}", "light", 420)
        wide = seen.page.evaluate("() => document.scrollingElement.scrollWidth")
        assert wide <= 421, path


def test_an_empty_workspace_says_what_to_do(see: See, tmp_path: Path) -> None:
    with serving("--workspace", str(tmp_path / "none")) as running:
        seen = see(running.url)
        assert "teller diagnose" in seen.text()
        seen.calm()


def _incidents(workspace: Path) -> list[incidents.Incident]:
    from teller.ui.desk import Place

    place = Place("test", lambda: Workspace(workspace))
    try:
        return place.incidents()
    finally:
        place.close()
