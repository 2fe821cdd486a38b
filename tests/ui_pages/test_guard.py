"""What stands before every request lets through what it should, and nothing else."""

import asyncio
from typing import Any

import pytest

from teller.ui.asgi import Guard

HOSTS = frozenset({"127.0.0.1", "pages.example"})


def asked(
    headers: dict[str, str], *, path: str = "/", kind: str = "http", body: tuple[bytes, ...] = (),
    name_header: str = "",
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Ask the guard; give what came back, and what the application behind it got."""
    got: list[Any] = []
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in body]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        got.append(scope["path"])
        for _ in body:
            got.append((await receive())["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    guard = Guard(app, hosts=HOSTS, name_header=name_header, upload_bytes=0)
    lines = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(guard({"type": kind, "path": path, "headers": lines}, receive, send))
    return sent, got


def status(*args: Any, **words: Any) -> int:
    sent, _ = asked(*args, **words)
    return int(sent[0].get("status") or sent[0]["code"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8501", "pages.example", "PAGES.example:1"]
)
def test_a_known_name_is_let_through_with_a_policy(host: str) -> None:
    sent, got = asked({"Host": host})
    assert got == ["/"]
    headers = dict(sent[0]["headers"])
    assert b"default-src 'self'" in headers[b"content-security-policy"]
    assert headers[b"x-content-type-options"] == b"nosniff"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "a/127.0.0.1", "@"])
def test_another_name_is_refused(host: str) -> None:
    assert status({"Host": host}) == 403  # a page elsewhere whose name leads to this machine


@pytest.mark.parametrize("origin", ["http://evil.example", "", "null", "http://127.0.0.1:1"])
def test_a_web_socket_is_for_pages_of_this_server(origin: str) -> None:
    assert status({"Host": "127.0.0.1:8501", "Origin": origin}, kind="websocket") == 1008
    own = {"Host": "127.0.0.1:8501", "Origin": "http://127.0.0.1:8501"}
    assert asked(own, kind="websocket")[1] == ["/"]


def test_a_proxy_must_say_who_asks_on_every_route() -> None:
    for kind, refused in (("http", 401), ("websocket", 1008)):
        plain = {"Host": "pages.example", "Origin": "https://pages.example"}
        for path in ("/", "/teller/codemirror.js", "/_stcore/stream"):
            assert status(plain, kind=kind, path=path, name_header="X-User") == refused
        named = plain | {"X-User": "ada"}
        assert asked(named, kind=kind, name_header="X-User")[1] == ["/"]


def test_figures_about_all_visitors_are_not_given() -> None:
    assert status({"Host": "127.0.0.1"}, path="/_stcore/metrics") == 404


def test_a_body_that_is_too_long_is_refused_also_if_it_does_not_say_so() -> None:
    assert status({"Host": "127.0.0.1", "Content-Length": str(2 << 20)}) == 413
    assert status({"Host": "127.0.0.1", "Content-Length": "many"}) == 413
    _, got = asked({"Host": "127.0.0.1"}, body=(b"x" * (1 << 20), b"x"))
    assert got == ["/", "http.request", "http.disconnect"]
