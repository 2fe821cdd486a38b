"""Colours and the style sheet of the pages, for both themes; no text of traces goes in here."""

from functools import cache
from importlib.resources import files
from typing import Final

SEVERITY: Final = {
    "light": {"critical": "#b3141f", "high": "#c2410c", "medium": "#8a5a00", "low": "#34516f",
              "info": "#4d5665", "calm": "#1a7037"},
    "dark": {"critical": "#ff8a8a", "high": "#ff9e64", "medium": "#e9b44c", "low": "#9fc1e6",
             "info": "#a9b4c4", "calm": "#6fd08c"},
}  # fmt: skip
PAPER: Final = {
    "light": {"card": "#f6f8fb", "line": "#d5dbe5", "muted": "#4d5665", "ink": "#0b1220",
              "accent": "#1f56c4"},
    "dark": {"card": "#171e28", "line": "#2f3a49", "muted": "#a9b4c4", "ink": "#e4e9f1",
             "accent": "#8ab0ff"},
}  # fmt: skip
HEAT: Final = {
    "light": ("#eef2f8", "#f7b27a", "#c8102e"), "dark": ("#1b2430", "#a65a1e", "#ff6b5e"),
}  # fmt: skip


@cache
def rules() -> str:
    """Give what both themes have in common."""
    return files("teller.ui").joinpath("pages.css").read_text(encoding="utf-8")


def sheet(theme: str) -> str:
    """Give the style sheet of a theme, "light" or "dark"."""
    paper, tones = PAPER[theme], SEVERITY[theme]
    names = ("card", "line", "muted", "ink", "accent")
    root = "".join(f"--t-{name}:{paper[name]};" for name in names)
    tone = "".join(f".t-{name}{{--tone:{color}}}" for name, color in tones.items())
    return f"<style>:root{{{root}}}{rules()}{tone}</style>"
