"""The checks of a recording on a terminal."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType

from teller.graph.sanity import Sanity, State
from teller.ui.text import plain_table, word

_STYLES: Final[dict[State, str]] = {
    "ok": "green", "weak": "bold yellow", "bad": "bold red", "unknown": "dim",
}  # fmt: skip
_SAID: Final[dict[State, str]] = {
    "ok": "the recording holds together",
    "weak": "the recording can be judged, with what is said here in mind",
    "bad": "the recording would mislead: mend it before you trust a verdict",
    "unknown": "not all of it can be checked",
}


def blocks(found: Sanity) -> Iterator[RenderableType]:
    """Give what is printed, top to bottom."""
    table = plain_table("Check", "", "what was seen", "what to do")
    several = len({run for run, _ in found.checks if run}) > 1
    for run, check in found.checks:
        name = f"{check.name} ({run})" if several and run else check.name
        state = word(check.state, _STYLES[check.state])
        table.add_row(word(name), state, word(check.what), word(check.do))
    yield table
    yield word(f"{found.state}: {_SAID[found.state]}", _STYLES[found.state])
