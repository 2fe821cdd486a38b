"""The server of the pages: one process, its own files alone, no request to anywhere else."""

import socket
import sys
import threading
import tomllib
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import streamlit as st
import uvicorn
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from streamlit import config

from teller.errors import BadUsage
from teller.ui import desk
from teller.ui.asgi import Guard

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
HERE: Final = Path(__file__).parent  # not resolved: the package is a link in a checkout


def serve(
    what: desk.Desk,
    *,
    port: int,
    address: str = "127.0.0.1",
    headless: bool = False,
    allowed_hosts: Sequence[str] = (),
    login: Mapping[str, Any] | None = None,
) -> None:
    """Serve the pages until the process is told to end; `login` is the table that st.login reads.

    Raises `BadUsage` where the port is taken.
    """
    desk.put(what)
    told = {"server.port": port, "server.address": address, "server.headless": True}
    told["server.maxUploadSize"] = max(1, what.upload_bytes >> 20)
    for name, value in [*settings(), *told.items()]:
        config.set_option(name, value)
    app = _app(what, LOCAL | set(allowed_hosts) | {address.lower()}, login)
    with _bound(address, port) as listening:
        number = listening.getsockname()[1]
        config.set_option("server.port", number)
        url = f"http://{f'[{address}]' if ':' in address else address}:{number}"
        sys.stderr.write(f"TELLER is at {url}  (Ctrl+C ends it)\n")
        sys.stderr.flush()
        if not headless:
            threading.Timer(1.0, webbrowser.open, (url,)).start()
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", access_log=False, use_colors=False)
        )
        server.run(sockets=[listening])


def _app(what: desk.Desk, hosts: frozenset[str], login: Mapping[str, Any] | None) -> st.App:
    guard = Middleware(
        Guard, hosts=hosts, name_header=what.name_header, upload_bytes=what.upload_bytes
    )
    return st.App(
        HERE / "app.py",
        routes=[Mount("/teller", StaticFiles(directory=HERE / "components"))],
        middleware=[guard],
        secrets={"auth": dict(login)} if login else None,
    )


def settings() -> Iterator[tuple[str, Any]]:
    """Give the options of `pages.toml` by their full names."""
    said = tomllib.loads(files("teller.ui").joinpath("pages.toml").read_text(encoding="utf-8"))
    yield from _flat("", said)


def _flat(before: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(f"{before}{name}.", value)
        else:
            yield f"{before}{name}", value


def _bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address, port))
    except OSError as err:
        made.close()
        raise BadUsage(
            f"port {port} of {address} cannot be used ({err.strerror}); name another by --port"
        ) from err
    made.listen(128)
    return made
