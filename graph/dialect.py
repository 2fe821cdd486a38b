"""What the embedded engine says otherwise than a server, and how to write it for it.

What it would answer otherwise without a word is refused before it is sent. What it cannot do it
refuses by itself; `explained` puts the way to write it before its own words.
"""

from collections.abc import Iterator
from typing import Final

from teller.errors import QueryRefused, TellerError
from teller.graph import tokens, uniqueness
from teller.graph.dialect_words import OTHERWISE, UNKNOWN
from teller.graph.patterns import Patterns
from teller.graph.reading import Question
from teller.graph.reading_words import FIRST, JOINING, LEADING
from teller.graph.tokens import Token

_LISTS: Final = frozenset({"collect", "nodes", "rels", "relationships", "range", "split", "keys"})
_COUNTED: Final = (
    "lists count from 1 on this engine and from 0 on a server: what both take alike is a part from "
    "the start, as in l[0..1]; here list_extract(l, 1) gives the first"
)
_SHORTEST: Final = frozenset({"shortestpath", "allshortestpaths"})
_KEYWORDS: Final = JOINING | LEADING | frozenset(FIRST)


def adapted(question: Question, rows: int) -> str:
    """Give the text for the embedded engine, which is asked for one row more than `rows` (0: all).

    Raises `QueryRefused` for what it would answer otherwise than a server.
    """
    for at, otherwise in _silent(question):
        where = tokens.place(question.text, question.tokens[at].start)
        raise QueryRefused(f"{otherwise} ({where})")
    if said := uniqueness.twice(question):
        raise QueryRefused(said)
    return _written(question, rows)


def explained(question: Question, err: TellerError) -> TellerError:
    """Give the engine's refusal with what to write in the place of what it does not know."""
    if not isinstance(err, QueryRefused):
        return err
    if "Order by NODE" in str(err):
        return QueryRefused(
            f"an alias that is a variable too stands for the node: take another ({err})"
        )
    said = next(_unknown(question, str(err).lower()), None)
    return err if said is None else QueryRefused(f"{said} ({err})")


def _silent(question: Question) -> Iterator[tuple[int, str]]:
    """Give the places of what the engine would answer otherwise, and what to write."""
    for at, token in enumerate(question.tokens):
        name = token.text.lower()
        if _is_call(question, at) and name in OTHERWISE:
            yield at, OTHERWISE[name]
        elif _is_call(question, at) and name in _SHORTEST:
            yield at, UNKNOWN[name]
        elif _is_call(question, at) and token.word == "REVERSE" and _takes_list(question, at + 2):
            yield at, "reverse() of a list gives text here: order what is collected before"
        elif token.text == "[" and _is_subscript(question, at):
            if not _starts_at_first(question.tokens[at + 1 : question.closing[at]]):
                yield at, _COUNTED
        elif token.text == "[" and _is_comprehension(question, at):
            yield (
                at,
                (
                    "[x IN list …] is no list comprehension here: write "
                    "list_transform(list_filter(list, x -> condition), x -> value), or UNWIND"
                ),
            )
        elif token.text == "[" and _is_pattern_comprehension(question, at):
            yield at, UNKNOWN["[("]
        elif _is_joined_label(question, at):
            yield at, "(:A:B) is A or B here, and both on a server: write (:A|B), or one label"


def _unknown(question: Question, err: str) -> Iterator[str]:
    """Give what to write in the place of what the engine does not know."""
    for at, token in enumerate(question.tokens[:-1]):
        after = question.tokens[at + 1].text
        name = token.text.lower()
        if _is_call(question, at) and name in UNKNOWN and (name in err or name == "reduce"):
            yield UNKNOWN[name]
        elif token.word in ("COUNT", "COLLECT") and after == "{":
            yield UNKNOWN["count {"]
        elif token.text == "{" and after == ".":
            yield UNKNOWN["{."]
        elif token.text in (":", "(") and after == "!":
            yield UNKNOWN[":!"]
    yield from _unknown_clauses(question)
    if _is_compared_twice(question.tokens):
        yield UNKNOWN["<<"]


def _unknown_clauses(question: Question) -> Iterator[str]:
    patterns = Patterns(question)
    for clause in question.clauses:
        first, last = patterns.span(clause)
        words = {question.tokens[at].word for at in patterns.direct(first, last)}
        if clause.word == "CALL":
            yield UNKNOWN["call {" if question.tokens[first].text in "({" else "call"]
        elif clause.word == "WITH" and "ORDER" in words and not words & {"LIMIT", "SKIP"}:
            yield UNKNOWN["with order"]
        elif clause.word == "MATCH" and any(
            question.tokens[at].text == question.tokens[at + 1].text == "("
            for at in patterns.direct(first, last)
        ):
            yield UNKNOWN["(("]


def _written(question: Question, rows: int) -> str:
    """Give the text with zero for the sum of nothing, names of columns, and a limit of rows."""
    edits: list[tuple[int, str]] = []
    for at, token in enumerate(question.tokens):
        if token.word == "SUM" and _is_call(question, at):
            end = question.tokens[question.closing[at + 1]].start
            edits += ((token.start, "coalesce("), (end + 1, ", 0)"))
    if not question.explained:
        edits += _named(question)
        edits += _limited(question, rows)
    text = question.text
    edits.sort(key=lambda edit: edit[0])
    for place, said in edits[::-1]:
        text = text[:place] + said + text[place:]
    return text


def _named(question: Question) -> Iterator[tuple[int, str]]:
    """Give the columns the names that a server gives them: what was written."""
    patterns = Patterns(question)
    for clause in question.clauses:
        if clause.word != "RETURN" or clause.bracket >= 0:
            continue
        first, last = patterns.span(clause)
        first += question.tokens[first].word == "DISTINCT"
        item: list[int] = []
        for at in (*patterns.direct(first, last), last):
            token = question.tokens[at] if at < last else None
            if token is not None and token.text != "," and not _ends_items(token):
                item.append(at)
                continue
            if item and not _has_name(question, item):
                end = question.tokens[question.closing.get(item[-1], item[-1])].end
                said = question.text[question.tokens[item[0]].start : end]
                yield end, f" AS `{said}`"
            item = []
            if token is None or _ends_items(token):
                break


def _ends_items(token: Token) -> bool:
    return token.word in ("ORDER", "SKIP", "OFFSET", "LIMIT")


def _has_name(question: Question, item: list[int]) -> bool:
    found = [question.tokens[at] for at in item]
    if any(t.word == "AS" or (t.text == "*" and t is found[-1]) for t in found):
        return True
    is_plain = len(found) == 1 and found[0].text not in "([{"
    is_property = len(found) == 3 and found[1].text == "."
    whole = question.tokens[item[0] : question.closing.get(item[-1], item[-1]) + 1]
    return is_plain or is_property or any("`" in t.text for t in whole)


def _limited(question: Question, rows: int) -> Iterator[tuple[int, str]]:
    """Have the engine stop behind the row that says that there are more."""
    top = [c for c in question.clauses if c.bracket < 0]
    if not rows or not top or top[-1].word != "RETURN" or any(c.word == "UNION" for c in top):
        return
    patterns = Patterns(question)
    first, last = patterns.span(top[-1])
    if not any(question.tokens[at].word == "LIMIT" for at in patterns.direct(first, last)):
        yield len(question.text), f" LIMIT {rows + 1}"


def _is_call(question: Question, at: int) -> bool:
    """Tell whether a word is the name of a function that is called."""
    found = question.tokens
    if found[at].kind != "word" or at + 1 >= len(found) or found[at + 1].text != "(":
        return False
    return not at or found[at - 1].text != "."


def _takes_list(question: Question, at: int) -> bool:
    return question.tokens[at].text == "[" or question.tokens[at].text.lower() in _LISTS


def _is_subscript(question: Question, at: int) -> bool:
    """Tell whether a bracket picks from what stands before it."""
    before = question.tokens[at - 1] if at else None
    if before is None or question.closing[at] == at + 1:  # a type, as INT64[]
        return False
    if before.kind == "word":
        is_name = at > 1 and question.tokens[at - 2].text in (".", "AS")
        return is_name or before.word not in _KEYWORDS
    return before.kind in ("name", "parameter", "string") or before.text in (")", "]", "}")


def _starts_at_first(inside: tuple[Token, ...]) -> bool:
    texts = [t.text for t in inside]
    if ".." not in texts:
        return False
    at = texts.index("..")
    return texts[:at] in ([], ["0"]) and texts[at + 1 : at + 2] != ["-"]


def _is_comprehension(question: Question, at: int) -> bool:
    return question.tokens[at + 1].kind in ("word", "name") and question.tokens[at + 2].word == "IN"


def _is_pattern_comprehension(question: Question, at: int) -> bool:
    patterns = Patterns(question)
    end = question.closing[at]
    has_bar = any(question.tokens[i].text == "|" for i in patterns.direct(at + 1, end))
    return has_bar and bool(patterns.chains(at + 1, end, lone=False))


def _is_joined_label(question: Question, at: int) -> bool:
    texts = [t.text for t in question.tokens[at : at + 4]]
    kinds = [t.kind in ("word", "name") for t in question.tokens[at : at + 4]]
    is_pair = texts[0::2] == [":", ":"] or (texts[0::2] == [":", "&"])
    return is_pair and len(texts) == 4 and kinds[1] and kinds[3] and texts[2] == ":"


def _is_compared_twice(found: tuple[Token, ...]) -> bool:
    seen = False
    for at, token in enumerate(found):
        near = found[at - 1].text if at else "", found[at + 1].text if at + 1 < len(found) else ""
        if token.word in _KEYWORDS or token.text in "(),[]{}|":
            seen = False
        elif token.text in ("=", "<>", "<=", ">=") or (
            (token.text == "<" and near[1] != "-") or (token.text == ">" and near[0] != "-")
        ):
            if seen:
                return True
            seen = True
    return False
