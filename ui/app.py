"""The script that the server runs for each visitor: the pages, and who may see them."""

import streamlit as st

from teller.ui import desk, shell

_HIDDEN = {"incident"}


def _pages() -> list[st.Page]:
    return [
        st.Page(
            f"views/{name}.py", title=title, url_path=name, default=name == "incidents",
            visibility="hidden" if name in _HIDDEN else "visible",
        )
        for name, title in shell.VIEWS.items()
    ]  # fmt: skip


st.set_page_config(page_title="TELLER", page_icon=None, layout="wide")
page = st.navigation(_pages(), position="top")
if desk.current().needs_login and not st.user.is_logged_in:
    shell.empty("You are not logged in", "These pages are for people that your provider knows.")
    if st.button("Log in", type="primary"):
        st.login()
else:
    page.run()
