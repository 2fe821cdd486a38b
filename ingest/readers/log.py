"""Text logs of services, libraries and kernels."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.secrets import redact
from teller.ingest.logs import ranks as who
from teller.ingest.logs.blocks import Block, Lines
from teller.ingest.logs.clock import Clock
from teller.ingest.logs.known import KNOWN
from teller.ingest.logs.learning import Learning, names_of_facts, together
from teller.ingest.logs.messages import messages
from teller.ingest.logs.parts import PIECES, PartReader
from teller.ingest.logs.prompts import without_prompts
from teller.ingest.logs.recognise import looks_like_log
from teller.ingest.logs.shapes import SHAPE, shapes
from teller.ingest.logs.strings import ints
from teller.ingest.logs.templates import Miner, parameters
from teller.ingest.logs.thinning import Thinning
from teller.ingest.logs.unread import Unread
from teller.ingest.records import LINES, SAMPLES, Learned, Records
from teller.ingest.source import PLACE_BITS, WORDS, Facts, Reading, Remark

FORMAT: Final = "log"
RETURNS: Final = 8  # blocks
LONGEST_MESSAGE: Final = 1 << 12  # of several lines; the beginning and the end are kept
BEGINNING: Final = 2560
MOST_LINES: Final = (1 << PLACE_BITS) // PIECES - 1


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether this is a log."""
    return looks_like_log(head, path)


def read(path: Path) -> Reading:
    """Read a log."""
    before = pa.default_memory_pool()
    # columns of a block come and go; the other pools give their pages back each time
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        return _Log(path).reading()
    finally:
        pa.set_memory_pool(before)


@dataclass(slots=True)
class _Log:
    """One file while it is read."""

    path: Path
    source: Lines = field(init=False)
    parts: PartReader = field(default_factory=PartReader)
    clock: Clock = field(default_factory=Clock)
    miner: Miner = field(default_factory=Miner)
    learning: Learning = field(default_factory=lambda: Learning.begin(KNOWN))
    thinning: Thinning = field(default_factory=Thinning)
    unread: Unread = field(default_factory=Unread)
    extra: list[pa.Table] = field(default_factory=list)  # samples of the machinery's own
    used: int = 0

    def __post_init__(self) -> None:
        self.source = Lines(self.path)

    def reading(self) -> Reading:
        lines = self._lines()
        if not self.used:
            return Reading(remarks=(*self._remarks(), self._empty()))
        return Reading(records=(self._records(lines),), remarks=tuple(self._remarks()))

    def _lines(self) -> pa.Table:
        kept = []
        for block in self.source.blocks():
            if block.first + len(block.text) > MOST_LINES:
                break
            kept.append(self._block(block))
            if len(kept) % RETURNS == 0:  # what blocks leave between what is kept adds up
                pa.system_memory_pool().release_unused()
        return pa.concat_tables(kept).combine_chunks() if kept else LINES.empty_table()

    def _block(self, block: Block) -> pa.Table:
        rows = messages(self.parts.parts(block))
        text = _shortened(without_prompts(redact(rows["text"].combine_chunks())))
        kind = np.asarray(rows["kind"].to_numpy(), np.int64)
        times = self.clock.settle(ints(pc.fill_null(rows["time_ns"], 0)), kind)
        lines = _set(_set(rows, "text", text), "time_ns", times)
        lines = _set(lines, "host", _null_if_empty(rows["host"]))
        lines = lines.append_column("step_index", pa.nulls(len(rows), pa.int64()))
        lines = lines.append_column("request", pa.nulls(len(rows), pa.string()))
        shape = shapes(text)
        lines = self.learning.learn(lines.append_column(SHAPE, shape))
        self.unread.look(lines)
        self.extra += _repeats(lines)
        lines = lines.append_column("template", self.miner.mine(text, shape))
        self.used += len(lines)
        return self.thinning.thin(lines).drop_columns(["understood", "kind", "repeated", SHAPE])

    def _records(self, lines: pa.Table) -> Records:
        every = who.seen(lines)
        by_process = who.ranks(every, self.learning.processes)
        by_pid = who.ranks_of_pids(every, by_process)
        host = who.only_host(every)

        def placed(table: pa.Table) -> pa.Table:
            return who.with_host(who.with_ranks(table, by_process, by_pid), host)

        facts = {}
        for name in names_of_facts():
            parts = self.learning.facts.take(name)
            if name == "samples":
                parts = [*parts, *self.extra, *self.unread.samples(), *self._thinned()]
            facts[name] = placed(together(parts, getattr(Learned(), name).schema))
        lines = placed(self._worded(lines))
        return Records(self._facts(lines, host), self.clock.kind, lines, **facts)

    def _worded(self, lines: pa.Table) -> pa.Table:
        """Set templates as they stand now, and what their holes stood for."""
        texts = self.miner.texts
        number = lines["template"].combine_chunks()
        params, text = lines["params"].combine_chunks(), lines["text"].combine_chunks()
        silent = params.is_null()
        found = parameters(text.filter(silent), number.filter(silent), texts)
        columns: dict[str, Any] = {name: lines[name] for name in lines.column_names}
        columns["params"] = pc.replace_with_mask(params, silent, found)
        same = pa.array(texts, pa.string()).dictionary_encode()  # two may have become alike
        columns["template"] = pa.DictionaryArray.from_arrays(
            same.indices.take(number), same.dictionary
        )
        return pa.table([_cast(columns[f.name], f.type) for f in LINES], schema=LINES)

    def _facts(self, lines: pa.Table, host: str) -> Facts:
        facts = Facts(str(self.path), FORMAT, event_count=self.used)
        if host:
            facts = replace(facts, host=host, host_source="lines")
        ranks, pids = (pc.unique(lines[n].drop_null()).to_pylist() for n in ("rank", "pid"))
        if len(pids) == 1:
            facts = replace(facts, pid=pids[0])
        if len(ranks) == 1 and not lines["rank"].null_count:
            facts = replace(facts, rank=ranks[0], rank_source="lines")
        return facts

    def _thinned(self) -> Iterator[pa.Table]:
        """Say how many messages there were, where not all of them are kept."""
        if not self.thinning.left_out:
            return
        seconds = self.thinning.per_second()
        yield _samples("log.lines", seconds, seconds["messages"], seconds["process"])

    def _remarks(self) -> Iterator[Remark]:
        name, source = str(self.path), self.source
        if source.damage:
            yield Remark(name, f"line {source.count}", source.damage,
                         "copy the file again; what stands before that was read")  # fmt: skip
        if source.foreign:
            yield Remark(name, "", "holds bytes that are no UTF-8", "they are shown as �")
        if source.long:
            what = f"{source.long:,} lines are longer than 16 KiB and were cut"
            yield Remark(name, "", what, "shorten what the service prints")
        if source.count > MOST_LINES:
            yield Remark(name, f"line {MOST_LINES}", "has more lines than are read", "split it")
        if left := self.thinning.left_out:
            what = f"{left:,} of {self.used:,} messages were counted and not kept"
            yield Remark(name, "", what, "cut the log to the minutes in question to see all")
        for kind, left in sorted((+self.learning.facts.left_out).items()):
            what = f"{left:,} of its {kind} were counted and not kept: there are too many"
            yield Remark(name, "", what, "cut the log to the minutes in question to see all")
        for failure in self.learning.failed:
            what = f"lines that could not be made sense of ({failure})"
            yield Remark(name, "", what, "report it with the file; other lines were read")
        yield from self.unread.remarks(name)

    def _empty(self) -> Remark:
        remedy = "give a log that has lines, or leave it out"
        return Remark(str(self.path), "line 1", "the log holds no message", remedy)


def _set(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def _cast(column: Any, kind: pa.DataType) -> Any:
    if kind == WORDS and not pa.types.is_dictionary(column.type):
        return pc.dictionary_encode(column).cast(kind)
    return column.cast(kind)


def _null_if_empty(column: Any) -> Any:
    return pc.if_else(pc.equal(column, ""), None, column)


def _shortened(text: pa.Array) -> pa.Array:
    """Keep beginning and end of messages of many lines: the error itself stands last."""
    long = pc.and_(
        pc.greater(pc.binary_length(text), LONGEST_MESSAGE), pc.match_substring(text, "\n")
    )
    if not pc.any(long).as_py():
        return text
    some = text.filter(long)
    first = pc.utf8_slice_codeunits(some, 0, BEGINNING)
    last = pc.utf8_slice_codeunits(some, BEGINNING - LONGEST_MESSAGE, None)
    return pc.replace_with_mask(text, long, pc.binary_join_element_wise(first, last, "\n…\n"))


def _repeats(lines: pa.Table) -> Iterable[pa.Table]:
    """Say how often a collector folded a line."""
    rows = lines.filter(lines["repeated"].is_valid())
    return [_samples("log.repeated", rows, rows["repeated"], rows["text"])] if len(rows) else []


def _samples(name: str, rows: pa.Table, value: Any, text: Any) -> pa.Table:
    """Give a sample a row, with what the rows say of place and time."""
    given = {c: rows[c] for c in SAMPLES.names if c in rows.column_names}
    given |= {"name": pa.repeat(pa.scalar(name), len(rows)), "value": value, "text": text}
    return pa.table(
        [_cast(given[f.name], f.type) if f.name in given else pa.nulls(len(rows), f.type)
         for f in SAMPLES], schema=SAMPLES,
    )  # fmt: skip
