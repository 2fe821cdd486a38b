"""The slice of a step on a terminal, and as JSON: a tree for each rank, and why spans are in."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import pyarrow as pa
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from teller.graph.schema import CHILD, LAUNCHED
from teller.ui import phrase
from teller.ui.text import word

Row = dict[str, Any]

_NAME: Final = 64  # characters of a name that are shown
_LINES: Final = 20
WORTH: Final = 0.05  # of its time: excess below that is not told of work on the way
_PLAIN: Final = frozenset(
    {"ancestor", "neighbour", "launcher", "root"}
)  # say no more than the tree
_SAID: Final = {
    "excess": "took too long", "late": "came late", "gap": "behind a gap",
    "count": "more or fewer calls than on other ranks", "waited": "waited for others",
    "waited_for": "waited for", "collective_peer": "came last",
    "behind_late_rank": "on the way of the last to come",
}  # fmt: skip
_IDS: Final = frozenset({"id", "src", "dst"})


class Sliced(Protocol):
    """The tables of a slice, as `teller.models.slices.Slice` has them."""

    @property
    def steps(self) -> pa.Table:
        """Give the steps asked for."""

    @property
    def spans(self) -> pa.Table:
        """Give the spans with their roles."""

    @property
    def edges(self) -> pa.Table:
        """Give the relations."""

    @property
    def collectives(self) -> pa.Table:
        """Give the arrivals."""

    @property
    def lines(self) -> pa.Table:
        """Give the log lines."""

    @property
    def counts(self) -> pa.Table:
        """Give the operators that ran more or less often."""


def blocks(found: Sliced) -> Iterator[RenderableType]:
    """Give what is printed of the slice of one step, top to bottom."""
    step = found.steps.to_pylist()[0]
    yield word(f"Slice of step {step['step_index']:,} on rank {step['rank']}", "bold")
    yield word(_size(step, found.spans.num_rows), "dim")
    below, tops = _tree(found)
    waits = {row["span_id"]: row for row in found.collectives.to_pylist()}
    for rank in sorted(tops, key=lambda r: (r != step["rank"], r)):
        tree = Tree(word(f"rank {rank}", "bold"))
        _grow(tree, tops[rank], below, waits)
        yield Text()
        yield tree
    yield from _counts(found.counts.to_pylist())
    yield from _lines(found.lines.to_pylist())


def _size(step: Row, kept: int) -> str:
    own = f"{phrase.duration(step['dur_ns'])} long; {kept:,} spans of this and other ranks"
    left = f", the {step['cut']:,} least odd left out" if step["cut"] else ""
    return f"{own} are kept{left}; the step has {step['span_count']:,}"


def _tree(found: Sliced) -> tuple[dict[int, list[Row]], dict[int, list[Row]]]:
    """Give the spans below each span, and the tops of each rank, by time."""
    edges = found.edges.select(["kind", "src", "dst"]).to_pylist()
    over = {e["dst"]: e["src"] for e in edges if e["kind"] in (CHILD.type, LAUNCHED.type)}
    below, tops = defaultdict[int, list[Row]](list), defaultdict[int, list[Row]](list)
    for row in found.spans.to_pylist():
        place = below[over[row["id"]]] if row["id"] in over else tops[row["rank"]]
        place.append(row)
    return below, tops


def _grow(tree: Tree, rows: Iterable[Row], below: dict[int, list[Row]], waits: Row) -> None:
    for row in rows:
        _grow(tree.add(_span(row, waits.get(row["id"]))), below[row["id"]], below, waits)


def _span(row: Row, met: Row | None) -> Text:
    name = row["name"] if len(row["name"]) <= _NAME else f"{row['name'][: _NAME - 1]}…"
    line = Text.assemble(
        word(name), word(f"  {row['layer']}, {phrase.duration(row['dur_ns'])}", "dim")
    )
    why = reasons(row, met)
    return line.append_text(word(f"  {', '.join(why)}" if why else "", "yellow"))


def reasons(row: Row, met: Row | None) -> list[str]:
    """Give why a span of a slice is in it, in words; nothing where the tree alone says it."""
    return [_reason(role, row, met) for role in row["roles"] if role not in _PLAIN]


def _reason(role: str, row: Row, met: Row | None) -> str:
    if role == "excess" and row["excess_ns"] > 0:
        return f"{phrase.duration(row['excess_ns'])} too long"
    if role == "late":
        return f"{phrase.duration(row['late_ns'])} late"
    if role == "gap":
        return f"behind a gap of {phrase.duration(row['gap_ns'])}"
    if role == "waited" and met:
        return f"waited {phrase.duration(met['wait_ns'])}"
    if role == "behind_late_rank" and row["excess_ns"] > WORTH * row["dur_ns"]:
        return f"{_SAID[role]}, {phrase.duration(row['excess_ns'])} too long"
    return _SAID[role]


def _counts(rows: list[Row]) -> Iterator[RenderableType]:
    if rows:
        yield Text()
        yield word("Calls, against the same step beside it", "bold")
    for row in rows:
        said = (
            f"{row['operator']}: {row['span_count']:,}, there {phrase.figures(row['peer_count'])}"
        )
        yield Padding(word(said), (0, 0, 0, 2))


def _lines(rows: list[Row]) -> Iterator[RenderableType]:
    if rows:
        yield Text()
        yield word(f"Lines written during it: {len(rows):,}", "bold")
    for row in rows[:_LINES]:
        who = "" if row["rank"] is None else f"rank {row['rank']}"
        about = ", ".join(x for x in (who, row["level"] or "") if x)
        yield Padding(Text.assemble(word(f"{about}: ", "dim"), word(row["text"])), (0, 0, 0, 2))
    if len(rows) > _LINES:
        yield word(f"  and {len(rows) - _LINES:,} more", "dim")


def to_json(found: Sliced) -> Row:
    """Give the slice as JSON holds it: ids are strings."""
    names = ("steps", "spans", "edges", "collectives", "lines", "counts")
    tables = {n: [_plain(row) for row in getattr(found, n).to_pylist()] for n in names}
    return {"schema": "teller.slice/1"} | tables


def _plain(row: Row) -> Row:
    return {
        k: str(v) if (k in _IDS or k.endswith("_id")) and v is not None else v
        for k, v in row.items()
    }
