"""The types that a query's result columns must have by its text, for engines that do not tell.

Where a column holds values these say it better; this is for columns of nulls, and of no rows.
"""

import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from teller.graph import tokens
from teller.graph.schema import NODES, RELATIONS

COLUMNS: Final = {c.name: c.type for kind in (*NODES, *RELATIONS) for c in kind.columns}
_END: Final = re.compile(r"\bORDER\s+BY\b|\bSKIP\b|\bLIMIT\b|\bUNION\b|$", re.IGNORECASE)
_RETURN: Final = re.compile(r"\bRETURN\s+(?:DISTINCT\s+)?", re.IGNORECASE)
_NAMED: Final = re.compile(r"(.*?)\s+AS\s+`?(\w+)`?\s*", re.IGNORECASE | re.DOTALL)
_CALL: Final = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
_PROPERTY: Final = re.compile(r"\b[A-Za-z_]\w*\.(\w+)")
_COUNTS: Final = ("count", "size", "length")
_MEANS: Final = ("avg", "percentilecont", "stdev", "tofloat")
_KEEPS: Final = ("sum", "min", "max", "coalesce", "abs", "percentiledisc")


def of_columns(text: str) -> dict[str, pa.DataType]:
    """Give the types of result columns, by name, as far as the text tells them."""
    bare = tokens.bare(text)
    starts = [found.end() for found in _RETURN.finditer(bare)]
    if not starts:
        return {}
    rest = bare[starts[-1] :]
    end = _END.search(rest)
    found = {}
    for item in _items(rest[: end.start()] if end else rest):
        named = _NAMED.fullmatch(item)
        said, name = (named[1], named[2]) if named else (item, item.strip())
        kind = _type(said.strip())
        if kind is not None:
            found[name] = kind
    return found


def _items(text: str) -> Iterator[str]:
    """Split at the commas that are in no bracket."""
    depth = start = 0
    for found in re.finditer(r"[][(){},]", text):
        sign = found[0]
        if sign == "," and depth == 0:
            yield text[start : found.start()]
            start = found.end()
        depth += (sign in "([{") - (sign in ")]}")
    yield text[start:]


def _type(said: str) -> pa.DataType | None:
    call = _CALL.fullmatch(said)
    if call is None:
        return _of_sum(said)
    name, inside = call[1].lower(), call[2]
    if name in _COUNTS:
        return pa.int64()
    if name in _MEANS:
        return pa.float64()
    if name in _KEEPS:
        first = next(_items(inside)).strip()
        return _type(re.sub(r"(?i)^distinct\s+", "", first))
    if name == "collect":
        kind = _type(re.sub(r"(?i)^distinct\s+", "", inside.strip()))
        return None if kind is None else pa.list_(kind)
    return None


def _of_sum(said: str) -> pa.DataType | None:
    """Give the type of a property, or of a sum of numbers."""
    kinds = {COLUMNS.get(name) for name in _PROPERTY.findall(said)}
    rest = _PROPERTY.sub("", said)
    if len(kinds) == 1 and not rest.strip():
        return kinds.pop()
    if (
        not kinds
        or not kinds <= {pa.int64(), pa.float64()}
        or not re.fullmatch(r"[\s\d.+*-]*", rest)
    ):
        return None
    return pa.float64() if pa.float64() in kinds or "." in rest else pa.int64()
