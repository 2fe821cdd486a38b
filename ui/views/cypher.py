"""Questions in Cypher: an editor, what it gives as table or graph, and ways to take it along."""

import io
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import streamlit as st

from teller.errors import TellerError
from teller.graph import guarded, saved, tokens
from teller.graph.answer import Answer, Limits
from teller.graph.archive import RunEntry
from teller.ui import asking, canvas, charts, desk, look, phrase, shell, tables, verbatim
from teller.ui.desk import Place

TIMES: Final = (5, 20, 60)  # seconds
ROWS: Final = 10_000
LABELS: Final = 80  # nodes; of more, names show where the pointer is


def page() -> None:
    """Show the editor and what was asked."""
    here, run = shell.needed("Cypher", "Read only; within limits of time, rows and memory")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = _start(here)
        seconds = st.segmented_control(
            "At most, s", TIMES, default=20, required=True, key="seconds"
        )
        given = st.text_input("Parameters", key="given", placeholder='{"rank": 3}')
    said = canvas.editor(text, asking.words(), st.session_state.get("fault", ""), "editor")
    asked = said.run if said and said.run else ""
    if asked:
        st.session_state["text"] = asked
        st.query_params["q"] = asked[:4000]
        _ask(here, run, asked, given, float(seconds or 20))
    _answer(here, run)


def _start(here: Place) -> str:
    """Give the text to start from: of the address, else the example that is chosen."""
    kept = {f"kept: {name}": text for name, text in saved.read(here.workspace.notes).items()}
    every = kept | asking.examples()
    names = list(every)

    def took() -> None:
        st.session_state["text"] = every[st.session_state["example"]]
        st.session_state.pop("answer", None)
        st.session_state["fault"] = ""

    st.selectbox(
        "Start from", names, key="example", on_change=took, format_func=phrase.visible, width=380
    )
    if "text" not in st.session_state:
        st.session_state["text"] = st.query_params.get("q") or every[names[len(kept)]]
    return str(st.session_state["text"])


def _ask(here: Place, run: RunEntry, text: str, given: str, seconds: float) -> None:
    st.session_state["fault"] = ""
    st.session_state.pop("answer", None)
    try:
        params = asking.parameters(given)
        wanted = tokens.parameters(text)
        if "run" in wanted:
            params.setdefault("run", run.run_id)
        if "limit" in wanted:
            params.setdefault("limit", 50)
        with st.spinner("asking"):
            answer = guarded.ask(
                here.workspace, text, params, Limits(ROWS, seconds), who=shell.who()
            )
    except TellerError as err:
        st.session_state["fault"] = str(err)
        st.rerun()  # so that the editor marks it
    st.session_state["answer"] = (here.name, text, params, answer)


def _answer(here: Place, run: RunEntry) -> None:
    if fault := st.session_state.get("fault"):
        verbatim.html(
            '<div class="t-card t-high" role="alert"><div class="t-sev">Not answered</div>'
            '<p class="t-say">{fault}</p></div>',
            fault=fault,
        )
    kept = st.session_state.get("answer")
    if not kept or kept[0] != here.name:
        return
    _, text, params, answer = kept
    found: pa.Table = answer.table
    cut = f", the first of more: the limit is {ROWS:,}" if answer.truncated else ""
    st.caption(f"{phrase.counted(found.num_rows, 'row')}{cut}, {answer.seconds:.2f} s")
    _take(here, text, params, answer)
    table, graph, notebook = st.tabs(["Table", "Graph", "Notebook"])
    with table:
        verbatim.table(shown(found), height="auto" if found.num_rows < 12 else 460, alt="Answer")
    with graph:
        _graph(found)
    with notebook:
        store = here.note
        st.code(asking.snippet(text, params, str(here.workspace.folder), store), language="python")


def shown(found: pa.Table) -> pa.Table:
    """Give the rows for a browser: ids and what is nested as text, so that no digit is lost."""
    exact = tables.exact_numbers(found)
    for at, field in enumerate(exact.schema):
        if pa.types.is_nested(field.type):
            texts = [tables.as_text(value) for value in exact.column(at).to_pylist()]
            exact = exact.set_column(at, field.name, pa.array(texts, pa.string()))
    return exact


def _take(here: Place, text: str, params: dict[str, Any], answer: Answer) -> None:
    found = answer.table
    with st.container(horizontal=True):
        st.download_button(
            "CSV",
            data=lambda: _csv(found),
            file_name="answer.csv",
            mime="text/csv",
            on_click="ignore",
        )
        st.download_button(
            "Parquet",
            data=lambda: _parquet(found),
            file_name="answer.parquet",
            mime="application/vnd.apache.parquet",
            on_click="ignore",
        )
        if desk.current().may_note:
            with st.popover("Keep this query"), st.form("keep", border=False):
                name = st.text_input("Name", max_chars=100)
                if st.form_submit_button("Keep", type="primary"):
                    saved.keep(
                        here.workspace.notes, saved.Kept(name=name, text=text, who=shell.who())
                    )
                    st.rerun()


def _csv(found: pa.Table) -> bytes:
    file = io.StringIO()
    tables.write_csv(found, file)
    return file.getvalue().encode()


def _parquet(found: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(found, file, compression="zstd")
    return file.getvalue()


def _graph(found: pa.Table) -> None:
    usual = asking.ends(found)
    if usual is None or not found.num_rows:
        verbatim.say("A graph needs two columns that say from where to where: source and target.")
        return
    names = [field.name for field in found.schema if not pa.types.is_nested(field.type)]
    with st.container(horizontal=True):
        first = st.selectbox("From", names, index=names.index(usual[0]), width=220)
        last = st.selectbox("To", names, index=names.index(usual[1]), width=220)
    said, edges = asking.graph(found, first, last)
    paper = look.PAPER[shell.theme()]
    most = max((count for *_, count in edges), default=1)
    nodes = [
        {
            "id": str(at), "name": phrase.visible(name), "x": float(x), "y": float(y),
            "symbolSize": 16, "itemStyle": {"color": paper["accent"]},
        }
        for at, (name, (x, y)) in enumerate(
            zip(said, asking.spread(len(said), edges), strict=True)
        )
    ]  # fmt: skip
    links = [
        {
            "source": str(a), "target": str(b), "value": count,
            "lineStyle": {"width": 1 + 4 * (count / most) ** 0.5, "color": paper["muted"]},
        }
        for a, b, count in edges
    ]  # fmt: skip
    st.echarts_chart(
        charts.graph(nodes, links, shell.theme(), labels=len(nodes) <= LABELS), height=480,
        key="answer-graph", alt="Graph of the answer",
    )  # fmt: skip
    if len(said) == asking.NODES:
        st.caption(f"The {asking.NODES} nodes that are met most are drawn.")


shell.show(page)
