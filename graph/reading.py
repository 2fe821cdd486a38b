"""What a query may be: one statement that reads the graph, and no file, setting or extension."""

import re
from collections.abc import Mapping
from typing import Final

from teller.errors import BadUsage, QueryRefused
from teller.graph import cypher

FIRST: Final = ("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN")
# Clauses that a read-only transaction of an engine lets through in the middle of a query.
_OUTSIDE: Final = re.compile(r"(?<![.:$\w])(LOAD\s+(?:CSV|WITH|FROM)|CALL\s+[\w.\s]*[(=])", re.I)


def check(text: str) -> None:
    """Refuse what is more than one statement, or reads or writes anything but the graph."""
    bare = cypher.bare(text)
    if ";" in bare.rstrip("; \t\r\n"):
        raise QueryRefused("one statement at a time: take the ';' out")
    first = re.match(r"\W*(\w*)", bare)
    word = first[1].upper() if first else ""
    if word not in FIRST:
        raise QueryRefused(
            f"a query only reads the graph: it begins with {', '.join(FIRST[:-1])} or {FIRST[-1]}"
            + (f", not with {word}" if word else "")
        )
    if found := _OUTSIDE.search(bare):
        clause = found[1].split()[0].upper()
        raise QueryRefused(f"a query only reads the graph: {clause} is not allowed in it")


def check_asked(text: str, given: Mapping[str, object]) -> None:
    """Refuse what `check` refuses, and a query whose parameters are not those that are given."""
    check(text)
    asked = cypher.parameters(text)
    if missing := asked - given.keys():  # an engine would take them for null
        raise BadUsage(f"the query needs {', '.join(f'${n}' for n in sorted(missing))}")
    if spare := given.keys() - asked:
        raise BadUsage(f"the query does not ask for {', '.join(f'${n}' for n in sorted(spare))}")
