"""What lines of web servers and of Python in general mean."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from teller.ingest.logs.known import server

Lines = Callable[..., pa.Table]


def rows(lines: pa.Table) -> list[tuple[str, float | None, str, int]]:
    """Give name, value, text and line of the samples of lines."""
    made = server.knowing().learn(lines).learned.samples.to_pylist()
    return [(row["name"], row["value"], row["text"], row["line"]) for row in made]


def test_answers_are_counted_by_kind_without_what_was_asked(lines: Lines) -> None:
    texts = [
        'INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
        '10.0.0.1:1 - "POST /v1/completions?key=secret HTTP/1.1" 200 OK',
        '10.0.0.2:1 - "POST /v1/completions HTTP/1.1" 200',
        '10.0.0.1:1 - "GET /v1/responses/resp_68ab12cd34ef56ab7890 HTTP/1.1" 404 Not Found',
        '10.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable',
    ]
    found = rows(lines(texts))
    assert sorted(found, key=str) == [
        ("engine.health_failed", 503, "GET /health", 5),
        ("http.responses", 1, "GET /health 200", 1),
        ("http.responses", 1, "GET /health 503", 5),
        ("http.responses", 1, "GET /v1/responses/* 404", 4),
        ("http.responses", 2, "POST /v1/completions 200", 2),
    ]


def test_a_traceback_is_named_by_its_last_line(lines: Lines) -> None:
    text = (
        'Exception in ASGI application\nTraceback (most recent call last):\n  File "x.py", line 1\n'
        "    run()\nvllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    )
    words = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    assert rows(lines([text])) == [("log.exception", None, words, 1)]
    assert rows(lines(["Traceback (most recent call last):"])) == []


def test_device_memory_that_ran_out(lines: Lines) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"
    assert rows(lines([text])) == [("engine.error", None, text, 1)]


def test_answers_of_real_files(shared: Path, lines: Lines) -> None:
    for path in sorted((shared / "traces").glob("[sv]*_log/*.log")):
        texts = path.read_text(errors="replace").splitlines()
        count = sum(bool(re.search(r'HTTP/1\.1" \d{3}', text)) for text in texts)
        found = rows(lines(texts))
        assert sum(value or 0 for name, value, *_ in found if name == "http.responses") == count
        started = sum("Application startup complete" in text for text in texts)
        assert sum(name == "engine.ready" for name, *_ in found) == started
