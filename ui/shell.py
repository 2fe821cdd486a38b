"""What all pages share: which store and which run, links, and what is shown when there is nothing.

The choice stands in the address of the page, so that a link leads others to the same.
"""

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from teller.errors import NothingUsable, TellerError
from teller.graph.archive import RunEntry
from teller.ui import desk, look, phrase, verbatim
from teller.ui.desk import Place

VIEWS: Final = {
    "incidents": "Incidents", "incident": "Incident", "step": "Step", "network": "Communication",
    "requests": "Requests", "cypher": "Cypher", "runs": "Runs",
}  # fmt: skip


def show(page: Callable[[], None]) -> None:
    """Run a page; an error of ours is said with what to do, as on the command line."""
    st.html(look.sheet(theme()))
    try:
        page()
    except NothingUsable as err:
        empty("Nothing to show yet", str(err), "teller diagnose YOUR_RUN_FOLDER")
    except TellerError as err:
        verbatim.html(
            '<div class="t-card t-high" role="alert"><div class="t-sev">This cannot be shown</div>'
            '<div class="t-title">{what}</div></div>',
            what=str(err),
        )


def theme() -> str:
    """Give the theme of this visitor: "light" or "dark"."""
    return "dark" if st.context.theme.type == "dark" else "light"


def empty(what: str, why: str, command: str = "") -> None:
    """Say that there is nothing, why, and what to do."""
    verbatim.html(
        '<div class="t-card t-info"><div class="t-title">{what}</div><p class="t-say">{why}</p>'
        "</div>",
        what=what, why=why,
    )  # fmt: skip
    if command:
        st.code(command, language=None)


def place() -> Place:
    """Give the store that the address names."""
    return desk.current().place(st.query_params.get("store", st.session_state.get("store", "")))


def top(title: str, lead: str = "", *, with_run: bool = True) -> tuple[Place, RunEntry | None]:
    """Show the head of a page with the choice of store and run, and give what is chosen."""
    left, right = st.columns([1, 1], vertical_alignment="bottom")
    with left:
        verbatim.heading(title, lead)
    with right, st.container(horizontal=True, horizontal_alignment="right"):
        here = _store()
        run = _run(here) if with_run else None
    return here, run


def needed(title: str, lead: str = "") -> tuple[Place, RunEntry]:
    """Show the head of a page that is about one run, and give store and run."""
    here, run = top(title, lead)
    assert run is not None
    return here, run


def _store() -> Place:
    places = desk.current().places
    if len(places) == 1:
        return places[0]
    name = choice("store", "Store", [p.name for p in places], place().name)
    return desk.current().place(name)


def _run(here: Place) -> RunEntry:
    entries = {str(entry.run_id): entry for entry in reversed(here.runs())}
    said = {key: f"{e.name} · {e.deployment}" for key, e in entries.items()}
    key = choice("run", "Run", list(entries), next(iter(entries)), said.__getitem__)
    return entries[key]


def choice(
    name: str, label: str, keys: Sequence[str], usual: str, said: Callable[[str], str] = str
) -> str:
    """Let one be chosen, and keep the choice in the address and for the next page."""
    given = st.query_params.get(name, st.session_state.get(name, usual))
    key = given if given in keys else usual
    widget = f"choose-{name}"
    st.session_state[widget] = key
    st.session_state[name] = key

    def took() -> None:
        st.session_state[name] = st.session_state[widget]
        st.query_params[name] = st.session_state[widget]

    if name in st.query_params and given != key:
        st.query_params[name] = key
    st.selectbox(
        label, keys, key=widget, on_change=took, width=250,
        format_func=lambda k: phrase.visible(said(k)),
    )  # fmt: skip
    return key


def link(view: str, label: str, **params: object) -> None:
    """Show a link to another page; the label holds words of ours and numbers alone."""
    st.page_link(f"views/{view}.py", label=label, query_params=address(**params))


def go(view: str, **params: object) -> None:
    """Go to another page."""
    st.switch_page(f"views/{view}.py", query_params=address(**params))


def address(**params: object) -> dict[str, str]:
    """Give the parameters of a link: what is given, and the store where there are several."""
    given = {name: str(value) for name, value in params.items() if value not in (None, "")}
    if len(desk.current().places) > 1:
        given.setdefault("store", place().name)
    return given


def take(name: str, key: str) -> None:
    """Make a choice as if it had been made on the page, and show the page again."""
    st.session_state[name] = key
    st.query_params[name] = key
    st.rerun()


def again() -> None:
    """Show the whole page again."""
    st.rerun()


def number(name: str) -> int | None:
    """Give a number of the address, or None."""
    text = st.query_params.get(name, "")
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def who() -> str:
    """Give the name of the visitor, where a proxy or a login knows it."""
    header = desk.current().name_header
    if header:
        return str(st.context.headers.get(header, ""))
    if desk.current().needs_login and st.user.is_logged_in:
        return str(st.user.get("email") or st.user.get("name") or "")
    return ""
