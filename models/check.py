"""What is wrong with a rule before it is asked anything: columns, parameters, sentences, names.

A rule's queries are asked of an empty store, which tells the columns that they give and their
types. Flaws name the rule, and the line of its file where the text of the file is at hand.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter
from typing import Any, Final

import pyarrow as pa

from teller.errors import BadUsage, QueryRefused, UnknownName
from teller.graph.store import Store
from teller.models.case import PARAMETER
from teller.models.rule import Rule, Shown, parse
from teller.models.wording import say

Columns = Mapping[str, pa.DataType]

# What the runner adds to a candidate's row.
ADDED: Final[Columns] = {
    "host": pa.string(),
    "device": pa.string(),
    "rank_count": pa.int64(),
    "share": pa.float64(),
    "run": pa.int64(),
}
COMPARED: Final[Columns] = dict.fromkeys(
    ("usual_ns", "factor", "over_ns", "over_share", "excess_ns"), pa.float64()
)
EPISODE: Final[Columns] = dict.fromkeys(
    ("first_step", "last_step", "step_count", "level_ns", "excess_ns", "start_ns", "end_ns"),
    pa.int64(),
)
CULPRITS: Final = (
    "rank", "host", "device", "group_name", "src_host", "dst_host", "operator", "component",
    "request",
)  # fmt: skip
STEP_COLUMNS: Final = {"step_index", "excess_ns", "start_ns", "end_ns"}
_AT: Final = re.compile(r"\bline:? (\d+)")


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong with a rule; `line` is of its file, None where it is not known."""

    rule: str
    line: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Checked:
    """One file of a rule: its text, the rule where it could be read, and its flaws."""

    path: Path
    text: str
    rule: Rule | None
    flaws: tuple[Flaw, ...] = ()


def read(path: Path) -> Checked:
    """Read the rule in a file; one that cannot be read has that as its flaw."""
    text = path.read_bytes().decode("utf-8", "replace")
    try:
        return Checked(path, text, parse(path.name, text))
    except BadUsage as err:
        what = str(err).removeprefix(f"rule {path.name}: ")
        at = _AT.search(what)
        flaw = Flaw(path.stem, int(at[1]) if at else None, what)
        return Checked(path, text, None, (flaw,))


def check(one: Checked, store: Store, known: Collection[str]) -> Checked:
    """Check a rule that was read; `known` are the ids of all rules, `store` is empty."""
    if one.rule is None:
        return one
    return replace(one, flaws=(*one.flaws, *flaws(one.rule, store, known, one.text)))


def flaws(rule: Rule, store: Store, known: Collection[str], text: str = "") -> list[Flaw]:
    """Give what is wrong with a rule; `text` is that of its file, for the lines."""
    check = _Check(rule, store, text)
    check.names(known)
    row = check.row()
    if row is not None:
        check.sayings(row)
        for shown in rule.evidence:
            check.shown(shown, row)
        for one in rule.against:
            columns = check.ask("an against query", one.cypher, row)
            if columns is not None:
                check.sentence("an against sentence", one.text, {**row, **columns})
    return check.found


def words(template: str) -> set[str]:
    """Give the names that a sentence asks for."""
    return {name for _, name, _, _ in Formatter().parse(template) if name}


class _Check:
    """Checks one rule, and gathers its flaws."""

    def __init__(self, rule: Rule, store: Store, text: str) -> None:
        self.rule, self.store, self.text = rule, store, text
        self.found: list[Flaw] = []

    def names(self, known: Collection[str]) -> None:
        """Check what the rule names beside columns."""
        for other in sorted(set(self.rule.unless) - set(known)):
            self._flaw(f"unless names a rule that is not there: {other}", other)
        for column in self.rule.culprit:
            if column not in CULPRITS:
                self._flaw(f"culprit {column!r} names nobody; known: {', '.join(CULPRITS)}", column)
        if ("src_host" in self.rule.culprit) != ("dst_host" in self.rule.culprit):
            self._flaw("a link needs both src_host and dst_host in culprit", "culprit")

    def row(self) -> Columns | None:
        """Give the columns of a candidate's row; None where a query of it fails."""
        rule = self.rule
        row: Columns = {**ADDED, **{n: pa.float64() for n in rule.thresholds}}
        if rule.each == "episode":
            row = {**row, **EPISODE, "rank": pa.int64(), "episode_ns": pa.int64()}
        if rule.compare is not None:
            asked = self.ask("the compare query", rule.compare.cypher, row)
            wanted = {*rule.compare.keys, *rule.compare.load, "each_ns", "calls"}
            self._lacks("the compare query", asked, wanted, rule.compare.cypher)
            asked = None if asked is None else {**asked, **COMPARED}
        else:
            if rule.usual is not None:
                usual = self.ask("the usual query", rule.usual.cypher, row)
                if usual is None:
                    return None
                row = {**row, **{f"usual_{name}": kind for name, kind in usual.items()}}
            asked = self.ask("find", rule.find, row)
        if asked is None:
            return None
        return {**row, **asked, **(EPISODE if rule.episode else {})}

    def sayings(self, row: Columns) -> None:
        """Check the rule's own sentences, numbers, culprit and episode against its row."""
        rule = self.rule
        for name, template in (
            ("title", rule.title), ("text", rule.text), ("next_step", rule.next_step)
        ):  # fmt: skip
            self.sentence(name, template, row)
        for number, column in rule.numbers.items():
            if column not in row:
                self._flaw(f"number {number}: no column {column!r}", f"{number} =")
        for column in rule.culprit:
            if column not in row:
                self._flaw(f"culprit: no column {column!r}", "culprit")
        if rule.episode is not None:
            steps = self.ask("the episode query", rule.episode.cypher, row)
            self._lacks("the episode query", steps, STEP_COLUMNS, rule.episode.cypher)

    def shown(self, shown: Shown, row: Columns) -> None:
        """Check one evidence query and its sentence."""
        what = f"the {shown.role} query"
        columns = self.ask(what, shown.cypher, row)
        wanted = {"id", "input_id"} if shown.kind == "Span" else {"id"}
        self._lacks(what, columns, wanted, shown.cypher)
        if columns is not None:
            self.sentence(f"the {shown.role} sentence", shown.text, {**row, **columns})

    def ask(self, what: str, cypher: str, known: Columns) -> Columns | None:
        """Ask a query with a value for each parameter; give its columns, or None and a flaw."""
        wanted = set(PARAMETER.findall(cypher)) - {"run"}
        if lacking := sorted(wanted - set(known)):
            asked = f"${', $'.join(lacking)}"
            self._flaw(f"{what} asks for {asked}, which nothing gives", f"${lacking[0]}")
            return None
        values = {name: _sample(known[name]) for name in wanted}
        try:
            table = self.store.query(cypher.replace("$run", "1"), values)
        except (QueryRefused, UnknownName) as err:
            self._flaw(f"{what}: {err}", cypher, _AT.search(str(err)))
            return None
        return dict(zip(table.schema.names, table.schema.types, strict=True))

    def sentence(self, what: str, template: str, row: Columns) -> None:
        """Check that a sentence can be said with these columns."""
        try:
            if lacking := sorted(words(template) - set(row)):
                self._flaw(f"{what}: no column {', '.join(map(repr, lacking))}", lacking[0])
            else:
                say(template, {name: _sample(row[name]) for name in words(template)})
        except (ValueError, TypeError, AttributeError, LookupError) as err:
            self._flaw(f"{what} cannot be said: {err}", template)

    def _lacks(
        self, what: str, columns: Columns | None, wanted: Collection[str], where: str
    ) -> None:
        if columns is not None and (lacking := sorted(set(wanted) - set(columns))):
            self._flaw(f"{what} does not give {', '.join(lacking)}", where)

    def _flaw(self, what: str, where: str, inside: re.Match[str] | None = None) -> None:
        line = self._line(where)
        if line is not None and inside is not None:
            line += int(inside[1]) - 1
        self.found.append(Flaw(self.rule.id, line, what))

    def _line(self, where: str) -> int | None:
        """Give the line of the file on which a text begins; a name is sought as a column first."""
        for sought in (f"{{{where}", where):
            if where and (at := self.text.find(sought)) >= 0:
                return self.text.count("\n", 0, at) + 1
        return None


def _sample(kind: pa.DataType) -> Any:
    """Give a value of a type; a list has one element."""
    if pa.types.is_list(kind):
        return [_sample(kind.value_type)]
    if pa.types.is_string(kind):
        return "x"
    if pa.types.is_boolean(kind):
        return True
    return 1.0 if pa.types.is_floating(kind) else 1
