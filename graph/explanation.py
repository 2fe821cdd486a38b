"""An explanation as data: sentences that each say which nodes and values of the graph they rest on.

`models/explain` writes and checks them; every surface shows them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Part = Literal[
    "verdict", "culprit", "mechanism", "path", "cost", "for", "against", "not_checked", "next"
]
PARTS: Final[tuple[Part, ...]] = (
    "verdict", "culprit", "mechanism", "path", "cost", "for", "against", "not_checked", "next",
)  # fmt: skip
BEFORE: Final = "BEFORE"  # the one edge that is no relation: src had begun when dst began


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value is found again.

    `kind` is a label (`id` is the node), a relation type (`id` leads `to`), or `rule`: then `part`
    is `RULE.row`, `RULE.evidence.N` or `RULE.against.N`, and `id` the finding or the evidence.
    """

    kind: str
    id: int
    column: str
    to: int | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """What stands in a sentence and is no mere word: a value, or the name of a node.

    `text` begins at character `at`; `unit` is that of `value`: ns, share, ratio, bytes/s or "".
    `form` is how the value is printed. `names` is the node that is named, kind and id.
    """

    text: str
    at: int
    value: Any
    form: str
    source: Source
    names: tuple[str, int] | None = None

    @property
    def unit(self) -> str:
        """Give the unit of the value."""
        return _UNITS.get(self.form, "")


_UNITS: Final = {
    "ns": "ns", "us": "ns", "ms": "ns", "s": "ns", "time": "ns", "pct": "share", "times": "ratio",
    "rate": "bytes/s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation of the graph between two nodes that a sentence claims; or `BEFORE`, of time."""

    type: str
    src_kind: str
    src: int
    dst_kind: str
    dst: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. `words` names the template whose words it has; `ids` are (kind, id)."""

    part: Part
    text: str
    words: str
    facts: tuple[Fact, ...] = ()
    ids: tuple[tuple[str, int], ...] = ()
    edges: tuple[Edge, ...] = ()
    rephrased: bool = False

    def to_json(self) -> dict[str, Any]:
        """Give it as the envelope holds it: ids are strings."""
        return {
            "part": self.part, "text": self.text, "words": self.words,
            "rephrased": self.rephrased,
            "ids": [{"kind": kind, "id": str(node)} for kind, node in self.ids],
            "numbers": [_fact(f) for f in self.facts if f.names is None],
            "names": [_fact(f) for f in self.facts if f.names is not None],
            "edges": [
                {"type": e.type, "src": {"kind": e.src_kind, "id": str(e.src)},
                 "dst": {"kind": e.dst_kind, "id": str(e.dst)}}
                for e in self.edges
            ],
        }  # fmt: skip

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "Sentence":
        """Read back what `to_json` gave."""
        facts = sorted(
            (_as_fact(f) for f in (*said["numbers"], *said["names"])), key=lambda f: f.at
        )
        return cls(
            said["part"], said["text"], said["words"], tuple(facts),
            tuple((i["kind"], int(i["id"])) for i in said["ids"]),
            tuple(
                Edge(e["type"], e["src"]["kind"], int(e["src"]["id"]), e["dst"]["kind"],
                     int(e["dst"]["id"]))
                for e in said["edges"]
            ),
            said["rephrased"],
        )  # fmt: skip


def _fact(fact: Fact) -> dict[str, Any]:
    source = fact.source
    where: dict[str, Any] = {"kind": source.kind, "id": str(source.id), "column": source.column}
    where |= {"to": str(source.to)} if source.to is not None else {}
    where |= {"part": source.part} if source.part else {}
    said = {
        "text": fact.text, "at": fact.at, "value": fact.value, "unit": fact.unit,
        "form": fact.form, "where": where,
    }  # fmt: skip
    if fact.names is not None:
        said |= {"kind": fact.names[0], "id": str(fact.names[1])}
    return said


def _as_fact(said: Mapping[str, Any]) -> Fact:
    where = said["where"]
    source = Source(
        where["kind"], int(where["id"]), where["column"],
        int(where["to"]) if "to" in where else None, where.get("part", ""),
    )  # fmt: skip
    names = (said["kind"], int(said["id"])) if "kind" in said else None
    return Fact(said["text"], said["at"], said["value"], said["form"], source, names)
