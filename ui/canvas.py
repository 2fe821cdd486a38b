"""The components that draw in the browser: the timeline, and the editor for Cypher.

Made when first used: outside of a server there is nothing to register them with.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import streamlit as st

from teller.ui.lanes import Picture

_HTML: Final = (
    '<div class="tl"><canvas tabindex="0" role="application" aria-label="Timeline. Arrow keys move '
    "between spans, W and S zoom, A and D move, Enter zooms to the span, 0 shows all, Escape lets "
    'go."></canvas><div class="tip" hidden></div>'
    '<div class="live" role="status" aria-live="polite"></div></div>'
)
_EDITOR: Final = (
    '<div class="ed"></div><div class="bar"><span class="hint">Ctrl+Enter runs it</span>'
    '<button class="run" type="button">Run</button></div>'
)


def timeline(picture: Picture, key: str, *, asks: bool = True) -> Any:
    """Show a picture; give `selected`, the id of a span as text, and `view`, in µs."""
    done: Any = _timeline(picture.height_px)(
        data=picture.data, key=key, on_selected_change=_nothing,
        **({"on_view_change": _nothing} if asks else {}),
    )  # fmt: skip
    return done


def editor(text: str, words: Mapping[str, list[str]], fault: str, key: str) -> Any:
    """Show the editor with a text and what it may complete; give `run`, a text to be asked."""
    return _editor()(
        data={"text": text, "words": dict(words), "fault": fault}, key=key, on_run_change=_nothing
    )


@cache
def _timeline(height: int) -> Any:
    # the height is in the style: the element would else jump once it is drawn
    css = _text("timeline.css").replace("HEIGHT", f"{height}px")
    return st.components.v2.component(
        f"teller_timeline_{height}", html=_HTML, css=css, js=_text("timeline.js")
    )


@cache
def _editor() -> Any:
    # the large part is loaded once, from this server: what is inline comes again with each change
    return st.components.v2.component(
        "teller_editor", html=_EDITOR, css=_text("editor.css"), js=_text("editor.js")
    )


def _text(name: str) -> str:
    return files("teller.ui").joinpath("components", name).read_text(encoding="utf-8")


def _nothing() -> None:
    """Have the page run again with what the component says."""
