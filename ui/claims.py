"""Which evidence shows which sentence of an explanation, by what both of them name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from teller.graph.finding import Evidence, Finding

_END: Final = re.compile(r"(?<=[.;:!?])\s+(?=[A-Z0-9])")
_WAITS: Final = re.compile(r"\b(wait|victim|behind)", re.IGNORECASE)
_PEERS: Final = re.compile(r"\b(other ranks|peers|normal|theirs|healthy|baseline)", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"\b(?:[Rr]anks?|[Ss]teps?) (\d+)|([\w./-]*[a-z][\w./-]*[._/-][\w./-]*\w)"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and the places in the list of evidence (from 1) that show it."""

    text: str
    shown_by: tuple[int, ...]


def claims(finding: Finding) -> list[Claim]:
    """Give the sentences of a finding's explanation with the evidence for each.

    A sentence about waiting is shown by victims, one about peers by what is healthy, any by what
    names the same rank, operator or host; without such it is shown by what is called the cause.
    """
    return [
        Claim(text, _shown(text, finding.evidence)) for text in _END.split(finding.text) if text
    ]


def _shown(text: str, evidence: Sequence[Evidence]) -> tuple[int, ...]:
    roles = set()
    if _WAITS.search(text):
        roles.add("victim")
    if _PEERS.search(text):
        roles.add("healthy")
    names = _names(text)
    found = [
        number
        for number, one in enumerate(evidence, 1)
        if one.role in roles or (one.role in ("cause", "effect") and names & _names(one.text))
    ]
    return tuple(found or (n for n, one in enumerate(evidence, 1) if one.role == "cause"))


def _names(text: str) -> set[str]:
    return {next(filter(None, found)).strip(".") for found in _NAMED.findall(text)}
