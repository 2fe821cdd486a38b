"""The words of a Cypher text: what it says, without regard to how an engine would read it.

An engine is sent what `clean` gives, never the text as it came: comments and odd blanks are out, so
that no engine can take for a comment or a string what was checked as a word, or the reverse.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from teller.errors import QueryRefused

Kind = Literal["word", "name", "string", "number", "parameter", "sign"]

MOST_CHARACTERS: Final = 20_000

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\r\n]*|/\*[\s\S]*?\*/)
      | (?P<string>'(?:\\[\s\S]|[^'\\])*'|"(?:\\[\s\S]|[^"\\])*")
      | (?P<name>`[^`]+`)
      | (?P<parameter>\$(?:[A-Za-z0-9_]+|`[^`]+`))
      | (?P<number>0[xX][0-9a-fA-F]+|0[oO][0-7]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>\.\.|<>|<=|>=|!=|=~|::|[-+*/%^=<>()\[\]{}.,:;|&!?])""",
    re.VERBOSE,
)
_UNCLOSED: Final = {"'": "a quote", '"': "a quote", "`": "a back-tick", "/": "a comment"}
_BLANKED: Final = re.compile(r"[^\n]")  # lines stay, so that places stay
# a server takes `\u0027` for a quote before it looks at anything else: no check would hold
_ESCAPE: Final = re.compile(r"\\u+00[0-7]", re.IGNORECASE)


class Token(NamedTuple):
    """One word, and where it stands. `word` is in capitals where it could be one of Cypher's."""

    kind: Kind
    text: str
    start: int

    @property
    def word(self) -> str:
        """Give a bare word in capitals, and "" for all else."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def end(self) -> int:
        """Give the place behind it."""
        return self.start + len(self.text)

    @property
    def called(self) -> str:
        """Give the name that a word, a quoted name or a parameter stands for."""
        return self.text.lstrip("$").strip("`")


Tokens = tuple[Token, ...]


def read(text: str) -> Tokens:
    """Give the words of a text, or refuse what could be read in two ways."""
    if len(text) > MOST_CHARACTERS:
        raise QueryRefused(
            f"the query has {len(text):,} characters, more than {MOST_CHARACTERS:,}; "
            "give long lists as parameters"
        )
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise QueryRefused(_stray(text, at))
        kind = match.lastgroup
        if kind != "space":
            found.append(Token(kind, match[0], at))  # type: ignore[arg-type]  # one of Kind
        at = match.end()
    for token in found:
        if token.kind in ("string", "name", "parameter"):
            _check_inside(token, text)
    return tuple(found)


def clean(text: str, tokens: Sequence[Token]) -> str:
    """Give the text of these words alone, each where it stood, with blanks between."""
    parts: list[str] = []
    at = 0
    for token in tokens:
        parts += (_BLANKED.sub(" ", text[at : token.start]), token.text)
        at = token.end
    return "".join(parts)


def bare(text: str) -> str:
    """Give the text without comments, and with strings and quoted names blanked out."""
    return clean(text, [t for t in read(text) if t.kind not in ("string", "name")])


def ends(text: str) -> list[int]:
    """Give the places of the semicolons that end a statement."""
    return [token.start for token in read(text) if token.text == ";"]


def parameters(text: str) -> frozenset[str]:
    """Give the names of the parameters that a query asks for."""
    return asked(read(text))


def asked(tokens: Sequence[Token]) -> frozenset[str]:
    """Give the names of the parameters among the words."""
    return frozenset(t.called for t in tokens if t.kind == "parameter")


def place(text: str, offset: int) -> str:
    """Say where something stands: "line 2, column 7"."""
    starts = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
    line = bisect_right(starts, offset)
    return f"line {line}, column {offset - starts[line - 1] + 1}"


def _stray(text: str, at: int) -> str:
    sign, where = text[at], place(text, at)
    if sign in "'\"`" or text.startswith("/*", at):
        return f"{_UNCLOSED[sign]} is opened at {where} and never closed"
    if sign in "‘’“”´":
        return f"{sign} at {where} is no quote of Cypher's: write ' or \""
    shown = sign if sign.isprintable() else f"the character U+{ord(sign):04X}"
    hint = "; a name with such letters stands in back-ticks" if sign.isalpha() else ""
    return f"{shown} at {where} has no meaning in a query{hint}"


def _check_inside(token: Token, text: str) -> None:
    where = place(text, token.start)
    if _ESCAPE.search(token.text):
        raise QueryRefused(rf"write letters as they are: \u0041 is not taken in a query ({where})")
    if "\0" in token.text:
        raise QueryRefused(f"the text at {where} holds a NUL, which no engine takes")
    try:
        token.text.encode()
    except UnicodeEncodeError as err:
        raise QueryRefused(f"the text at {where} is no Unicode: {err.reason}") from err
