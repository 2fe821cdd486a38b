"""The process that an analyst's queries run in: whatever one does to it, it does to no other.

It has one graph open for reading, little memory, no file to write and no place to write one. It is
asked over stdin and answers over stdout, in frames of a length and that many bytes; a request is
JSON, an answer JSON and, where that says `ok`, an Arrow stream, which an empty frame ends.
"""

import contextlib
import io
import json
import os
import queue
import threading
from typing import Any, BinaryIO, Final

import ladybug
import pyarrow as pa

from teller.graph.engine_words import answer, plain
from teller.graph.frames import read_frame, write_frame
from teller.graph.shut_in import limit_memory, shut_in

MOST_TEXTS: Final = 64  # asked over one connection: each keeps 1.5 MB of the pool
CHUNK_ROWS: Final = 8192  # room for a chunk is taken at once: by default gigabytes, for one column


class Frames(io.RawIOBase):
    """A file that is written in frames."""

    def __init__(self, pipe: BinaryIO) -> None:
        """Write to this pipe."""
        super().__init__()
        self._pipe = pipe

    def writable(self) -> bool:
        """Tell that it may be written."""
        return True

    def write(self, data: Any) -> int:
        """Write one frame; an empty one is an end."""
        whole = memoryview(data).cast("B")
        write_frame(self._pipe, whole)
        return len(whole)

    def say(self, **said: object) -> None:
        """Write a frame of JSON."""
        self.write(json.dumps(said).encode())


class Graph:
    """The graph that is open, and a connection to it."""

    def __init__(self, opening: dict[str, Any]) -> None:
        """Open a published file."""
        self._deepest = int(opening["deepest"])
        self._database = ladybug.Database(
            opening["path"],
            read_only=True,
            buffer_pool_size=opening["pool"],
            max_num_threads=opening["threads"],
            max_db_size=opening["address"],
        )
        self._asked = 0
        self._connection = self._connect()

    def ask(self, request: dict[str, Any]) -> pa.Table:
        """Give the answer to a query, all of its rows."""
        connection = self._ready()
        connection.set_query_timeout(max(1, int(request["time_s"] * 1000)))
        connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            result = answer(connection, request["text"], request["params"])
            # a result without columns breaks the engine's own conversion
            if not result.get_column_names():
                return pa.table({})
            return plain(result.get_as_arrow(CHUNK_ROWS))
        finally:
            with contextlib.suppress(RuntimeError):  # some errors end the transaction themselves
                connection.execute("COMMIT")

    def _connect(self) -> ladybug.Connection:
        connection = ladybug.Connection(self._database)
        connection.execute(f"CALL var_length_extend_max_depth={self._deepest}")
        return connection

    def _ready(self) -> ladybug.Connection:
        self._asked += 1
        if self._asked % MOST_TEXTS == 0:
            self._connection.close()
            self._connection = self._connect()
        return self._connection


def main() -> None:
    """Answer until nobody asks any more."""
    pipe, out = _pipes()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, requests), daemon=True).start()
    shut_in()
    out.say(state="ready")
    opening = json.loads(requests.get())
    try:
        graph = Graph(opening)
        limit_memory(opening["memory"])
    except (RuntimeError, MemoryError, OSError) as err:
        out.say(state="unopened", error=str(err))
        return
    out.say(state="open")
    while True:
        _answer(graph, json.loads(requests.get()), out)


def _answer(graph: Graph, request: dict[str, Any], out: Frames) -> None:
    most = int(request["rows"])
    try:
        found = graph.ask(request)
        given = found.slice(0, most) if most else found
        size = given.nbytes
    except (TypeError, ValueError, OverflowError, KeyError, ZeroDivisionError) as err:
        out.say(state="unsendable", error=str(err))
    except (RuntimeError, MemoryError, pa.ArrowException) as err:
        out.say(state="refused", error=str(err) or "bad_alloc")
    else:
        if size > request["bytes"]:
            out.say(state="large")
            return
        out.say(state="ok", truncated=bool(most) and found.num_rows > most)
        with pa.ipc.new_stream(out, given.schema) as stream:
            stream.write_table(given)
        out.write(b"")


def _listen(pipe: BinaryIO, requests: "queue.SimpleQueue[bytes]") -> None:
    """Take requests, and end with whoever sends them, also in the middle of a query."""
    while (frame := read_frame(pipe)) is not None:
        requests.put(frame)
    os._exit(0)


def _pipes() -> tuple[BinaryIO, Frames]:
    """Give the two pipes, which nothing else of the process writes to or reads from."""
    taken = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    os.close(nothing)
    return taken[0], Frames(taken[1])
