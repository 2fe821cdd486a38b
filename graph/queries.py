"""Questions with a name: portable Cypher in `queries/*.cypher`, answered by any store."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import pyarrow as pa

from teller.errors import BadUsage, UnknownName
from teller.graph.store import Store

_HEADER: Final = re.compile(
    r"// (?P<purpose>[^\n]+)\n"
    r"// parameters:(?P<parameters>[^\n]*)\n"
    r"// columns: (?P<columns>[^\n]+)\n"
)


@dataclass(frozen=True, slots=True)
class Query:
    """A question: what it is for, what it asks for, and the columns that it gives, in order."""

    name: str
    purpose: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    text: str


@cache
def names() -> tuple[str, ...]:
    """Give the names of all queries, sorted."""
    found = (path.name for path in files("teller.graph").joinpath("queries").iterdir())
    return tuple(sorted(n.removesuffix(".cypher") for n in found if n.endswith(".cypher")))


@cache
def get(name: str) -> Query:
    """Give the query of that name."""
    if name not in names():
        raise UnknownName("query", name, names())
    path = files("teller.graph").joinpath("queries", f"{name}.cypher")
    text = path.read_text(encoding="utf-8")
    head = _HEADER.match(text)
    if head is None:
        raise BadUsage(f"{name}.cypher: starts with its purpose, `parameters:` and `columns:`")
    parameters, columns = (_words(head[part]) for part in ("parameters", "columns"))
    return Query(name, head["purpose"], parameters, columns, text)


def text(name: str) -> str:
    """Give the Cypher of the query."""
    return get(name).text


def run(store: Store, name: str, **params: object) -> pa.Table:
    """Give the answer of the store to the query of that name."""
    query = get(name)
    if set(params) != set(query.parameters):
        wanted, given = (", ".join(sorted(n)) or "none" for n in (query.parameters, params))
        raise BadUsage(f"query {name} takes {wanted}; given: {given}")
    return store.query(query.text, params)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
