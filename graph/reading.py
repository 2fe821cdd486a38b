"""What a query may be: one statement that reads the graph, and no file, setting or extension.

A word is taken by its place. Behind something complete (a name, a number, a closing bracket) only
words of a reading query may come: that is the list that lets through, and whatever an engine learns
to do later is not on it. Where a name is due any word is a name, so that `n.set`, `(:Load)` and
`AS copy` are as good as others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from teller.errors import BadUsage, QueryRefused
from teller.graph import tokens
from teller.graph.reading_words import (
    ENDING,
    FAMILIES,
    FIRST,
    INNER,
    JOINING,
    LEADING,
    MIDWAY,
    READERS,
    REPEATING,
    WRITING,
)
from teller.graph.tokens import Token, Tokens

_CLOSING: Final = {")": "(", "]": "[", "}": "{"}
SHORT: Final = 4_000  # characters of a text that is kept with its words
DEEPEST: Final = 60  # brackets in brackets; an engine's own parser falls over at some thousands


@dataclass(slots=True)
class Clause:
    """A clause: its word, its place among the words, and in which bracket it stands."""

    word: str
    at: int
    bracket: int  # place of the bracket that it stands in, -1 at the top


@dataclass(frozen=True, slots=True)
class Question:
    """A query that was found to read only: its words, its clauses, and the text to send."""

    tokens: Tokens
    clauses: tuple[Clause, ...]
    closing: Mapping[int, int]  # place of an opening bracket -> of the closing one
    text: str
    explained: bool  # the plan is asked for, not the answer


def check_asked(text: str, given: Mapping[str, object]) -> Question:
    """Refuse what is not one reading statement, or whose parameters are not those given."""
    question = check(text)
    wanted = tokens.asked(question.tokens)
    if missing := wanted - given.keys():  # an engine would take them for null
        raise BadUsage(f"the query needs {', '.join(f'${n}' for n in sorted(missing))}")
    if spare := given.keys() - wanted:
        raise BadUsage(f"the query does not ask for {', '.join(f'${n}' for n in sorted(spare))}")
    return question


def check(text: str) -> Question:
    """Refuse what is more than one statement, or reads or writes anything but the graph."""
    return _again(text) if len(text) <= SHORT else _read(text)


@lru_cache(maxsize=128)  # what the project itself asks, it asks often
def _again(text: str) -> Question:
    return _read(text)


def _read(text: str) -> Question:
    found = tokens.read(text)
    while found and found[-1].text == ";":
        found = found[:-1]
    for token in found:
        if token.text == ";":
            raise QueryRefused("one statement at a time: take the ';' out")
    explained = bool(found) and found[0].word == "EXPLAIN"
    reader = _Reader(text, found, 1 if explained else 0)
    reader.read()
    return Question(
        found, tuple(reader.clauses), reader.closing, tokens.clean(text, found), explained
    )


@dataclass(slots=True)
class _Reader:
    """One way through the words, in their order."""

    text: str
    tokens: Tokens
    at: int
    complete: bool = False  # the word before may be the end of something
    clauses: list[Clause] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    inner: set[int] = field(default_factory=set)  # brackets that hold a query of their own
    calls: set[int] = field(default_factory=set)  # those of them that belong to a CALL
    closing: dict[int, int] = field(default_factory=dict)

    def read(self) -> None:
        self._clause()
        while self.at < len(self.tokens):
            self._next(self.tokens[self.at])
        if self.open:
            opened = self.tokens[self.open[-1]]
            raise QueryRefused(f"{opened.text} at {self._place(opened)} is never closed")

    def _next(self, token: Token) -> None:
        if token.kind == "word":
            self._word(token)
        elif token.kind == "sign":
            self._sign(token)
        else:
            if token.kind == "name" and self._peek(1) == "(" and not self._is_member():
                raise QueryRefused(f"a function's name stands without back-ticks: {token.called}")
            self._check_function(token)
            self._go(complete=True)

    def _word(self, token: Token) -> None:
        word = token.word
        if self.complete:
            self._join(token)
            return
        is_name = self._is_member() or self._is_key()
        if word == "WITH" and not is_name and self._before() not in ("STARTS", "ENDS"):
            raise self._refusal(token)
        could_begin = self._before() in REPEATING or self._peek(1) == "("
        if word in MIDWAY and not is_name and could_begin:
            raise self._refusal(token)
        self._check_function(token)
        self._go(complete=is_name or word not in LEADING or self._peek(1) == "(")

    def _join(self, token: Token) -> None:
        """Take a word behind something complete."""
        if token.word not in JOINING:
            raise self._refusal(token)
        if token.word in FIRST:
            self._begin(token)
        elif token.word == "UNION":
            self._union()
        else:
            self._go(complete=token.word in ENDING)

    def _sign(self, token: Token) -> None:
        sign = token.text
        if sign in "([{":
            self._open(sign)
        elif sign in _CLOSING:
            self._close(token)
        elif sign == "*" and not self.complete:  # all columns, any length
            self._go(complete=True)
        else:
            self._go(complete=False)

    def _open(self, sign: str) -> None:
        if len(self.open) >= DEEPEST:
            raise QueryRefused(f"brackets stand in each other more than {DEEPEST} deep")
        here, before = self.at, self._before()
        is_query = sign == "{" and before in INNER and not self._is_member(here - 1)
        self.open.append(here)
        self._go(complete=False)
        if is_query:
            self.inner.add(here)
            self._clause(pattern=True)
        elif sign == "{":
            self._check_map()

    def _close(self, token: Token) -> None:
        if not self.open or self.tokens[self.open[-1]].text != _CLOSING[token.text]:
            raise QueryRefused(f"{token.text} at {self._place(token)} closes nothing")
        opened = self.open.pop()
        self.closing[opened] = self.at
        self._go(complete=True)
        if opened in self.calls and self._peek(0) == "IN":
            raise QueryRefused("a query only reads the graph: CALL … IN TRANSACTIONS writes")

    def _clause(self, *, pattern: bool = False) -> None:
        """Take the word that begins a query; one in brackets may be a bare pattern."""
        word = self._peek(0)
        if word in FIRST:
            self._begin(self.tokens[self.at])
        elif not (pattern and (word == "(" or self._peek(1) == "=")):
            raise QueryRefused(
                "a query only reads the graph: it begins with MATCH, OPTIONAL, UNWIND, WITH or "
                "RETURN" + (f", not with {word}" if word else "")
            )

    def _begin(self, token: Token) -> None:
        self.clauses.append(Clause(token.word, self.at, self.open[-1] if self.open else -1))
        self._go(complete=False)
        if token.word == "OPTIONAL":
            if self._peek(0) not in ("MATCH", "CALL"):
                raise QueryRefused("OPTIONAL goes before MATCH")
            self._begin(self.tokens[self.at])
        elif token.word == "CALL":
            self._call()

    def _call(self) -> None:
        """Take what is called: a query in brackets, or a procedure that is on the list."""
        if self._peek(0) == "(":  # what the query in brackets may use
            opened = self.at
            while self._peek(0) not in (")", ""):
                self.at += 1
            self.closing[opened] = self.at
            self.at += 1
        if self._peek(0) == "{":
            self.open.append(self.at)
            self.inner.add(self.at)
            self.calls.add(self.at)
            self._go(complete=False)
            self._clause()
            return
        parts: list[str] = []
        while self.at < len(self.tokens) and self.tokens[self.at].kind in ("word", "name"):
            parts.append(self.tokens[self.at].called)
            self.at += 1
            if self._peek(0) != ".":
                break
            self.at += 1
        name = ".".join(parts)
        if name.lower() not in READERS or self._peek(0) != "(":
            raise QueryRefused(
                f"a query only reads the graph: CALL {name or self._peek(0)} is not allowed in it"
            )

    def _union(self) -> None:
        self.clauses.append(Clause("UNION", self.at, self.open[-1] if self.open else -1))
        self._go(complete=False)
        if self._peek(0) in ("ALL", "DISTINCT"):
            self._go(complete=False)
        self._clause()

    def _check_map(self) -> None:
        """Refuse `{` followed by what neither a map nor a count of repetitions begins with."""
        is_word = self.at < len(self.tokens) and self.tokens[self.at].kind == "word"
        if is_word and self._peek(1) not in (":", ",", "}"):
            raise self._refusal(self.tokens[self.at])

    def _check_function(self, token: Token) -> None:
        """Refuse the functions that others have added to a server."""
        if self._peek(1) != "(" or self._before() != ".":
            return
        first = self.at
        while first >= 2 and self.tokens[first - 1].text == ".":
            first -= 2
        if self.tokens[first].called.lower() not in FAMILIES:
            said = "".join(t.text for t in self.tokens[first : self.at + 1])
            raise QueryRefused(f"only Cypher's own functions are allowed in a query, not {said}")

    def _is_member(self, at: int | None = None) -> bool:
        """Tell whether a word is a property, a label, a type or an alias: any word may be."""
        here = self.at if at is None else at
        before = _shown(self.tokens[here - 1]) if here else ""
        in_map = bool(self.open) and self.tokens[self.open[-1]].text == "{"
        return before in (".", "AS") or (before == ":" and not in_map)

    def _is_key(self) -> bool:
        return self._peek(1) == ":" and self._before() in ("{", ",")

    def _before(self) -> str:
        return _shown(self.tokens[self.at - 1]) if self.at else ""

    def _peek(self, ahead: int) -> str:
        place = self.at + ahead
        return _shown(self.tokens[place]) if place < len(self.tokens) else ""

    def _go(self, *, complete: bool) -> None:
        self.at += 1
        self.complete = complete

    def _place(self, token: Token) -> str:
        return tokens.place(self.text, token.start)

    def _refusal(self, token: Token) -> QueryRefused:
        where = self._place(token)
        if token.word in WRITING:
            return QueryRefused(
                f"a query only reads the graph: {token.word} is not allowed in it ({where}); "
                "a name like that stands in back-ticks"
            )
        return QueryRefused(f"{token.text} at {where} is no word that a query goes on with")


def _shown(token: Token) -> str:
    """Give a bare word in capitals, else the text."""
    return token.word or token.text
