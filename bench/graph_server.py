"""How fast runs reach a Neo4j server: our load, a tuned UNWIND loop of the same rows, the import.

    python bench/graph_server.py [--rows 1000000] [--rounds 2]

Starts a server of its own (Java and Maven), warms it up, and ends it. Rows are nodes and relations
together; each way is measured on the same warm server, in turns, and the best of each counts.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from neo4j import Driver

from teller.graph import migrate
from teller.graph.neo4j import Neo4jStore, connect
from teller.graph.neo4j_address import Address
from teller.graph.neo4j_import import Import
from teller.graph.schema import RUN
from teller.graph.tables import TABLES, fit

LAUNCHER = Path(__file__).resolve().parents[1] / "tools" / "neo4j" / "server.py"
LOOP_ROWS = 2_000  # of the loop's transactions; more is slower
LOOP_THREADS = 2
WARM_ROWS = 100_000
STEPS = 200

Files = dict[str, list[Path]]


def main() -> None:
    """Measure, and say it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="teller-bench-"))
    try:
        best = measure(scratch, given.rows, given.rounds)
    finally:
        launcher("stop", scratch / "home")
        shutil.rmtree(scratch, ignore_errors=True)  # a scratch folder: what stays is no harm
    for name, rate in best.items():
        share = rate / best["loop"]
        sys.stdout.write(f"{name:8} {rate:10,.0f} rows/s  {share:5.2f} of the loop\n")


def measure(scratch: Path, rows: int, rounds: int) -> dict[str, float]:
    """Give the best rate of each way, rows a second."""
    launcher("home", scratch / "home")
    launcher("start", scratch / "home", "--heap", "1500m", "--pages", "512m")
    best = {"loop": 0.0, "load": 0.0, "import": 0.0}
    at = address(scratch / "home")
    with connect(at) as driver:
        migrate.migrate(driver, at)
        with Neo4jStore(at) as store:
            warm = make(scratch / "warm", 1, WARM_ROWS)
            loop(driver, warm)
            store.drop(1)
            store.load(1, warm)
            store.drop(1)
            for turn in range(rounds):
                files = make(scratch / f"round-{turn}", 2 + turn, rows)
                best["loop"] = max(best["loop"], rate(rows, lambda f=files: loop(driver, f)))
                store.drop(2 + turn)
                load = rate(rows, lambda f=files, r=2 + turn: store.load(r, f))
                best["load"] = max(best["load"], load)
                store.drop(2 + turn)
    launcher("stop", scratch / "home")
    for turn in range(rounds):
        home = scratch / f"import-{turn}"
        launcher("home", home)
        best["import"] = max(best["import"], rate(rows, lambda h=home: bulk(h, files)))
    return best


def bulk(home: Path, files: Files) -> None:
    """Write the CSV files and import them."""
    with tempfile.TemporaryDirectory() as folder:
        made = Import(Path(folder))
        made.add(1 + len(list(home.parent.glob("round-*"))), files, "")
        made.run(home)


def rate(rows: int, work: Callable[[], None]) -> float:
    """Give the rows a second."""
    begun = time.perf_counter()
    work()
    return rows / (time.perf_counter() - begun)


def loop(driver: Driver, files: Files) -> None:
    """Write the same rows as a person would, with the best batch and number of threads."""
    for name, [path] in files.items():
        table = TABLES[name]
        if "." not in name:
            text = f"UNWIND $rows AS r CREATE (n:{name}) SET n = r"
        else:
            columns = [c.name for c in table.kind.columns]
            made = ", ".join(f"{c}: r.{c}" for c in columns)
            text = (
                f"UNWIND $rows AS r MATCH (a:{table.src} {{id: r.src}}) "
                f"MATCH (b:{table.dst} {{id: r.dst}}) "
                f"CREATE (a)-[:{name.partition('.')[0]} {{{made}}}]->(b)"
            )
        batches = pq.ParquetFile(path).iter_batches(LOOP_ROWS)

        def send(batch: pa.RecordBatch, text: str = text) -> None:
            driver.execute_query(text, rows=batch.to_pylist())

        with ThreadPoolExecutor(LOOP_THREADS) as pool:
            list(pool.map(send, batches))


def make(folder: Path, run: int, rows: int) -> Files:
    """Write a run of that many nodes and relations: spans in trees and steps, of one rank."""
    spans = rows * 2 // 7
    base = run << 40
    ids = base + np.arange(spans, dtype=np.int64)
    near = np.arange(spans)
    tables = {
        RUN.label: pa.table({"id": [base - 1], "run_id": [run], "name": [f"run {run}"]}),
        "Step": pa.table({"id": base - 1000 + np.arange(STEPS), "run_id": np.full(STEPS, run)}),
        "Span": pa.table({
            "id": ids, "run_id": np.full(spans, run), "rank": near % 8, "step_index": near % STEPS,
            "name": [f"layers.{i % 32}.gemm_{i % 300}" for i in range(spans)],
            "operator": [f"gemm_{i % 300}" for i in range(spans)],
            "layer": ["device"] * spans, "lane": ["stream 7"] * spans, "start_ns": near * 1000,
            "end_ns": near * 1000 + 900, "dur_ns": np.full(spans, 900), "own_ns": near % 900,
            "depth": near % 12, "excess_ns": near % 7,
        }),
        "CHILD.Span.Span": pa.table({"src": ids[near // 5], "dst": ids}),
        "IN_STEP.Span.Step": pa.table({"src": ids, "dst": base - 1000 + near * STEPS // spans}),
    }  # fmt: skip
    left = rows - sum(t.num_rows for t in tables.values())
    pairs = near[: left + 1]
    tables["NEXT.Span.Span"] = pa.table(
        {"src": ids[pairs[:-1]], "dst": ids[pairs[1:]], "gap_ns": np.full(left, 100)}
    )
    folder.mkdir()
    files = {}
    for name, table in tables.items():
        files[name] = [folder / f"{name}.parquet"]
        pq.write_table(fit(table, TABLES[name].kind), files[name][0])
    return files


def launcher(*words: str | Path) -> None:
    """Use the launcher of the project."""
    subprocess.run([sys.executable, LAUNCHER, *words], check=True, stdout=subprocess.DEVNULL)


def address(home: Path) -> Address:
    """Give the address of the server of a home."""
    said = subprocess.run(
        [sys.executable, LAUNCHER, "start", home, "--json"], check=True, capture_output=True
    ).stdout
    told = json.loads(said)
    return Address(told["uri"], told["user"], Path(told["password_file"]).read_text())


if __name__ == "__main__":
    main()
