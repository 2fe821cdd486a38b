"""Other words for an explanation, by a real server on this machine that answers well or badly."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from teller.errors import BadUsage
from teller.graph.embedded import EmbeddedStore
from teller.graph.explanation import Sentence
from teller.graph.finding import Finding
from teller.models.case import Case
from teller.models.explain.explain import Explained, held_to
from teller.models.explain.proof import Proof
from teller.models.explain.rephrase import MOST_BYTES, Endpoint, rephrased, reworded
from tests.models.explain.conftest import loaded, told_of

Answer = Callable[[list[str]], bytes]
Ask = Callable[..., Endpoint]


class Service(ThreadingHTTPServer):
    """A server whose answers a test makes up; it keeps what it was asked."""

    answer: Answer
    status = 200
    asked: list[tuple[dict[str, str], bytes]]


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((dict(self.headers), body))
        texts = json.loads(json.loads(body)["messages"][1]["content"])
        said = self.server.answer(texts)
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        with suppress(OSError):  # who asked had enough
            self.wfile.write(said)

    def log_message(self, *said: Any) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service(("127.0.0.1", 0), _Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def told(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Case, Finding, Explained, Proof]]:
    path = tmp_path_factory.mktemp("explained") / "graph.lbdb"
    with EmbeddedStore(path, pool_bytes=128 << 20) as store:
        case = loaded(store)
        yield (case, *told_of(case, "rule"))


def at(service: Service, **more: Any) -> Endpoint:
    return Endpoint(f"http://127.0.0.1:{service.server_port}/v1", "small", **more)


def chat(texts: object) -> bytes:
    content = texts if isinstance(texts, str) else json.dumps(texts)
    return json.dumps({"choices": [{"message": {"content": content}}]}).encode()


def each(change: Callable[[str], str]) -> Answer:
    return lambda texts: chat([change(t) for t in texts])


def the(told: tuple[Case, Finding, Explained, Proof], begins: str) -> list[Sentence]:
    return [s for s in told[2].sentences if s.text.startswith(begins)]


WAIT = "Rank 0 waits 500 ns for it there, in step 1."


@pytest.mark.parametrize(
    "text",
    [
        "Rank 0 loses 500 ns there while it waits, all in step 1.",
        "There, rank 0 must wait for 500 ns of its step 1.",
    ],
)
def test_good_words_are_taken(told: Any, service: Service, text: str) -> None:
    service.answer = lambda _: chat([text])
    [one], dropped = rephrased(the(told, "Rank 0"), at(service), told[3])
    assert (one.text, one.rephrased, dropped) == (text, True, 0)
    assert [one.text[f.at : f.at + len(f.text)] for f in one.facts] == ["0", "500 ns", "1"]
    assert Sentence.from_json(json.loads(json.dumps(one.to_json()))) == one


@pytest.mark.parametrize(
    "text",
    [
        "Rank 0 waits 510 ns for it there, in step 1.",  # another number
        "Rank 0 waits 500 ms for it there, in step 1.",  # another unit
        "Rank 0 waits 1500 ns for it there, in step 1.",
        "Rank 1 waits 500 ns for it there, in step 0.",  # changed places
        "Step 0 waits 500 ns for it there, in rank 1.",
        "Rank 0 waits 500 ns for it there, in step 1, as rank 3 does.",  # an invented rank
        "Rank 0 waits 500 ns for it there, in step 1, on node-7.",
        "Rank 0 waits 500 ns for it there, in step 1, on node-a.",
        "Rank 0 waits 500 ns for aten::foo, in step 1.",  # an invented operator
        "Rank 0 waits 500 ns for gemm there, in step 1.",  # another operator of this run
        "Rank 0 waits 500 ns for it there, in step 1: half of it.",  # a count in words
        "Rank 0 never waits 500 ns for it there, in step 1.",  # the contrary
        "Rank 0 waits 500 ns for it there.",  # one is lost
        "**Rank 0** waits 500 ns for it there, in step 1.",  # Markdown
        "Rank 0 waits 500 ns for <b>it</b> there, in step 1.",  # HTML
        "Rank 0 waits 500 ns for it there, in step 1, see https://example.com.",
        "Rank 0 waits 500 ns\nfor it there, in step 1.",
        "Rank 0 waits 500 ns for it there, in step 1." + " Indeed it does so." * 20,
        "",
    ],
)
def test_words_that_say_something_else_are_dropped(told: Any, service: Service, text: str) -> None:
    service.answer = lambda _: chat([text])
    [one], dropped = rephrased(the(told, "Rank 0"), at(service), told[3])
    assert (one.text, one.rephrased, dropped) == (WAIT, False, 1)


def test_one_bad_sentence_costs_that_sentence_alone(told: Any, service: Service) -> None:
    case, finding, said, _ = told
    service.answer = each(
        lambda t: "Rank 0 waits 9 ns, in step 1." if t == WAIT else t.replace("takes", "needs")
    )
    # the tiny run's rule is no rule of ours: `rephrased` is given it by the proof
    told_again, dropped = rephrased(said.sentences, at(service), told[3])
    assert dropped == 1
    assert WAIT in [s.text for s in told_again]
    assert "That iteration needs 4.50 µs." in [s.text for s in told_again]
    assert case.run == finding.run


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "not what an OpenAI-compatible"),
        (b"<html><body>Sign in</body></html>", "not what an OpenAI-compatible"),
        (b'{"error": {"message": "no such model"}}', "not what an OpenAI-compatible"),
        (b"[" * 100_000, "not what an OpenAI-compatible"),
        (b'{"choices": []}', "not what an OpenAI-compatible"),
        (chat("# Here you go"), "not what an OpenAI-compatible"),
        (chat(["one", "two"]), "one sentence for each"),
        (chat({"a": 1}), "one sentence for each"),
        (b"x" * (MOST_BYTES + 1), "longer than 256 KiB"),
    ],
)
def test_an_answer_that_is_none_is_said_to_be(
    told: Any, service: Service, answer: bytes, why: str
) -> None:
    service.answer = lambda _: answer
    with pytest.raises(BadUsage, match=why):
        rephrased(the(told, "Rank 0"), at(service), told[3])


@pytest.mark.parametrize(
    ("status", "why"), [(500, "HTTP 500"), (302, "HTTP 302"), (401, "HTTP 401")]
)
def test_a_refusal_is_said_and_no_redirection_is_followed(
    told: Any, service: Service, status: int, why: str
) -> None:
    service.answer, service.status = lambda _: b"secret words", status
    with pytest.raises(BadUsage, match=why) as said:
        rephrased(the(told, "Rank 0"), at(service, key="k-123"), told[3])
    assert "k-123" not in str(said.value)
    assert "secret" not in str(said.value)
    assert len(service.asked) == 1


def test_a_server_that_does_not_answer_in_time_is_left(told: Any, service: Service) -> None:
    waits = threading.Event()
    service.answer = lambda texts: chat(texts) if waits.wait(60) else b""
    with pytest.raises(BadUsage, match="it took too long"):
        rephrased(the(told, "Rank 0"), at(service, timeout_s=0.2), told[3])
    waits.set()


def test_nobody_there_is_said(told: Any) -> None:
    with pytest.raises(BadUsage, match="did not answer: ConnectionRefusedError"):
        rephrased(the(told, "Rank 0"), Endpoint("http://127.0.0.1:9", "small"), told[3])


def test_only_the_texts_are_sent_and_the_key_in_its_header_alone(
    told: Any, service: Service
) -> None:
    _, _, said, proof = told
    service.answer = chat
    rephrased(said.sentences, at(service, key="k-123"), proof)
    [(headers, body)] = service.asked
    assert headers["Authorization"] == "Bearer k-123"
    assert b"k-123" not in body
    sent = json.loads(body)
    assert set(sent) == {"model", "temperature", "stream", "messages"}
    assert json.loads(sent["messages"][1]["content"]) == [s.text for s in said.sentences]


def test_a_finding_takes_the_words_and_its_text_with_them(told: Any, service: Service) -> None:
    case, finding, said, _ = told
    mine = held_to(finding, Explained(tuple(s for s in said.sentences if s.part == "path")))
    service.answer = each(lambda t: t.replace("waits", "must wait"))
    [other], notes = reworded(case, [mine], at(service))
    assert notes == []
    assert "Rank 0 must wait 500 ns for it there, in step 1." in [s.text for s in other.explanation]
    service.status = 500
    assert reworded(case, [mine], at(service)) == (
        [mine], ["explanations are not rephrased: the endpoint did not answer: HTTP 500"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("ftp://host/v1", ""), ("file:///etc/passwd", ""), ("host:80", ""),
        ("http://me:k-123@host/v1", ""), ("http://far.example/v1", "k-123"), ("https://", ""),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_trusted_is_refused(url: str, key: str) -> None:
    with pytest.raises(BadUsage) as said:
        Endpoint(url, "small", key)
    assert "k-123" not in str(said.value)
    assert "k-123" not in repr(Endpoint("https://far.example/v1", "small", "k-123"))
