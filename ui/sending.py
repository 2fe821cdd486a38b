"""Where a visitor sends the folder of a run, and what becomes of it."""

import streamlit as st

from teller.ui import desk, shell, uploads, verbatim
from teller.ui.desk import Place

SHOWN = 3  # folders whose progress is told
LINES = 8


def show(here: Place) -> None:
    """Take a folder, where who started the server allows it."""
    what = desk.current()
    if not what.upload_bytes or what.ingest is None:
        return
    running = any(job.state() == "running" for job in uploads.jobs())
    with st.expander("Send the folder of a run", expanded=running):
        with st.form("upload", border=False, clear_on_submit=True):
            most = what.upload_bytes >> 20
            sent = st.file_uploader(
                f"A run folder of at most {most} MiB", accept_multiple_files="directory",
                max_upload_size=max(1, most),
            )  # fmt: skip
            deployment = st.text_input(
                "Deployment", max_chars=100, placeholder="the service that was recorded"
            ).strip()
            if st.form_submit_button("Read and diagnose it", type="primary"):
                folder = uploads.write(sent or [], here.workspace.folder, what.upload_bytes)
                command = what.ingest(here, folder, deployment)
                uploads.start(deployment or "a folder", folder, command)
        _progress()


@st.fragment(run_every=2)
def _progress() -> None:
    """Tell how far each is; when one is done, the page shows what it gave."""
    found = uploads.jobs()[:SHOWN]
    for job in found:
        told = "\n".join(line for line in job.told().splitlines()[-LINES:] if line.strip())
        verbatim.html(
            '<p class="t-say"><b>{state}</b> {name}</p><pre class="t-lines">{told}</pre>',
            state=job.state(), name=job.name, told=verbatim.pieces(told),
        )  # fmt: skip
    waiting = st.session_state.setdefault("waiting", set())
    over = {id(job) for job in found if job.state() != "running"} & waiting
    waiting |= {id(job) for job in found if job.state() == "running"}
    if over:
        waiting -= over
        shell.again()
