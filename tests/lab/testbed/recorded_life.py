"""A short real life, recorded: what the ranks left, as `life.tar.xz`.

Two ranks on two hosts; slow_op of 6 ms on rank 1, then a delay of 1.5 ms on the way out of rank 1.
`python tests/lab/testbed/recorded_life.py` records it again (root, torch).
"""

import json
import random
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from teller.lab.testbed.faults import planned
from teller.lab.testbed.inject import Done
from teller.lab.testbed.life import Lived, Setup, lived
from teller.lab.testbed.settings import Service

DATA = Path(__file__).with_name("data") / "life.tar.xz"
SMALL = Service(layers=4, hidden=256, ffn=704, heads=4)
FILES = (
    "steps.json", "client.jsonl", "metrics.jsonl", "rank0.json", "rank1.json", "rank0.npz",
    "rank1.npz", "rank0.log", "rank1.log", "nvtx0", "nvtx1",
)  # fmt: skip


def unpack(folder: Path) -> Lived:
    with tarfile.open(DATA) as tar:
        tar.extractall(folder, filter="data")
    control = folder / "life"
    told: dict[str, Any] = json.loads((control / "life.json").read_text())
    kinds = {
        "setup": Setup, "hosts": tuple[str, ...], "addresses": tuple[str, ...],
        "pids": tuple[int, ...], "done": tuple[Done, ...],
        "paths": tuple[tuple[tuple[str, str], ...], ...], "load_ns": int,
        "pressure": dict[str, Any],
    }  # fmt: skip
    return Lived(
        control=control, **{k: msgspec.convert(told[k], kind) for k, kind in kinds.items()}
    )


def record() -> None:
    setup = Setup(
        net="namespaces", real_time=True, seed=11, before_s=2.6, after_s=0.2, service=SMALL
    )
    wanted = (("slow_op", 6.0), ("net_delay", 1500.0))
    drawn = [
        planned(kind, random.Random(4), SMALL, severity=value, rank=1, hold_s=0.8)
        for kind, value in wanted
    ]
    plan = [msgspec.structs.replace(one, rest_s=1.6) for one in drawn]
    scratch = Path(tempfile.mkdtemp())
    with lived(setup, plan, scratch) as life, tarfile.open(DATA, "w:xz", preset=9) as tar:
        told = {
            name: msgspec.to_builtins(getattr(life, name))
            for name in (
                "setup",
                "hosts",
                "addresses",
                "pids",
                "done",
                "paths",
                "load_ns",
                "pressure",
            )
        }
        (life.control / "life.json").write_text(json.dumps(told))
        for name in (*FILES, "life.json"):
            tar.add(life.control / name, arcname=f"life/{name}")
    shutil.rmtree(scratch)


if __name__ == "__main__":
    record()
