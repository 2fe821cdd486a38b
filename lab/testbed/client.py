"""The clients: Poisson arrivals in an open loop, streamed answers, a JSON line a request.

`python -m teller.lab.testbed.client LOAD.json`; more requests come by datagrams to the control
socket (`More`) and look like all others.
"""

import asyncio
import contextlib
import itertools
import json
import random
import socket
import sys
import time
from pathlib import Path
from typing import IO, Any

import msgspec

from teller.lab.testbed.settings import Load, More
from teller.lab.testbed.tokenizer import WORDS

DRAIN_S = 1.0  # then the recording ends, whatever is under way


class Client:
    """Sends requests and writes down what each took."""

    def __init__(self, load: Load, out: IO[str]) -> None:
        self.load, self.out = load, out
        self.draw, self.more = random.Random(load.seed), random.Random(~load.seed)
        self.tasks: set[asyncio.Task[None]] = set()
        self.over = asyncio.Event()

    async def run(self) -> None:
        """Send until told to end, wait a little for answers, and end the service."""
        control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        control.bind(self.load.control)
        control.setblocking(False)
        asyncio.get_running_loop().add_reader(control, self._asked, control)
        for _ in range(self.load.warm):
            self._send(self.draw, _prompt(self.draw, 20), self.draw.randint(20, 60))
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError):  # then the next one is due
                await asyncio.wait_for(self.over.wait(), self.draw.expovariate(self.load.rate))
                break
            words = min(120, round(self.draw.lognormvariate(3.3, 0.6)))
            output = min(150, max(8, round(self.draw.expovariate(1 / 50))))
            self._send(self.draw, _prompt(self.draw, words), output)
        await asyncio.wait(self.tasks, timeout=DRAIN_S)
        reader, writer = await asyncio.open_connection(self.load.host, self.load.port)
        writer.write(b"POST /shutdown HTTP/1.1\r\nHost: service\r\n\r\n")
        await writer.drain()
        await reader.readline()
        writer.close()

    def _asked(self, control: socket.socket) -> None:
        more = msgspec.json.decode(control.recv(65536), type=More)
        if not more.count:
            self.over.set()
        for _ in range(more.count):
            letters = (self.more.choice(WORDS) for _ in range(more.characters))
            prompt = (
                "".join(letters)[: more.characters]
                if more.characters
                else _prompt(self.more, more.words)
            )
            self._send(self.more, prompt, more.output_tokens, more.keep)

    def _send(self, draw: random.Random, prompt: str, output: int, keep: int = 0) -> None:
        name = f"cmpl-{draw.getrandbits(64):016x}-0"
        body = {"request_id": name, "prompt": prompt, "max_tokens": output}
        task = asyncio.create_task(
            self._one(body | ({"truncate_prompt_tokens": keep} if keep else {}))
        )
        self.tasks.add(task)

    async def _one(self, body: dict[str, Any]) -> None:
        sent = time.time()
        reader, writer = await asyncio.open_connection(self.load.host, self.load.port)
        data = json.dumps(body).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: service\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(data) + data)
        await writer.drain()
        times = []
        while (line := await reader.readline()) not in (b"", b"0\r\n"):
            if line.startswith(b"data:"):
                times.append(time.time())
        writer.close()
        gaps = [b - a for a, b in itertools.pairwise(times)]
        told = {
            "id": body["request_id"], "sent": sent, "ttft": times[0] - sent if times else None,
            "n": len(times), "itl_mean": sum(gaps) / len(gaps) if gaps else None,
            "itl_max": max(gaps, default=None), "e2e": time.time() - sent,
        }  # fmt: skip
        self.out.write(json.dumps(told) + "\n")
        self.out.flush()


def _prompt(draw: random.Random, words: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(words))


def main(path: Path) -> None:
    """Run the client that the file describes."""
    load = msgspec.json.decode(path.read_bytes(), type=Load)
    with open(load.out, "w", encoding="utf-8") as out:
        asyncio.run(Client(load, out).run())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
