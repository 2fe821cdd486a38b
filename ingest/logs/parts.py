"""Physical lines, or parts of them, with what their heads say: a table in the order of the file."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.blocks import Block
from teller.ingest.logs.grammars import HEAD, HEADERS
from teller.ingest.logs.heads import TEXT, HeadReader
from teller.ingest.logs.strings import cut, ints
from teller.ingest.logs.times import Times

PIECES: Final = 4  # messages that one physical line can hold; what is glued on more stays as it is
MOST_WEAK: Final = 256  # launchers' words that are remembered
INSIDE: Final = r":\d+:\d+ (?:\[-?\d+\] )?(?:\S+:\d+ )?NCCL [A-Z]{4,7} "
HOST: Final = r"[A-Za-z][\w.-]*"
BAR: Final = r"(?:it/s|s/it)[^\s\[\]]{0,20}\] ?"  # a progress bar without a line end behind it
ENGINE: Final = r"(?:\[[12]\d{3}-\d\d-\d\d |[A-Z]{4,8} \d\d-\d\d \d\d:|\(\w+ pid=\d+\) )"
GLUED: Final = f"{INSIDE}|{BAR}{ENGINE}"
WORKER: Final = "^(?:VllmWorker|Worker)"
WORDS: Final = tuple(name for name in TEXT if name != "host")  # of few values
HEADER_NAMES: Final = pa.array([g.name for g in HEADERS])
REPEATED: Final = r" *\[repeated (?P<times>\d{1,9})x across cluster\](?: \(Ray deduplicates.*)?"


@dataclass(slots=True)
class PartReader:
    """Gives blocks as tables; knows what launchers of this file put in front, and its hosts."""

    heads: HeadReader = field(default_factory=HeadReader)
    weak: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    tasks_are_ranks: bool = True  # until one task shows several workers

    def parts(self, block: Block) -> pa.Table:
        """Give the parts of a block's lines; `text` has no head, blank lines are left out."""
        line = pa.array(np.arange(block.first, block.first + len(block.text)))
        filled = pc.match_substring_regex(block.text, r"\S")
        text, line = block.text.filter(filled), line.filter(filled)
        table = self._headed(text, line, pa.array(np.zeros(len(text), np.int64)))
        glued = pc.match_substring_regex(table["text"], GLUED).combine_chunks()
        if pc.any(glued).as_py():
            again = self._headed(*self._pieces(text.filter(glued), line.filter(glued)))
            table = pa.concat_tables([table.filter(pc.invert(glued)), again]).sort_by("place")
        return _repeated(self._with_tasks(table))

    def _headed(self, text: pa.Array, line: pa.Array, piece: pa.Array) -> pa.Table:
        head, body = _split(text)
        coded = head.dictionary_encode()
        said = self.heads.read(coded.dictionary)
        self.weak.update(said.weak[: max(0, MOST_WEAK - len(self.weak))])
        bare = pc.equal(pc.binary_length(head), 0)
        if self.weak and pc.any(bare).as_py():
            head, body = self._weakly(head, body, bare)
            coded = head.dictionary_encode()
            said = self.heads.read(coded.dictionary)
        nccl = (said.text["grammar"] == "nccl") & (said.text["host"] != "")
        self.hosts.update(said.text["host"][nccl].tolist())
        at = coded.indices
        columns: dict[str, Any] = {
            "place": pc.add(pc.multiply(line, PIECES), piece),
            "line": line,
            "head": at,
            "text": body,
            **{name: _words(said.text[name], at) for name in WORDS},
            "host": pa.array(said.text["host"], pa.string()).take(at),
            **{name: _known(getattr(said, name)).take(at) for name in ("pid", "rank", "task")},
            **_times(said.times, at),
        }
        headed = pc.is_in(columns["grammar"], HEADER_NAMES)
        return pa.table({**columns, "headed": headed})

    def _with_tasks(self, table: pa.Table) -> pa.Table:
        """Take a launcher's number for the rank, but not where it numbers nodes."""
        if self.tasks_are_ranks and table["task"].null_count < len(table):
            works = pc.or_(
                pc.equal(table["origin"], "nccl"),
                pc.match_substring_regex(table["process"].cast(pa.string()), WORKER),
            )
            pairs = table.filter(works).select(["task", "pid"]).drop_null()
            pairs = pairs.group_by(["task", "pid"], use_threads=False).aggregate([])
            self.tasks_are_ranks = len(pc.unique(pairs["task"])) == len(pairs)
        if self.tasks_are_ranks:
            rank = pc.coalesce(table["rank"], table["task"])
            table = table.set_column(table.schema.get_field_index("rank"), "rank", rank)
        return table.drop_columns(["task"])

    def _weakly(self, head: pa.Array, body: pa.Array, bare: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Take off what launchers put before lines without a header, as lines with one showed."""
        words = "|".join(re.escape(w) for w in sorted(self.weak))
        less = pc.if_else(bare, pc.replace_substring_regex(body, f"^(?:{words})", ""), body)
        taken, rest = cut(body, ints(pc.binary_length(body)) - ints(pc.binary_length(less)))
        return pc.if_else(bare, taken, head), rest

    def _pieces(self, text: pa.Array, line: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Cut lines before each message inside them; where hosts are known, only at these."""
        known = sorted(self.hosts, key=len, reverse=True)[:MOST_WEAK]
        host = "|".join(re.escape(h) for h in known) or HOST
        apart = pc.replace_substring_regex(text, f"((?:{host}){INSIDE})", "\n\\1")
        apart = pc.replace_substring_regex(apart, f"({BAR})({ENGINE})", "\\1\n\\2")
        split = pc.split_pattern(pc.utf8_ltrim(apart, "\n"), "\n", max_splits=PIECES - 1)
        parent = pc.list_parent_indices(split)
        piece = np.arange(len(parent)) - ints(split.offsets)[:-1][ints(parent)]
        return split.flatten(), line.take(parent), pa.array(piece)


def _split(text: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Cut lines behind their heads."""
    # a replacement without groups costs a tenth of an extraction
    body = pc.replace_substring_regex(text, HEAD, "")
    return cut(text, ints(pc.binary_length(text)) - ints(pc.binary_length(body)))


def _words(text: Any, at: pa.Array) -> pa.DictionaryArray:
    coded = pa.array(text, pa.string()).dictionary_encode()  # heads differ and say the same
    return pa.DictionaryArray.from_arrays(coded.indices.take(at), coded.dictionary)


def _known(values: Any) -> pa.Array:
    return pa.array(values, mask=values < 0)


def _times(times: Times, at: pa.Array) -> dict[str, pa.Array]:
    rows = ints(at)
    none = times.kind[rows] == 0
    return {
        "time_ns": pa.array(times.ns[rows], mask=none),
        "kind": pa.array(times.kind[rows]),
        "resolution_ns": pa.array(times.resolution[rows], mask=none),
    }


def _repeated(table: pa.Table) -> pa.Table:
    """Take off how often a collector folded a line; `repeated` is null where it says nothing."""
    text = table["text"].combine_chunks()
    said = pc.match_substring(text, "x across cluster]")
    if not pc.any(said).as_py():
        return table.append_column("repeated", pa.nulls(len(text), pa.int64()))
    times = pc.struct_field(pc.extract_regex(text, REPEATED), "times")
    plain = pc.if_else(said, pc.replace_substring_regex(text, REPEATED, ""), text)
    table = table.set_column(table.schema.get_field_index("text"), "text", plain)
    return table.append_column("repeated", pc.cast(times, pa.int64()))
