"""Other words for an explanation, by an endpoint that the user names; off unless asked for.

Only the explanation's own sentences are sent. What comes back must keep every figure and name of a
sentence, in order and letter by letter, say nothing more, and pass the checker; else the sentence
stays as it was.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from teller.errors import BadUsage
from teller.graph.explanation import Fact, Sentence
from teller.graph.finding import Finding
from teller.models.case import Case
from teller.models.explain import words
from teller.models.explain.proof import Again, Proof
from teller.models.rule import rules

KEY: Final = "TELLER_REPHRASE_KEY"
TIMEOUT_S: Final = 30.0
MOST_BYTES: Final = 256 << 10  # of an answer
LONGER: Final = 3  # times as long as before: more is no rephrasing
_BIT: Final = 16 << 10
_HERE: Final = ("127.0.0.1", "::1", "localhost")
_MARKUP: Final = re.compile(
    r"[<>`*#|\[\]{}\\]|https?:|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]"
)
_ASK: Final = (
    "Rephrase each sentence of this JSON list in plain English. Keep every number, unit and name "
    "exactly as it is, in the same order. Add nothing and leave nothing out. Answer with a JSON "
    "list of as many strings and nothing else."
)


class _Stay(HTTPRedirectHandler):
    """Goes to no other address: the key and the text are for the one that the user named."""

    def redirect_request(self, *told: Any, **more: Any) -> None:
        """Refuse."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask: the base URL of an OpenAI-compatible service, a model, and a key or ""."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        """Refuse what is no address, and to send a key in the clear over a network."""
        place = urlsplit(self.url)
        if place.scheme not in ("http", "https") or not place.hostname or place.username:
            raise BadUsage(
                f"--rephrase: an address is https://HOST/v1, or http:// on this machine; a key is "
                f"given by {KEY}"
            )
        if place.scheme == "http" and self.key and place.hostname not in _HERE:
            raise BadUsage(f"--rephrase: {KEY} is sent by https only, or to this machine")

    def ask(self, texts: Sequence[str]) -> list[str]:
        """Give as many texts back, or say why not: raises `BadUsage`."""
        body = {
            "model": self.model, "temperature": 0, "stream": False,
            "messages": [{"role": "system", "content": _ASK},
                         {"role": "user", "content": json.dumps(texts, ensure_ascii=False)}],
        }  # fmt: skip
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        asked = Request(
            f"{self.url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers
        )
        try:
            with self._opener().open(asked, timeout=self.timeout_s) as answer:
                said = self._read(answer)
        except (URLError, OSError, HTTPException, ValueError) as err:
            raise BadUsage(f"the endpoint did not answer: {_reason(err)}") from None
        return _texts(said, len(texts))

    def _opener(self) -> OpenerDirector:
        """Go through the user's proxies, but not to this machine."""
        here = urlsplit(self.url).hostname in _HERE
        return build_opener(_Stay, *([ProxyHandler({})] if here else []))

    def _read(self, answer: IO[bytes]) -> bytes:
        """Read an answer bit by bit: one that trickles must not take for ever."""
        said, until = b"", monotonic() + self.timeout_s
        while more := answer.read1(_BIT):  # type: ignore[attr-defined]  # a response of http has it
            said += more
            if len(said) > MOST_BYTES:
                raise BadUsage(f"the endpoint's answer is longer than {MOST_BYTES >> 10} KiB")
            if monotonic() > until:
                raise TimeoutError
        return said


def _reason(err: Exception) -> str:
    """Say what went wrong in words of ours: an error's own may hold what was sent."""
    if isinstance(err, HTTPError):
        err.close()
        return f"HTTP {err.code}"
    inner = getattr(err, "reason", err)
    return "it took too long" if isinstance(inner, TimeoutError) else type(inner).__name__


def _texts(said: bytes, count: int) -> list[str]:
    try:
        content = json.loads(said)["choices"][0]["message"]["content"]
        texts = json.loads(content)
    except (ValueError, LookupError, TypeError, RecursionError):
        raise BadUsage(
            "the endpoint's answer is not what an OpenAI-compatible endpoint gives"
        ) from None
    if not isinstance(texts, list) or len(texts) != count:
        raise BadUsage("the endpoint did not give one sentence for each")
    return [t if isinstance(t, str) else "" for t in texts]


def rephrased(
    sentences: Sequence[Sentence], endpoint: Endpoint, proof: Proof
) -> tuple[list[Sentence], int]:
    """Give the sentences in other words where those are proved, and how many were dropped.

    Raises `BadUsage` where the endpoint gives no answer that can be read.
    """
    said, dropped = list[Sentence](), 0
    for sentence, text in zip(sentences, endpoint.ask([s.text for s in sentences]), strict=True):
        other = _other(sentence, text)
        if other is None or proof.flaw(other):
            said.append(sentence)
            dropped += 1
        else:
            said.append(other)
    return said, dropped


def _other(sentence: Sentence, text: str) -> Sentence | None:
    """Find each fact in the new words, in order; None where one is lost or the words are none."""
    if not text.strip() or len(text) > LONGER * len(sentence.text) + 40:
        return None
    found, at = list[Fact](), 0
    for fact in sentence.facts:
        place = re.compile(rf"(?<![\w.]){re.escape(fact.text)}(?!\w|\.\w)").search(text, at)
        if place is None:
            return None
        found.append(replace(fact, at=place.start()))
        at = place.end()
    other = replace(sentence, text=text, facts=tuple(found), rephrased=True)
    return None if _MARKUP.search(words.plain(other)) else other


def reworded(
    case: Case, findings: Sequence[Finding], endpoint: Endpoint, extra: Path | None = None
) -> tuple[list[Finding], list[str]]:
    """Give findings whose explanations are in other words where proved, and notes on the rest."""
    again, known = Again(Case(case.store, case.run, case.baseline)), rules(extra)
    said, dropped, whole = list[Finding](), 0, 0
    for number, finding in enumerate(findings):
        if not finding.explanation:
            said.append(finding)
            continue
        told_by = (
            s.words.removesuffix(".text").removesuffix(".title") for s in finding.explanation
        )
        rule = next((known[name] for name in told_by if name in known), None)
        try:
            told, lost = rephrased(finding.explanation, endpoint, Proof(again, finding, rule))
        except BadUsage as err:
            return [*said, *findings[number:]], [f"explanations are not rephrased: {err}"]
        text = " ".join(s.text for s in told if s.part == "mechanism")
        said.append(replace(finding, explanation=tuple(told), text=text or finding.text))
        dropped, whole = dropped + lost, whole + len(told)
    note = f"{dropped} of {whole} rephrased sentences said something else and were dropped"
    return said, [note] if dropped else []
