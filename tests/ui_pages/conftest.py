"""The pages in a real browser: a server of its own process, and Chromium without a window."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import pytest

from .hostile import make_hostile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request

pytest.importorskip("streamlit", reason="the extra `ui` is not installed")

CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
RUN = "from teller.cli import run; run()"
PATIENCE_MS = 180_000
Theme = Literal["light", "dark"]


def teller(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of ours in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a workspace with the demo run and a run whose names are hostile; not to be changed."""
    with _common(tmp_path_factory) as place:
        folder = place / "pages-workspace"
        if not folder.exists():
            made = place / "pages-making"
            done = teller("demo", "--workspace", str(made), "--quiet")
            assert done.returncode == 1, done.stderr
            make_hostile(place / "hostile", made)
            made.rename(folder)
    return folder


@dataclass
class Pages:
    """A running server, and what it prints."""

    url: str
    process: "subprocess.Popen[str]"
    said: IO[str] | None = field(default=None)


@contextmanager
def serving(*words: str) -> Iterator[Pages]:
    """Run `teller ui` with these words until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "ui", "--headless", "--port", "0", *words],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr
    try:
        line = process.stderr.readline()
        assert " is at " in line, line + process.stderr.read()
        url = line.split(" is at ")[1].split()[0]
        assert urllib.request.urlopen(f"{url}/_stcore/health", timeout=60).read() == b"ok"
        yield Pages(url, process, process.stderr)
    finally:
        process.kill()  # browsers that still listen would hold up an orderly end
        process.communicate()


@pytest.fixture(scope="session")
def pages(demo: Path) -> Iterator[Pages]:
    """Give a server of the demo that lets nobody change anything."""
    with serving("--workspace", str(demo)) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Give Chromium; where all must be tested, its absence is a failure."""
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium is needed: apt-get install chromium")
        pytest.skip("no Chromium here: apt-get install chromium, or set CHROMIUM")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the extra `dev` is not installed"
    )
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


class Seen:
    """A page of the browser: what it asked of the network, and what went wrong in it."""

    def __init__(self, browser: "Browser", theme: Theme = "light", width: int = 1300) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme=theme, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", self._asked)
        self.page.on("pageerror", lambda err: self.errors.append(str(err)))

    def open(self, url: str) -> "Seen":
        """Open an address and wait until it is drawn."""
        self.page.goto(url)
        return self.settle()

    def settle(self) -> "Seen":
        """Wait until the script has run and nothing is being loaded."""
        self.page.wait_for_selector('[data-testid="stApp"]')
        self.page.wait_for_function(
            """() => {
              const app = document.querySelector('[data-testid="stApp"]');
              return app && app.getAttribute('data-test-script-state') === 'notRunning'
                && !document.querySelector('[data-testid$=Skeleton]')
                && document.querySelector('.t-head, .t-card');
            }"""
        )
        self.page.wait_for_timeout(250)  # a frame of the charts
        return self

    def text(self) -> str:
        """Give all text of the page."""
        said: str = self.page.evaluate("() => document.body.innerText")
        return said

    def calm(self) -> None:
        """Hold that nothing was asked outside, and nothing failed."""
        assert self.outside == []
        assert self.errors == []
        assert "Traceback" not in self.text()
        assert self.page.locator('[data-testid="stException"]').count() == 0

    def close(self) -> None:
        self.context.close()

    def _asked(self, request: "Request") -> None:
        url = request.url
        if url.startswith(("http", "ws")) and "//127.0.0.1" not in url:
            self.outside.append(url)


@pytest.fixture
def see(browser: "Browser") -> Iterator[Callable[..., Seen]]:
    """Give what opens an address in a fresh page of the browser."""
    opened: list[Seen] = []

    def look(url: str, theme: Theme = "light", width: int = 1300) -> Seen:
        opened.append(Seen(browser, theme, width))
        return opened[-1].open(url)

    yield look
    for one in opened:
        one.close()


@contextmanager
def _common(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the folder that all workers of a test run have in common, to one at a time."""
    base = factory.getbasetemp()
    place = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (place / "pages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


@pytest.fixture
def own_demo(demo: Path) -> Iterator[Path]:
    """Give a copy of the workspace to change."""
    with tempfile.TemporaryDirectory(prefix="teller-pages-") as scratch:
        folder = Path(scratch) / "workspace"
        shutil.copytree(demo, folder)
        yield folder
