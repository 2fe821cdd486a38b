"""Measure the pages on a workspace: server time, time in a browser beside a bare page, memory.

    .venv/bin/python bench/ui.py WORKSPACE [--run NAME] [--times 5]

Server time is the script's own, run in this process by Streamlit's test bench; the first look of
each page is told apart from the warm ones. Browser time is from the address to a page at rest, of
a server of its own, beside that of a page with one line in the same browser.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from streamlit.testing.v1 import AppTest

from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.models.slices import slice_of
from teller.ui import desk

RUN = "from teller.cli import run; run()"
PAGES = ("incidents", "incident", "step", "network", "requests", "cypher", "runs")
READY = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  return app && app.getAttribute('data-test-script-state') === 'notRunning'
    && !document.querySelector('[data-testid$=Skeleton]')
    && document.querySelector('.t-head, .t-card, [data-testid="stText"]');
}"""


def main() -> None:
    """Print one line a page, and the memory of the server behind them."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("workspace", type=Path)
    words.add_argument("--run", default="", help="name of a run; else the latest")
    words.add_argument("--times", type=int, default=5)
    given = words.parse_args()
    entries = Workspace(given.workspace).entries()
    run = next(e.run_id for e in reversed(entries) if given.run in ("", e.name))
    say(f"{'page':<10} {'first s':>8} {'warm s':>8} {'slowest s':>10} {'browser s':>10}")
    seen = in_browser(given.workspace, run, given.times)
    for name in PAGES:
        first, *warm = served(given.workspace, name, run, given.times + 1)
        say(
            f"{name:<10} {first:8.2f} {statistics.median(warm):8.2f} {max(warm):10.2f} "
            f"{seen[name]:10.2f}"
        )
    say(f"{'bare page':<10} {'':>28} {seen['bare']:10.2f}")
    say(f"memory of the server: {seen['mib']:.0f} MiB")


def served(workspace: Path, page: str, run: int, times: int) -> list[float]:
    """Give the seconds that the script of a page takes, the first with nothing kept."""
    place = desk.Place("bench", lambda: Workspace(workspace, project=project, rest=rest))
    desk.put(desk.Desk((place,), slice_of))
    found = []
    for _ in range(times):
        bench = AppTest.from_file(str(Path(desk.__file__).with_name("app.py")), default_timeout=600)
        bench.query_params["run"] = str(run)
        if page != "incidents":
            bench.switch_page(f"views/{page}.py")
        begun = time.perf_counter()
        bench.run()
        found.append(time.perf_counter() - begun)
        if bench.exception:
            sys.exit(f"{page}: {bench.exception[0].value}")
    place.close()
    return found


def in_browser(workspace: Path, run: int, times: int) -> dict[str, float]:
    """Give the median seconds until each page is at rest, of a bare page, and the server's MiB."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is needed: apt-get install chromium")
    ours = [sys.executable, "-c", RUN, "ui", "--headless", "--port", "0", "--workspace"]
    with sync_playwright() as started, tempfile.TemporaryDirectory() as scratch:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        server = subprocess.Popen([*ours, str(workspace)], stderr=subprocess.PIPE, text=True)
        bare = _bare(Path(scratch))
        try:
            assert server.stderr
            url = server.stderr.readline().split(" is at ")[1].split()[0]
            found = {
                name: _median(browser, f"{url}/{'' if name == 'incidents' else name}?run={run}",
                              times) for name in PAGES
            }  # fmt: skip
            status = Path(f"/proc/{server.pid}/status").read_text()
            found["mib"] = int(status.split("VmRSS:")[1].split()[0]) / 1024
            found["bare"] = _median(browser, "http://127.0.0.1:8599", times)
        finally:
            for process in (server, bare):
                process.kill()
                process.communicate()
        browser.close()
    return found


def _bare(folder: Path) -> "subprocess.Popen[str]":
    script = folder / "bare.py"
    script.write_text("import streamlit as st\n\nst.text('here')\n")
    words = ["run", str(script), "--server.port", "8599", "--server.headless", "true",
             "--server.address", "127.0.0.1", "--browser.gatherUsageStats", "false"]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "streamlit", *words], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def _median(browser: Browser, url: str, times: int) -> float:
    """Give the median of some looks; the first, with nothing kept, is left out."""
    page: Page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.set_default_timeout(300_000)
    taken = [_timed(lambda: _look(page, url)) for _ in range(times + 1)]
    page.close()
    return statistics.median(taken[1:])


def _look(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_function(READY)


def _timed(act: Callable[[], None]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
