"""From an order to a run folder with its truth beside it."""

import shutil
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from teller.lab.simulator.recording import plan, write
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.simulate import Order, Simulated, simulate
from teller.lab.truth import Truth, Window, write_truth

VERSION: Final = 1  # raised whenever the same order gives another run


@dataclass(frozen=True, slots=True)
class Produced:
    """A run folder, its truth, how many spans were simulated, and the hash of all that it is."""

    folder: Path
    truth: Truth
    spans: int
    digest: str


def produce(order: Order, out: Path, root_seed: int | None = None) -> Produced:
    """Simulate a run and write it; the same order gives the same run.

    `root_seed` is that of its family; None makes the run its own root.
    """
    run = simulate(order)
    root = order.seed if root_seed is None else root_seed
    recording = recorded(order, run)
    folder = out / recording.run
    shutil.rmtree(folder, ignore_errors=True)  # of the same order, perhaps half written
    write.record(run.happened, recording, folder)
    truth = truth_of(order, run, recording, root)
    write_truth(timed(truth, run), folder)
    happened = run.happened
    spans = sum(len(t.name) for t in happened.host) + sum(len(t.name) for t in happened.device)
    return Produced(folder, truth, spans, digest(run, recording, truth))


def digest(run: Simulated, recording: Recording, truth: Truth) -> str:
    """Hash all that a run is: what happened, how it is recorded, and its truth.

    Not the bytes of files: those also hold the release of the library that wrote them.
    """
    state, happened = blake2b(digest_size=16), run.happened
    tables: list[Any] = [*happened.host, *happened.device, *happened.joins, *happened.steps]
    for table in tables:
        for field in fields(table):
            state.update(np.ascontiguousarray(getattr(table, field.name)).tobytes())
    said = [*map(repr, happened.notes), *map(repr, happened.requests), repr(recording)]
    said += map(repr, happened.transfers)
    state.update(msgspec.json.encode([happened.names, said, truth]))
    return state.hexdigest()


def timed(truth: Truth, run: Simulated) -> Truth:
    """Add when each step of each rank was: a recording may number them from its own first one.

    `steps_ns` has a list for each rank, of [step_index, start, end]; the hash of a run has these
    times from what happened.
    """
    times = [np.stack([s.index, s.start_ns, s.end_ns], axis=1).tolist() for s in run.happened.steps]
    return msgspec.structs.replace(truth, extra=truth.extra | {"steps_ns": times})


def recorded(order: Order, run: Simulated) -> Recording:
    """Give how an order is recorded: drawn from its seed, and from nothing that happened."""
    random = np.random.default_rng([order.seed, 20])
    drawn = plan.draw(run.happened.scene, random)
    return replace(drawn, run=name_of(order))


def name_of(order: Order) -> str:
    """Give the opaque name of an order's run."""
    layout = order.wanted.layout
    apart = [f"prefill={layout.prefill}"] if layout and layout.prefill else []
    told = msgspec.json.encode([VERSION, repr(order), *apart])
    return f"run-{blake2b(told, digest_size=6).hexdigest()}"


def truth_of(order: Order, run: Simulated, recording: Recording, root: int) -> Truth:
    """Give the truth of a simulated run."""
    scene, end = run.happened.scene, run.happened.end_ns
    twin_of = None
    if order.twin:
        twin_of = name_of(replace(order, twin=False))
    return Truth(
        run=recording.run, root_seed=root, twin_of=twin_of,
        generator={"name": "simulator", "version": VERSION, "seed": order.seed},
        episodes=tuple(label.episode() for label in run.labels),
        healthy_windows=_healthy(run, end),
        extra={
            "t0_epoch_ns": str(scene.t0_epoch_ns), "engine": scene.engine,
            "model": scene.model.name, "gpu": scene.gpu.name, "mode": scene.mode, "tp": scene.tp,
            "pp": scene.pp, "dp": scene.dp, "hosts": len(scene.hosts),
            "clocks_ns": [c.offset_ns for c in recording.clocks], "end_ns": end,
        } | ({"prefill": scene.prefill} if scene.prefill else {}),
    )  # fmt: skip


def _healthy(run: Simulated, end_ns: int) -> tuple[Window, ...]:
    """Give the time in which no cause acted."""
    busy = sorted(
        (w.start_ns, w.end_ns) for label in run.labels for w in [label.episode().intended]
    )
    out, at = [], 0
    for start, end in busy:
        if start > at:
            out.append(Window(at, start))
        at = max(at, end)
    return (*out, Window(at, end_ns)) if at < end_ns else tuple(out)
