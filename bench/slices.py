"""Measure how many slices a CPU second cuts out of the embedded graph of a workspace.

`python bench/slices.py WORKSPACE --most 500` cuts the slices of the steps of its latest run in one
call, repeats that, and prints the best round and what each query took of it. One thread.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from teller.graph import queries
from teller.graph.embedded import EmbeddedStore
from teller.graph.workspace import Workspace
from teller.models.slices import slice_of

ROUNDS: Final = 5
GOAL: Final = 500 * 500  # spans of whole steps a CPU second


class Clocked(EmbeddedStore):
    """The store, with the CPU seconds of each query."""

    spent: defaultdict[str, float]  # by text

    def query(self, text: str, params: Mapping[str, object] | None = None) -> pa.Table:
        """Answer, and keep how long it took."""
        begin = time.process_time()
        found = super().query(text, params)
        self.spent[text] += time.process_time() - begin
        return found


def main() -> None:
    """Measure as the command line says."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("workspace", type=Path)
    said.add_argument("--most", type=int, default=500, help="steps at once")
    said.add_argument("--rounds", type=int, default=ROUNDS)
    told = said.parse_args()
    run = Workspace(told.workspace).entries()[-1].run_id
    [path] = (told.workspace / "graph").glob("*.lbdb")
    with Clocked(path, read_only=True, threads=1) as store:
        store.spent = defaultdict(float)
        ids = _steps(store, run)[: told.most]
        slice_of(store, run, ids[:1])  # texts are compiled once a connection
        found = [_round(store, run, ids) for _ in range(told.rounds)]
    spent, spans, kept, by_query = min(found, key=lambda f: f[0])
    sys.stdout.write(
        f"{len(ids)} steps of {spans / len(ids):.0f} spans, {kept / len(ids):.0f} kept: "
        f"{spent:.3f} CPU s, {len(ids) / spent:,.0f} steps/s, {spans / spent:,.0f} spans/s "
        f"(goal {GOAL:,})\n"
    )
    by_query["all else"] = spent - sum(by_query.values())
    for name, seconds in sorted(by_query.items(), key=lambda one: -one[1]):
        sys.stdout.write(f"  {name:20s} {seconds:.3f}\n")


def _steps(store: EmbeddedStore, run: int) -> list[int]:
    text = "MATCH (t:Step) WHERE t.run_id = $run RETURN t.id AS id ORDER BY t.step_index, t.rank"
    ids: list[int] = store.query(text, {"run": run})["id"].to_pylist()
    return ids


def _round(store: Clocked, run: int, ids: list[int]) -> tuple[float, int, int, dict[str, float]]:
    names = {queries.text(name): name for name in queries.names()}
    store.spent.clear()
    begin = time.process_time()
    found = slice_of(store, run, ids)
    spent = time.process_time() - begin
    by_query = {names[text]: seconds for text, seconds in store.spent.items()}
    whole = sum(found.steps["span_count"].to_pylist())
    return spent, whole, found.spans.num_rows, by_query


if __name__ == "__main__":
    main()
