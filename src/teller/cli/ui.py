"""`teller ui`: the pages in a browser."""

import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from teller.cli import options
from teller.errors import BadUsage

if TYPE_CHECKING:
    from teller.ui.desk import Place

_MIB = 1 << 20
_RUN = "from teller.cli import run; run()"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        short_help="Open the pages: incidents, steps, communication, Cypher.",
        epilog="Example: teller ui --workspace .teller-demo",
    )(ui)


def ui(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0: any free port.")
    ] = 8501,
    address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="On which address; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    headless: Annotated[bool, typer.Option("--headless", help="Open no browser.")] = False,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR|URI", show_default=False,
            help="Another workspace or server to choose on the pages; give it again for more.",
        ),
    ] = None,
    allow_notes: Annotated[
        bool,
        typer.Option(
            "--allow-notes", help="Visitors may acknowledge and resolve incidents, with a note."
        ),
    ] = False,
    allow_upload: Annotated[
        int,
        typer.Option(
            metavar="MIB", min=0, max=4096, show_default=False,
            help="Visitors may send a run folder of that size; 0: none.",
        ),
    ] = 0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", show_default=False,
            help="A name under which a proxy asks; '*' for any.",
        ),
    ] = None,
    login: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, show_default=False,
            help="TOML with [auth], for OpenID Connect; then pages need a login.",
        ),
    ] = None,
    name_header: Annotated[
        str,
        typer.Option(
            metavar="HEADER", show_default=False,
            help="In which a proxy says who asks; requests without it are refused.",
        ),
    ] = "",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
) -> int:  # fmt: skip
    """Show incidents, steps, communication, requests and queries as pages in a browser.

    The pages read, and change nothing unless --allow-notes or --allow-upload says so. They need
    the extra `ui`, and no network.
    """
    try:
        from teller.ui import desk, serve
    except ModuleNotFoundError as err:
        raise BadUsage(f"{err.name} is not installed; pip install 'teller-rca[ui]'") from err
    from teller.graph.guard import GUARD
    from teller.models.slices import slice_of

    places = (_place(workspace, store), *(_other(named, workspace) for named in also or ()))
    names = [place.name for place in places]
    if len(set(names)) < len(names):
        raise BadUsage("two of the stores are called the same; give other folders")
    what = desk.Desk(
        places, slice_of, may_note=allow_notes, upload_bytes=allow_upload * _MIB,
        ingest=_command, needs_login=login is not None, name_header=name_header,
    )  # fmt: skip
    GUARD.warm()
    serve.serve(
        what, port=port, address=address, headless=headless, allowed_hosts=allow_host or (),
        login=_login(login),
    )  # fmt: skip
    return 0


def _other(named: str, workspace: Path | None) -> "Place":
    if "://" in named:
        return _place(workspace, named)
    if not Path(named).is_dir():
        raise BadUsage(f"--also {named}: no such folder, and no address of a server")
    return _place(Path(named), "embedded")


def _place(workspace: Path | None, store: str) -> "Place":
    from teller.ui.desk import Place

    first = options.workspace_at(workspace, store)  # says early what is wrong with it
    name = options.name_of(first) or first.folder.name or str(first.folder)
    return Place(name, lambda: options.workspace_at(workspace, store), options.name_of(first))


def _login(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise BadUsage(f"--login {file}: cannot be read ({err})") from err
    table = said.get("auth")
    if not isinstance(table, dict) or not {"redirect_uri", "cookie_secret"} <= table.keys():
        raise BadUsage(f"--login {file}: it needs [auth] with redirect_uri and cookie_secret")
    if find_spec("authlib") is None:  # Streamlit needs it for a login
        raise BadUsage("--login needs Authlib; pip install 'teller-rca[ui]'")
    return table


def _command(place: "Place", folder: Path, deployment: str) -> list[str]:
    """Give the command that reads and judges a folder that a visitor sent."""
    where = ["--workspace", str(place.workspace.folder)]
    where += ["--store", place.note] if place.note else []
    named = ["--deployment", deployment] if deployment else []
    return [
        sys.executable,
        "-c",
        _RUN,
        "diagnose",
        str(folder),
        *where,
        *named,
        "--fail-on",
        "critical",
    ]
