"""Is this a log? Told by the first lines alone."""

import re
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.blocks import COLOUR
from teller.ingest.logs.grammars import HEAD, HEADERS, PREFIXES

FIRST_LINES: Final = 400
OFTEN: Final = 0.3  # share of lines with a header that many programs write
SELDOM: Final = 0.02  # share of lines with a header that one program writes
CODE: Final = 0.15  # share of lines of source text from which even a sure header is a quotation
NAMED: Final = re.compile(r"\.(?:log|out|err|stdout|stderr)(?:\.\d+|-\d{8})?(?:\.gz)?$")
SURE: Final = "^(?:" + "|".join(g.bare for g in (*PREFIXES, *HEADERS) if g.sure) + ")"
# lines that no header marks: tables of benchmarks, reports of fault injection, batches of SGLang
MARKS: Final = (
    r"^#? *nThread \d+ nGpus \d+ minBytes \d+|^# +Rank +\d+ .*Pid +\d+ on |"
    r"^Latency of step \d+: |^ iteration +\d+/ *\d+ \||^Rank \d+, fault_type: |^Fault ranks: \[|"
    r"^(?:\[\d{4}-[^\]]+\] )?(?:Decode|Prefill) batch[.,] #"  # as many commas as a table
)
STRUCTURED: Final = re.compile(rb"^\s*(?:[{<]|\[\s*[\[{\"]|---\s|%YAML|# (?:HELP|TYPE) |#!)")
SOURCE: Final = (
    r"^\s*(?:import \w|from [\w.]+ import |def \w+\(|class \w+[(:]|#include|#define|package \w+;|"
    r"func \w+\(|public |private |return |const |let |var |\}|\{|//|/\*|\"\"\"|@\w+|#{1,6} \S|```|"
    r"\| ?-|- \[|\* |> )"
)
METRIC: Final = (
    r"^(?:# (?:HELP|TYPE|EOF)|[a-zA-Z_:][\w:]*(?:\{[^}]*\})? -?[\d.eE+naifNI-]+(?: \d+)?$)"
)


def looks_like_log(head: bytes, path: Path) -> bool:
    """Tell whether text is of a log: what it holds counts, and a log's name where that is plain."""
    if not head.strip() or _binary(head) or STRUCTURED.match(head.removeprefix(b"\xef\xbb\xbf")):
        return False
    lines = _lines(head)
    if not len(lines) or _share(lines, METRIC) > 0.5:
        return False
    if pc.any(pc.match_substring_regex(lines, MARKS)).as_py() and _share(lines, SOURCE) < 0.5:
        return True
    if _share(lines, SOURCE) > CODE:
        return _share(lines, SURE) > 0.5
    if _share(lines, SURE) > SELDOM:
        return True
    if _table(lines):
        return False
    return _share(lines, HEAD) > OFTEN or NAMED.search(path.name) is not None


def _binary(head: bytes) -> bool:
    sample = head[:4096]
    odd = sum(sample.count(bytes([b])) for b in (*range(9), *range(14, 27), 127))
    return odd > len(sample) // 50


def _lines(head: bytes) -> pa.Array:
    text = COLOUR.sub(b"", head).decode(errors="replace").replace("\r\n", "\n")
    lines = pa.array(text.split("\n")[:FIRST_LINES])
    lines = pc.replace_substring_regex(lines, "^[^\n]*\r", "")
    return lines.filter(pc.match_substring_regex(lines, r"\S"))


def _share(lines: pa.Array, pattern: str) -> float:
    return (pc.sum(pc.match_substring_regex(lines, pattern)).as_py() or 0) / len(lines)


def _table(lines: pa.Array) -> bool:
    """Tell whether it is a table with separators: the same number of them in every line."""
    for sign in (",", ";", "\t"):
        counts = pc.count_substring(lines.slice(0, 20), sign)
        if len(lines) > 1 and counts[0].as_py() >= 2 and len(pc.unique(counts)) == 1:
            return True
    return False
