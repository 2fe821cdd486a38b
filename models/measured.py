"""What one run measured, as tables for a comparison: steps with their load, and what is in them.

A run without steps can be cut into slices of equal length instead: then only calls, not steps, are
compared.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from teller.graph.store import Store
from teller.models.contrast import STRETCHES, buckets

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

PHASES: Final = ("unknown", "decode", "mixed", "prefill")
MOST_STEPS: Final = 4_000  # whose operators are compared; of more, every so manieth

_STEPS: Final = """
MATCH (t:Step) WHERE t.run_id = $run
RETURN t.step_index AS step_index, min(t.phase) AS phase, max(t.phase) AS other_phase,
       max(t.dur_ns) AS step_ns, max(t.token_count) AS tokens, max(t.batch_size) AS batch,
       max(t.context_tokens) AS context
ORDER BY step_index
"""
_ITERATIONS: Final = """
MATCH (i:Iteration) WHERE i.run_id = $run
RETURN i.step_index AS step_index, i.dur_ns AS whole_ns ORDER BY step_index
"""
_WINDOW: Final = """
MATCH (s:Span) WHERE s.run_id = $run RETURN min(s.start_ns) AS first_ns, max(s.start_ns) AS last_ns
"""
_OPERATORS: Final = """
MATCH (s:Span) WHERE s.run_id = $run AND {within}
RETURN {step} AS step_index, s.operator AS operator, s.family AS family, s.layer AS layer,
       s.stream IS NOT NULL AS device, sum(s.own_ns) AS own_ns, sum(s.gap_ns) AS gap_ns,
       count(*) AS calls
"""
_COLLECTIVES: Final = """
MATCH (s:Span)-[j:IN_COLLECTIVE]->(c:Collective)-[:IN_GROUP]->(g:ProcessGroup)
WHERE c.run_id = $run AND {within}
RETURN {step} AS step_index, c.op AS op, g.parallelism AS parallelism, g.world_size AS world_size,
       c.size_bytes AS size_bytes, sum(j.wait_ns) AS wait_ns,
       sum(CASE WHEN c.last_rank = s.rank AND c.pure_ns IS NOT NULL THEN c.pure_ns ELSE 0 END)
           AS pure_ns,
       sum(CASE WHEN c.last_rank = s.rank AND c.pure_ns IS NOT NULL THEN 1 ELSE 0 END) AS calls
"""
_SAMPLES: Final = """
MATCH (q:Sample)
WHERE q.run_id = $run AND q.value IS NOT NULL
      AND (q.name STARTS WITH 'engine.' OR q.name STARTS WITH 'step.')
RETURN q.name AS name, q.value AS value, q.text AS text, q.input_id AS input_id, q.line AS line
ORDER BY q.time_ns, q.input_id, q.line
"""
_REQUESTS: Final = """
MATCH (q:Request) WHERE q.run_id = $run
RETURN q.prompt_tokens AS prompt_tokens, q.output_tokens AS output_tokens, q.ttft_ns AS ttft_ns,
       q.itl_p50_ns AS itl_p50_ns, q.queue_ns AS queue_ns
ORDER BY q.start_ns, q.id
"""


@dataclass(frozen=True, slots=True)
class Loads:
    """The load of each step: numbers that are not known are NaN."""

    phase: Ints  # place in PHASES
    tokens: Floats
    batch: Floats
    context: Floats

    def keys(self) -> Ints:
        """Give a row of bucket numbers for each step; steps of equal rows have like loads."""
        return np.column_stack(
            [self.phase, buckets(self.batch, 2), buckets(self.tokens, 2), buckets(self.context, 1)]
        )


class Measured:
    """One run in a store, as tables that are asked for once."""

    def __init__(self, store: Store, run: int, *, sliced: bool = False) -> None:
        """Look at one run; with `sliced` its steps are left aside."""
        self._store, self._run, self._sliced = store, run, sliced

    def _ask(self, text: str) -> pa.Table:
        return self._store.query(text.replace("$run", str(self._run)))

    @cached_property
    def steps(self) -> pa.Table:
        """Give the steps over all ranks: the longest rank's time, and the largest load."""
        return self._ask(_STEPS)

    @property
    def step_index(self) -> Ints:
        """Give the numbers of the steps, or of the slices, in order."""
        if self._sliced:
            return np.arange(STRETCHES)
        found: Ints = self.steps["step_index"].to_numpy()
        return found

    @property
    def looked_into(self) -> Flags:
        """Tell of each step whether its operators are there: of very many steps only some are."""
        found: Flags = self.step_index % self._every == 0
        return found

    @property
    def _every(self) -> int:
        steps: int = 0 if self._sliced else self.steps.num_rows
        return steps // MOST_STEPS + 1

    @cached_property
    def loads(self) -> Loads:
        """Give the load of each step; a slice has none that is known."""
        if self._sliced:
            unknown = np.full(STRETCHES, np.nan)
            return Loads(np.zeros(STRETCHES, np.int64), unknown, unknown, unknown)
        one, other = (self.steps[c].to_pylist() for c in ("phase", "other_phase"))
        phases = [a if a == b else "mixed" for a, b in zip(one, other, strict=True)]
        code = [PHASES.index(p) if p in PHASES else 0 for p in phases]
        load = (floats(self.steps[c]) for c in ("tokens", "batch", "context"))
        return Loads(np.array(code, np.int64), *load)

    @cached_property
    def between_ns(self) -> Floats:
        """Give the time from the end of the step before to the start of each step's work."""
        whole = self._ask(_ITERATIONS)
        at = np.searchsorted(whole["step_index"].to_numpy(), self.step_index)
        lasts = np.append(floats(whole["whole_ns"]), np.nan)[np.minimum(at, whole.num_rows)]
        between: Floats = np.maximum(lasts - floats(self.steps["step_ns"]), 0)
        return between

    @cached_property
    def rank_count(self) -> int:
        """Give the number of ranks that have spans."""
        label = "Span" if self._sliced else "Step"
        asked = f"MATCH (s:{label}) WHERE s.run_id = $run RETURN DISTINCT s.rank AS rank"
        ranks: int = self._ask(asked).num_rows
        return max(ranks, 1)

    @cached_property
    def operators(self) -> pa.Table:
        """Give own time, gaps and calls by step and operator, summed over ranks."""
        return self._ask(self._by_step(_OPERATORS))

    @cached_property
    def collectives(self) -> pa.Table:
        """Give pure and waiting time by step, kind, group and size, summed over ranks."""
        return self._ask(self._by_step(_COLLECTIVES))

    @cached_property
    def samples(self) -> pa.Table:
        """Give the figures of engines and of their iterations."""
        return self._ask(_SAMPLES)

    @cached_property
    def requests(self) -> pa.Table:
        """Give the requests."""
        return self._ask(_REQUESTS)

    def places(self, table: pa.Table) -> Ints:
        """Give the place of each row's step among all steps."""
        found: Ints = np.searchsorted(self.step_index, table["step_index"].to_numpy())
        return found

    def summed(self, at: Ints, value: Floats) -> Floats:
        """Sum up values by the place of their step, for one rank in the mean of all."""
        total = np.bincount(at, np.nan_to_num(value), len(self.step_index))
        return np.asarray(total / self.rank_count, np.float64)

    def _by_step(self, text: str) -> str:
        step, within = "s.step_index", "s.step_index IS NOT NULL"
        if self._every > 1:
            within += f" AND s.step_index % {self._every} = 0"
        if self._sliced:
            window = self._ask(_WINDOW).to_pylist()[0]
            first, last = window["first_ns"] or 0, window["last_ns"] or 0
            width = (last - first) // STRETCHES + 1
            step, within = f"(s.start_ns - {first}) / {width}", "s.start_ns IS NOT NULL"
        return text.replace("{step}", step).replace("{within}", within)


def floats(column: pa.ChunkedArray) -> Floats:
    """Give numbers with NaN for null."""
    found: Floats = column.cast(pa.float64()).to_numpy().astype(np.float64)
    return found


def texts(column: pa.ChunkedArray) -> list[str]:
    """Give words with "" for null."""
    return [value or "" for value in column.to_pylist()]
