"""What stands before every request, also those that run no page: who may ask, and what comes back.

Plain ASGI: the server's own routes and its web socket pass here as well.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ENVELOPE_BYTES: Final = 1 << 20  # what comes around a file that is sent
# inline scripts and styles are Streamlit's own; nothing leads outside
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' ws: wss:; worker-src 'self' blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"referrer-policy", b"no-referrer"),
)
_CLOSED: Final = ("/_stcore/metrics",)  # tells of all visitors


class Guard:
    """Lets through what is asked under a known name, by someone known where that is asked for."""

    def __init__(
        self, app: App, *, hosts: frozenset[str], name_header: str = "", upload_bytes: int = 0
    ) -> None:
        """Stand before `app`. With `name_header`, a proxy in front must say who asks."""
        self.app = app
        self.hosts = hosts
        self.name_header = name_header.lower().encode()
        self.most_bytes = upload_bytes + ENVELOPE_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        status, why = self.refusal(scope, headers)
        if status:
            await _refuse(scope, send, status, why)
            return
        await self.app(scope, self._limited(receive), _answering(send))

    def refusal(self, scope: Scope, headers: MutableMapping[bytes, bytes]) -> tuple[int, str]:
        """Give status and reason where a request is refused, else 0."""
        host = headers.get(b"host", b"").decode("latin-1")
        if "*" not in self.hosts and _name(host) not in self.hosts:
            return 403, f"this server is not asked as {_name(host)!r}; teller ui --allow-host"
        if scope["type"] == "websocket":
            origin = urlsplit(headers.get(b"origin", b"").decode("latin-1"))
            if origin.netloc != host:
                return 403, "the page that asks is not one of this server"
        if self.name_header and not headers.get(self.name_header, b"").strip():
            return 401, "the proxy in front did not say who asks"
        if scope["type"] == "http" and scope["path"].startswith(_CLOSED):
            return 404, "there is nothing here"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most_bytes:
            return 413, f"more than {self.most_bytes >> 20} MiB are not taken"
        return 0, ""

    def _limited(self, receive: Receive) -> Receive:
        """Give what ends a body that grows beyond the limit without having said so."""
        got = 0

        async def counted() -> Message:
            nonlocal got
            message = await receive()
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                if got > self.most_bytes:
                    return {"type": "http.disconnect"}
            return message

        return counted


def _name(host: str) -> str:
    """Give a host without its port: "[::1]:80" is "::1"."""
    return (urlsplit(f"//{host}").hostname or "").lower() if _is_plain(host) else ""


def _is_plain(host: str) -> bool:
    return bool(host) and not set(host) & set("/?#@\\ ")


def _answering(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message.get("headers", ())}
            more = [pair for pair in _HEADERS if pair[0] not in there]
            message = dict(message) | {"headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sent


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why[:120]})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
