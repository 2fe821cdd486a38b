"""The flags that mean the same in every command, and what they ask for."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller.errors import BadUsage, UnknownName

if TYPE_CHECKING:
    from teller.graph.archive import RunEntry
    from teller.graph.shared import SharedWorkspace
    from teller.graph.workspace import Workspace
    from teller.models.explain.rephrase import Endpoint
    from teller.models.listening import Ask

Severity = Literal["critical", "high", "medium", "low", "info"]

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", exists=True, help="Files and folders; .gz is fine."),
]
WorkspaceDir = Annotated[
    Path | None,
    typer.Option(
        "--workspace", metavar="DIR", file_okay=False, show_default=False,
        help="Where runs are kept; else TELLER_WORKSPACE, else your data folder.",
    ),
]  # fmt: skip
StoreUri = Annotated[
    str,
    typer.Option(
        "--store", metavar="URI",
        help="The graph: 'embedded', or a server as neo4j://HOST:PORT/DATABASE, whose user and "
        "password are in TELLER_NEO4J_USER and TELLER_NEO4J_PASSWORD.",
    ),
]  # fmt: skip
RunName = Annotated[
    str,
    typer.Option(
        "--run", metavar="ID|NAME", show_default=False, help="A stored run; else the latest."
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes, only the result.")
]
RankRegex = Annotated[
    str,
    typer.Option(
        metavar="REGEX", show_default=False,
        help=r"Finds the rank in a path, as in 'worker(?P<rank>\d+)'; it wins over all else.",
    ),
]  # fmt: skip
HostRegex = Annotated[
    str,
    typer.Option(
        metavar="REGEX", show_default=False,
        help="Finds the host in a path, as in '(?P<host>[^/]+)/rank'; it wins over all else.",
    ),
]  # fmt: skip
Deployment = Annotated[
    str,
    typer.Option(metavar="NAME", show_default=False, help="The service that was recorded."),
]
Baseline = Annotated[
    str,
    typer.Option(metavar="PATH|RUN", show_default=False, help="A healthy run to compare with."),
]
RulesDir = Annotated[
    Path | None,
    typer.Option(
        "--rules", metavar="DIR", exists=True, file_okay=False, show_default=False,
        help="A folder with more rules.",
    ),
]  # fmt: skip
FailOn = Annotated[
    Severity,
    typer.Option("--fail-on", help="The least severity of a fault that makes the exit code 1."),
]
Slo = Annotated[
    str,
    typer.Option(
        "--slo", metavar="NAME=TIME,…", show_default=False,
        help="Targets of requests: ttft=500ms,itl=50ms,e2e=10s; else [slo] of the workspace's "
        "settings.toml.",
    ),
]  # fmt: skip
Scheduler = Annotated[
    str,
    typer.Option(
        "--scheduler", metavar="WHERE",
        help="Where files are read: threads, processes, here (one after another), or the workers "
        "of a Dask scheduler, tcp://HOST:8786.",
    ),
]  # fmt: skip
Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", dir_okay=False, show_default=False,
        help="Write here instead of to stdout.",
    ),
]  # fmt: skip

Model = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", exists=True, file_okay=False, show_default=False,
        help="Ask this model, one of teller train, in place of the one that is shipped.",
    ),
]  # fmt: skip
NoModel = Annotated[bool, typer.Option("--no-model", help="Rules and numbers alone.")]
FalseAlarms = Annotated[
    float,
    typer.Option(
        min=0.001, max=1000, metavar="N",
        help="How many of 1,000 clean steps the model may call abnormal.",
    ),
]  # fmt: skip
EncodeText = Annotated[
    bool,
    typer.Option(
        "--encode-text",
        help="Also make vectors of names and log lines that the model does not know, and keep "
        "them; needs the extra 'learn'.",
    ),
]

Rephrase = Annotated[
    str,
    typer.Option(
        metavar="URL", show_default=False,
        help="Ask this OpenAI-compatible endpoint for other words for explanations; it is sent "
        "their text alone, and what changes a figure or a name is dropped. Its key is in "
        "TELLER_REPHRASE_KEY.",
    ),
]  # fmt: skip
RephraseModel = Annotated[
    str,
    typer.Option(metavar="NAME", show_default=False, help="The model to ask there."),
]


def workspace_at(folder: Path | None, store: str, *, write: bool = False) -> "Workspace":
    """Give the workspace that the flags name; with `write` this process is its only writer."""
    from teller.graph.keep import rest
    from teller.graph.project import project
    from teller.graph.workspace import Workspace, default_folder

    if store == "embedded":
        return Workspace(default_folder(folder), write=write, project=project, rest=rest)
    return shared_at(folder, store, write=write)


def shared_at(folder: Path | None, store: str, *, write: bool = False) -> "SharedWorkspace":
    """Give the workspace whose graph is on a server."""
    from teller.graph.neo4j_address import SCHEMES, address, is_address

    server = f"{SCHEMES[0]}://HOST:7687"
    if store == "embedded":
        raise BadUsage(f"this is about a server: name it, as in --store {server}")
    if not is_address(store):
        raise BadUsage(
            f"--store {store.partition(':')[0]}: no such store; leave it out, give --store "
            f"embedded and choose the place by --workspace, or name a server: {server}"
        )
    try:
        from teller.graph.shared import SharedWorkspace
    except ModuleNotFoundError as err:
        raise BadUsage(
            f"--store {SCHEMES[0]}: its driver is not installed; pip install 'teller-rca[neo4j]'"
        ) from err
    from teller.graph.keep import rest
    from teller.graph.project import project
    from teller.graph.workspace import default_folder

    place = address(store)
    return SharedWorkspace(default_folder(folder), place, write=write, project=project, rest=rest)


def name_of(place: "Workspace") -> str:
    """Give the name of the server with a workspace's graph, without a password; else ""."""
    address = getattr(place, "address", None)
    return f"{address.uri}/{address.database}" if address else ""


def run_named(workspace: "Workspace", name: str) -> "RunEntry":
    """Give the stored run of that id or name, the latest of several; the latest of all for ''."""
    entries = workspace.entries()
    if not entries:
        raise BadUsage("the workspace holds no run yet; teller ingest PATH puts one in")
    if not name:
        return entries[-1]
    for entry in reversed(entries):
        if name in (str(entry.run_id), entry.name):
            return entry
    raise UnknownName("run", name, {entry.name for entry in entries})


def asked(
    model: Path | None, no_model: bool, per_1000: float, words: Path | None = None
) -> "Ask | None":
    """Give what the user wants of the model; None leaves it out."""
    from teller.models.listening import SHIPPED, Ask

    if no_model:
        return None
    return Ask(model or SHIPPED, per_1000, words)


def endpoint(url: str, model: str) -> "Endpoint | None":
    """Give the endpoint that rephrases; None where the user names none."""
    if not url:
        if model:
            raise BadUsage("--rephrase-model NAME is of --rephrase URL: give both")
        return None
    if not model:
        raise BadUsage("--rephrase URL: name its model by --rephrase-model")
    from teller.models.explain.rephrase import KEY, Endpoint

    return Endpoint(url, model, os.environ.get(KEY, ""))
