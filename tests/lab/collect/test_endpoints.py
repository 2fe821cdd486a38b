"""Servers with profiler endpoints as vLLM and SGLang document them; real HTTP on loopback."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from teller.cli import main
from teller.errors import BadUsage
from teller.lab.collect import endpoints

Asked = list[tuple[str, Any]]


@contextmanager
def server(
    answers: dict[str, tuple[int, str]], done: Callable[[str], None] = lambda path: None
) -> Iterator[tuple[str, Asked]]:
    """Give the address of a server, and what it was told by POST."""
    asked: Asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append((self.path, json.loads(body) if body else {}))
            done(self.path)
            self._say()

        def _say(self) -> None:
            code, text = answers.get(self.path, (404, '{"detail":"Not Found"}'))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", asked
        finally:
            listening.shutdown()
            thread.join()


VLLM = {"/version": (200, '{"version":"0.13.1"}')}
READY = {"/start_profile": (200, ""), "/stop_profile": (200, "")}
SGLANG = {"/server_info": (200, '{"version":"0.5.6","tp_size":2}')}


def test_vllm_is_started_and_stopped_and_told_nothing_else() -> None:
    waited: list[float] = []
    with server(VLLM | READY) as (url, asked):
        found = endpoints.find(url + "/")
        endpoints.record(found, 10, "/there", wait=waited.append)
    assert (found.engine, found.version) == ("vllm", "0.13.1")
    assert asked == [("/start_profile", {}), ("/stop_profile", {})]
    assert waited == [10]


def test_sglang_is_told_where_to_write_and_what() -> None:
    with server(SGLANG | READY) as (url, asked):
        endpoints.record(endpoints.find(url), 1, "/there", steps=20, wait=lambda _: None)
    assert asked[0] == (
        "/start_profile", {"output_dir": "/there", "activities": ["CPU", "GPU"], "num_steps": 20},
    )  # fmt: skip


def test_sglang_that_stopped_by_itself_is_no_error() -> None:
    refuses = {"/start_profile": (200, ""), "/stop_profile": (400, "not in progress")}
    with server(SGLANG | refuses) as (url, _):
        endpoints.record(endpoints.find(url), 1, "/there", steps=20, wait=lambda _: None)
        with pytest.raises(BadUsage, match="says 400: not in progress"):
            endpoints.record(endpoints.find(url), 1, "/there", wait=lambda _: None)


def test_the_profiler_is_stopped_when_the_wait_is_broken_off() -> None:
    def broken(_: float) -> None:
        raise KeyboardInterrupt

    with server(VLLM | READY) as (url, asked):
        with pytest.raises(KeyboardInterrupt):
            endpoints.record(endpoints.find(url), 10, "/there", wait=broken)
        assert [path for path, _ in asked] == ["/start_profile", "/stop_profile"]


def test_what_a_server_lacks_is_said_with_the_flag_that_it_needs() -> None:
    with server(VLLM) as (url, _), pytest.raises(BadUsage, match="--profiler-config"):
        endpoints.record(endpoints.find(url), 1, "/there")
    with server({}) as (url, _), pytest.raises(BadUsage, match="neither as vLLM nor as SGLang"):
        endpoints.find(url)
    with pytest.raises(BadUsage, match="nobody answers"):
        endpoints.find("http://127.0.0.1:9")
    with pytest.raises(BadUsage, match="http://HOST:PORT is meant"):
        endpoints.find("localhost:8000")


def test_traces_that_a_server_wrote_come_into_the_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server writes when it is stopped; what lay there before stays there."""
    there, folder = tmp_path / "there", tmp_path / "run"
    there.mkdir()
    old = there / "old.pt.trace.json"
    old.write_text("{}")
    os.utime(old, (0, 0))
    trace = {
        "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1,
                         "ts": 1.0, "dur": 2.0}],
        "distributedInfo": {"rank": 0, "world_size": 1},
        "baseTimeNanoseconds": 1_767_189_312 * 10**9,
    }  # fmt: skip

    def write(path: str) -> None:
        if path == "/stop_profile":
            (there / "rank0.1.pt.trace.json").write_text(json.dumps(trace))

    with server(VLLM | READY, write) as (url, _):
        words = ["--attach", url, "--seconds", "0.01", "--written-to", str(there)]
        assert main(["collect", "--out", str(folder), *words]) == 0
    assert "1 files came from" in capfd.readouterr().err
    said = json.loads((folder / "manifest.json").read_text())
    assert said["engine"]["name"] == "vllm"
    assert [(f["path"], f["kind"]) for f in said["files"]] == [("rank0.1.pt.trace.json", "kineto")]
