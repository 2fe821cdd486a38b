"""Metrics in Prometheus's text format or OpenMetrics: one scrape, or several one after another."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.prometheus_names import FAMILIES
from teller.ingest.readers.prometheus_series import Series
from teller.ingest.readers.side_lines import Block, Lines, head_lines
from teller.ingest.readers.side_tables import Unread, joined, reading
from teller.ingest.readers.side_times import civil, of_name
from teller.ingest.records import SAMPLES, ClockKind, Records
from teller.ingest.source import Facts, Reading

FORMAT: Final = "prometheus"

# The parser of prometheus_client goes line by line and stops at the first that it cannot read; here
# a block is one expression, and a bad line costs only itself.
_LABELS: Final = r'\{(?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}'
_VALUE: Final = r"(?P<value>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[Ii]nf|NaN))"
SAMPLE: Final = (
    rf"^\s*(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\s*{_LABELS}\s*|\s+){_VALUE}"
    r"(?:\s+(?P<at>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))?\s*(?:#.*)?$"
)
_TYPE: Final = re.compile(r"#\s*(?:TYPE|HELP|UNIT)\s+[a-zA-Z_:]|# EOF")
_NO_SAMPLE: Final = r"^\s*(?:#.*|=+.*|-+.*)?$"
ENDINGS_LEFT_OUT: Final = r"(?:_bucket|_created)$"
HEAD_LINES: Final = 200


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins with metrics: comments and `name{labels} value` lines alone."""
    lines = [line for line in head_lines(head)[:HEAD_LINES] if line.strip()]
    typed = sum(1 for line in lines if _TYPE.match(line))
    names = [match[1] for line in lines if (match := re.match(SAMPLE, line))]
    ours = typed or any(name.startswith(FAMILIES) for name in names)
    return bool(ours and names) and typed + len(names) >= 0.8 * len(lines)


def read(path: Path) -> Reading:
    """Read one file of metrics: samples, in the vocabulary's names where it has them."""
    lines, unread = Lines(path), Unread()
    scrapes = _Scrapes()
    parts = [scrapes.table(block, unread) for block in lines.blocks()]
    samples = joined(SAMPLES, parts)
    if scrapes.times == "none":
        samples = scrapes.of_name(samples, path)
    facts = Facts(str(path), FORMAT, host=scrapes.series.host,
                  host_source="label" if scrapes.series.host else "",
                  options={"scrape": path.name}, event_count=samples.num_rows)  # fmt: skip
    records = Records(facts, scrapes.times, samples=samples)
    return reading(lines, records, unread, "metric")


@dataclass(slots=True)
class _Scrapes:
    """Reads block after block; knows the labels and the time that stood above."""

    series: Series = field(default_factory=Series)
    times: ClockKind = "none"
    _above: int | None = None  # ns that a line above the samples told

    def table(self, block: Block, unread: Unread) -> pa.Table:
        """Give the samples of a block."""
        parts = pc.extract_regex(block.lines, SAMPLE)
        sample = parts.is_valid()
        bare = pc.match_substring_regex(block.lines, _NO_SAMPLE)
        above, timed = self._told(block.lines, sample)
        unread.add(block.numbers.filter(pc.invert(pc.or_(pc.or_(sample, bare), timed))))
        groups = parts.filter(sample)
        column = {name: pc.struct_field(groups, name) for name in ("name", "labels", "value", "at")}
        rows = pa.table(column | {
            "line": block.numbers.filter(sample),
            "time_ns": pc.coalesce(self._stamp(column["at"]), above.filter(sample)),
        })  # fmt: skip
        kept = pc.invert(pc.match_substring_regex(rows["name"], ENDINGS_LEFT_OUT))
        return self.series.samples(rows.filter(kept))

    def of_name(self, samples: pa.Table, path: Path) -> pa.Table:
        """Give the samples the time that the file's name tells, if it tells one."""
        ns, utc = of_name(path)
        if ns is None:
            return samples
        self.times = "utc" if utc else "local"
        at = SAMPLES.get_field_index("time_ns")
        return samples.set_column(at, "time_ns", pa.repeat(pa.scalar(ns), samples.num_rows))

    def _told(self, lines: pa.Array, sample: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Give the time that a line between samples told last, and which lines told one."""
        help_line = pc.match_substring_regex(lines, r"^#\s*(?:HELP|TYPE|UNIT)\s")
        candidate = pc.if_else(pc.or_(sample, help_line), None, lines)
        ns, zoned = civil(candidate)
        if pc.any(ns.is_valid()).as_py() and self.times == "none":
            self.times = "utc" if pc.all(zoned.filter(ns.is_valid())).as_py() else "local"
        told = pc.fill_null_forward(ns)
        told = told if self._above is None else pc.fill_null(told, self._above)
        self._above = told[-1].as_py() if len(told) else self._above
        return told, ns.is_valid()

    def _stamp(self, text: pa.Array) -> pa.Array:
        """Give ns of the samples' own stamps: ms, or seconds as OpenMetrics writes them."""
        value = pc.cast(pc.if_else(pc.equal(text, ""), None, text), pa.float64())
        if value.null_count < len(value):
            self.times = "utc"
        seconds = pc.less(pc.abs(value), 1e11)
        ms = pc.round(pc.multiply(value, pc.if_else(seconds, 1e3, 1.0)))
        return pc.multiply(pc.cast(ms, pa.int64(), safe=False), 1_000_000)
