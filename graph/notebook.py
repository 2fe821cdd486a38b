"""The graph for a notebook: of a workspace or a server, and by py2neo for notebooks that use it."""

import os
from pathlib import Path
from typing import Any, Final

from teller.errors import BadUsage
from teller.graph.keep import rest
from teller.graph.neo4j_address import PASSWORD, URI, USER, address, is_address
from teller.graph.project import project
from teller.graph.store import Store, StoreUnreadable
from teller.graph.workspace import Workspace, default_folder

EMBEDDED: Final = "embedded"
_LACKS: Final = "{0} is not installed; pip install 'teller-rca[{0}]'"


def open_graph(store: str = EMBEDDED, workspace: Path | None = None) -> Store:
    """Give the graph to ask, as `--store` and `--workspace` name it; close it at the end.

    A server must be migrated. What `query` gives is an Arrow table. `BadUsage` and
    `StoreUnreadable` say what is wrong with the place.
    """
    if store == EMBEDDED:
        return Workspace(default_folder(workspace), project=project, rest=rest).reader()
    place = address(store)
    try:
        from teller.graph.neo4j import Neo4jStore
    except ModuleNotFoundError as err:
        raise BadUsage(_LACKS.format("neo4j")) from err
    return Neo4jStore(place)


def open_py2neo(store: str = "") -> Any:
    """Give a `py2neo.Graph` on the server, by default that of TELLER_NEO4J_URI.

    py2neo is at its end of life since 2021: it speaks Bolt up to 4.3 and its helpers for indexes
    and constraints fail on Neo4j 5. It is here for notebooks that have it; new ones take
    `open_graph`. It may write: nothing is checked.
    """
    store = store or os.environ.get(URI, "")
    if not is_address(store):
        raise BadUsage(f"set {URI} to the address of a server, as neo4j://HOST:7687")
    try:
        import py2neo
    except ModuleNotFoundError as err:
        raise BadUsage(f"{_LACKS.format('py2neo')}, or take open_graph instead") from err
    at = address(store)
    try:
        return py2neo.Graph(at.uri, auth=(at.user, at.password), name=at.database)
    except py2neo.errors.ConnectionUnavailable as err:
        raise StoreUnreadable(
            f"{at.uri} does not answer, or does not let user {at.user} in; start the server, or "
            f"set {USER} and {PASSWORD}"
        ) from err
