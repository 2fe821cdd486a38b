"""Which nodes of a run go by which names, and which words of a sentence name one."""

import re
from functools import cached_property
from typing import Any, Final

import pyarrow.compute as pc

from teller.graph import ids
from teller.models.case import Case

Node = tuple[str, int]

# The column that a node goes by.
GOES_BY: Final = {
    "Rank": "rank", "Host": "name", "Device": "name", "ProcessGroup": "name", "Operator": "name",
    "Step": "step_index", "Request": "name",
}  # fmt: skip
_BEFORE: Final = (
    ("Rank", re.compile(r"(?i)\branks? (?:\d+, )*$")),
    ("Step", re.compile(r"(?i)\bsteps? (?:[\d,]+ (?:to|and|until) (?:step )?)?$")),
)
_FIELDS: Final = {"operator": "Operator", "group_name": "ProcessGroup", "request": "Request"}


class Names:
    """The names of one run."""

    def __init__(self, case: Case) -> None:
        """Take the run."""
        self.case = case
        self._operators: dict[str, int | None] = {}

    def named(self, before: str, field: str, value: Any) -> Node | None:
        """Give the node that a word of a sentence names; None for a word that names none.

        `before` is the sentence up to the word. A rank that is not there has id 0.
        """
        if isinstance(value, bool):
            return None
        column = field.rpartition(".")[2]
        if isinstance(value, int):
            for kind, words in _BEFORE:
                if words.search(before):
                    return kind, self.of(kind, value) or 0
            return None
        if not isinstance(value, str):
            return None
        if column in _FIELDS:
            return _FIELDS[column], self.of(_FIELDS[column], value) or 0
        for kind in ("Host", "Device"):
            if found := self.of(kind, value):
                return kind, found
        return None

    def of(self, kind: str, name: Any) -> int | None:
        """Give the node of that kind and name."""
        if kind == "Rank":
            row = self.case.ranks.get(name)
            return row["id"] if row else None
        if kind == "Step":
            return self._steps.get(name)
        if kind == "Operator":
            if name not in self._operators:
                self._operators[name] = self._operator(name)
            return self._operators[name]
        if kind == "Request":
            rows = self.case.rows(
                "MATCH (n:Request) WHERE n.run_id = $run AND n.name = $name RETURN n.id AS id",
                {"name": name},
            )
            return rows[0]["id"] if rows else None
        return self._few[kind].get(name)

    @cached_property
    def _steps(self) -> dict[int, int]:
        steps = self.case.steps
        if not steps.num_rows:
            return {}
        pairs = steps.select(["step_index", "id"]).sort_by([("id", "descending")])
        pairs = pairs.filter(pc.is_valid(pairs["step_index"]))
        return dict(zip(pairs["step_index"].to_pylist(), pairs["id"].to_pylist(), strict=True))

    @cached_property
    def _few(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for kind in ("Host", "Device", "ProcessGroup"):
            text = f"MATCH (n:{kind}) WHERE n.run_id = $run RETURN n.name AS name, n.id AS id"
            found[kind] = {r["name"]: r["id"] for r in self.case.rows(text, {})}
        return found

    def _operator(self, name: str) -> int | None:
        """Give the operator if this run used it: the node itself is of all runs."""
        known = ids.node_id("", "Operator", name)
        there = self.case.rows("MATCH (o:Operator {id: $id}) RETURN o.id AS id", {"id": known})
        used = there and self.case.rows(
            "MATCH (s:Span) WHERE s.run_id = $run AND s.operator = $name RETURN s.id AS id LIMIT 1",
            {"name": name},
        )
        return known if used else None
