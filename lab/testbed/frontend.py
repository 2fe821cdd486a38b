"""The HTTP front end of rank 0: completions as server-sent events."""

import asyncio
import contextlib
import json
import logging
import threading
from typing import Any

from teller.lab.testbed.engine import Engine
from teller.lab.testbed.scheduler import Request
from teller.lab.testbed.tokenizer import Tokenizer

log = logging.getLogger("testbed")
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


class ApiServer(threading.Thread):
    """Serves in a thread of its own; `ready` is set once it listens."""

    def __init__(self, engine: Engine, port: int) -> None:
        super().__init__(daemon=True, name="ApiServer")
        self.engine, self.port = engine, port
        self.tokenizer = Tokenizer()
        self.ready = threading.Event()

    def encode(self, text: str) -> list[int]:
        """Give the tokens of a prompt."""
        return self.tokenizer.encode(text)

    def run(self) -> None:
        """Serve for ever."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, "0.0.0.0", self.port)
        log.info("Starting vLLM-like API server on http://0.0.0.0:%d", self.port)
        self.ready.set()
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):  # the client went
            while first := await reader.readline():
                body = await _body(reader)
                if first.startswith(b"POST /shutdown"):
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    await writer.drain()
                    self.engine.stop()
                    break
                await self._complete(body, writer)
        writer.close()

    async def _complete(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        name, limit = str(body["request_id"]), int(body["max_tokens"])
        tokens = self.encode(str(body["prompt"]))
        tokens = tokens[: body.get("truncate_prompt_tokens") or self._longest(limit)]
        made: asyncio.Queue[int | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def emit(token: int | None) -> None:
            loop.call_soon_threadsafe(made.put_nowait, token)

        log.info(
            "Received request %s: prompt_tokens: %d, params: SamplingParams(temperature=2.0, "
            "max_tokens=%d)", name, len(tokens), limit,
        )  # fmt: skip
        self.engine.add(Request(name, len(tokens), limit, tokens, emit))
        log.info("Added request %s.", name)
        writer.write(_STREAM)
        while (token := await made.get()) is not None:
            said = {"id": name, "text": self.tokenizer.decode([token])}
            data = b"data: " + json.dumps(said).encode() + b"\n\n"
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        host, port = writer.get_extra_info("peername")[:2]
        log.info('%s:%d - "POST /v1/completions HTTP/1.1" 200 OK', host, port)

    def _longest(self, limit: int) -> int:
        return self.engine.me.service.max_length - limit


async def _body(reader: asyncio.StreamReader) -> dict[str, Any]:
    size = 0
    while (line := await reader.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    return json.loads(await reader.readexactly(size)) if size else {}
