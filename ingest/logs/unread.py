"""Lines that look like records of a known program and that nothing reads."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import samples
from teller.ingest.logs.shapes import near
from teller.ingest.source import Remark

# kind, and what stands in such a record; a header of NCCL that is whole is taken off its text
KINDS: Final = (
    ("NCCL message", r"NCCL (?:INFO|WARN) "),
    ("Xid record", r"NVRM: Xid"),
    ("watchdog record", r"Watchdog caught collective"),
    ("SGLang batch record", r"(?:Decode|Prefill) batch[.,] "),
    ("vLLM statistics record", r"Avg prompt throughput: "),
    ("TensorRT-LLM iteration record", r"host_step_time = "),
)
ANY: Final = "|".join(pattern for _, pattern in KINDS)
WORDS: Final = ("NCCL ", "Xid", "Watchdog", " batch", "Avg prompt", "host_step_time")
LONGEST: Final = 200


@dataclass(slots=True)
class Unread:
    """Counts them, by kind."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, pa.Table] = field(default_factory=dict)

    def look(self, lines: pa.Table) -> None:
        """Look at the lines of a block."""
        rows = lines.filter(pc.invert(lines["understood"]))
        rows = near(rows, *WORDS)
        rows = rows.filter(pc.match_substring_regex(rows["text"], ANY))
        for kind, pattern in KINDS if len(rows) else ():
            mine = rows.filter(pc.match_substring_regex(rows["text"], pattern))
            if not len(mine):
                continue
            self.first.setdefault(kind, mine.slice(0, 1))
            self.counts[kind] = self.counts.get(kind, 0) + len(mine)

    def samples(self) -> Iterator[pa.Table]:
        """Give one for each kind, with how many there are and the first of them."""
        for kind, one in self.first.items():
            example = pc.utf8_slice_codeunits(one["text"], 0, LONGEST)
            yield samples("log.unread", one, value=pa.array([self.counts[kind]]), text=example)

    def remarks(self, name: str) -> Iterator[Remark]:
        """Say what was not read."""
        for kind, count in self.counts.items():
            what = f"{count:,} lines look like a {kind} and could not be read"
            remedy = (
                "the writer may be newer than what is known, or processes wrote into each other"
            )
            yield Remark(name, f"line {self.first[kind]['line'][0].as_py()}", what, remedy)
