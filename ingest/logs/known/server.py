"""Web servers and Python in general: answers by kind, readiness, tracebacks, device memory."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant, matched, samples
from teller.ingest.logs.meaning import having, labelled, meant
from teller.ingest.logs.phrases import Phrase

_ACCESS: Final = " HTTP/"
_TRACEBACK: Final = "Traceback (most recent call last)"
_KINDS: Final = 200  # kinds of answers that a block may tell

_PHRASES: Final = (
    Phrase("engine.ready", "Application startup complete", "", "http"),
    Phrase(
        "log.exception",
        _TRACEBACK,
        r"(?s)Traceback .*\n(?P<text>[A-Za-z_][\w.]*(?::[^\n]*)?)\s*$",
    ),
    Phrase(
        "engine.error",
        "ut of memory",
        r"(?P<text>(?:[\w.]*OutOfMemoryError: )?(?:CUDA|HIP|XPU|NPU) out of memory[^\n]*)",
    ),
    Phrase(
        "engine.health_failed",
        " HTTP/",
        r'"(?P<text>(?:GET|POST) /(?:health|ping|v2/health)\S*) HTTP/[\d.]+" (?P<value>5\d\d)',
    ),
)

MARKS: tuple[str, ...] = (_ACCESS, *phrases.marks(_PHRASES))


class _Knowing:
    """What one file's lines of servers mean."""

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        single, known = phrases.read(lines, _PHRASES)
        return meant([_answers(having(lines, _ACCESS)), *single], known)


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()


def _answers(lines: pa.Table) -> pa.Table:
    """Count answers of each kind in this block; a sample stands at the first line of its kind."""
    rows = matched(
        lines, r'"(?P<method>[A-Z]+) (?P<path>/[^\s?"#]*)\S* HTTP/[\d.]+" (?P<status>\d{3})\b'
    )
    path = pc.replace_substring_regex(rows["path"], r"/(?:\d+|[^/]*[0-9a-fA-F-]{12,}[^/]*)", "/*")
    kind = labelled("{} {} {}", rows["method"], path, rows["status"])
    counts = pc.value_counts(kind)
    kinds, sizes = counts.field("values"), counts.field("counts")
    most = pc.select_k_unstable(pa.record_batch({"n": sizes}), _KINDS, [("n", "descending")])
    kinds, sizes = kinds.take(most), sizes.take(most)
    first = rows.take(pc.index_in(kinds, kind))
    return samples("http.responses", first, value=sizes, text=kinds)
