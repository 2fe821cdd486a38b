"""Make the pictures of docs/ui.md again: the demo run in a browser, by `make pictures`."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

RUN = "from teller.cli import run; run()"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
WIDTH, HEIGHT = 1300, 2400
SHOTS = (
    ("incidents", "", "light"),
    ("incident", "incident", "light"),
    ("step", "step?rank=1&step=258", "dark"),
    ("network", "network", "light"),
    ("cypher", "cypher", "dark"),
)
READY = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  return app && app.getAttribute('data-test-script-state') === 'notRunning'
    && !document.querySelector('[data-testid="stSkeleton"]') && document.querySelector('.t-head');
}"""


def main(folder: Path) -> None:
    """Write one picture a page into the folder."""
    if CHROMIUM is None:
        sys.exit("Chromium is needed: apt-get install chromium, or set CHROMIUM")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Path(scratch) / "workspace"
        subprocess.run([sys.executable, "-c", RUN, "demo", "--workspace", str(workspace)],
                       stdout=subprocess.DEVNULL, check=False)  # fmt: skip
        server = subprocess.Popen(
            [sys.executable, "-c", RUN, "ui", "--headless", "--port", "0", "--workspace",
             str(workspace)], stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert server.stderr
            url = server.stderr.readline().split(" is at ")[1].split()[0]
            with sync_playwright() as started:
                browser = started.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
                )
                for name, path, theme in SHOTS:
                    shoot(browser, f"{url}/{path}", theme, folder / f"{name}.png")
                browser.close()
        finally:
            server.kill()
            server.communicate()


def shoot(browser: Browser, url: str, theme: str, file: Path) -> None:
    """Write the picture of one page, as tall as what it shows."""
    page = browser.new_page(
        viewport={"width": WIDTH, "height": 1000},
        color_scheme="dark" if theme == "dark" else "light",
    )
    page.set_default_timeout(120_000)
    page.goto(url)
    page.wait_for_function(READY)
    page.wait_for_timeout(1_500)
    tall = page.evaluate(
        "() => Math.max(...[...document.querySelectorAll('[data-testid=stMainBlockContainer] > *')]"
        ".map(e => e.getBoundingClientRect().bottom)) + 20"
    )
    page.set_viewport_size({"width": WIDTH, "height": min(int(tall), HEIGHT)})
    page.wait_for_timeout(1_500)
    page.screenshot(path=str(file))
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
