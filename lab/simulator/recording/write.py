"""A run's folder: all files that a recording leaves of what happened, and the manifest."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from teller.lab.manifest import (
    EngineEntry,
    FileEntry,
    HostEntry,
    Manifest,
    RankEntry,
    write_manifest,
)
from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording import (
    client,
    engine_log,
    flight_recorder,
    inspector,
    kernel_log,
    kineto,
    metrics,
    nccl_log,
    nsys,
)
from teller.lab.simulator.recording.benign import benign
from teller.lab.simulator.recording.nsys_schema import number
from teller.lab.simulator.recording.plan import Recording, Window
from teller.lab.simulator.recording.seen import windows
from teller.lab.simulator.recording.titles import trace_name
from teller.lab.simulator.scene import Scene

TOOL: Final = "teller-simulator"
NS: Final = 1_000_000_000


def record(happened: Happened, recording: Recording, folder: Path) -> Manifest:
    """Write all files into the folder, the manifest last; give it."""
    folder.mkdir(parents=True, exist_ok=True)
    notes = sorted([*happened.notes, *benign(happened, recording)], key=lambda n: n.time_ns)
    told = replace(happened, notes=tuple(notes))
    files = [*_traces(told, recording, folder), *_logs(told, recording, folder),
             *_figures(told, recording, folder)]  # fmt: skip
    manifest = _manifest(happened, recording, tuple(files))
    write_manifest(manifest, folder)
    return manifest


def _traces(happened: Happened, recording: Recording, folder: Path) -> Iterator[FileEntry]:
    scene, packed = happened.scene, ".gz" if recording.packed else ""
    parts = windows(happened, recording)
    for part, window in enumerate(parts):
        more = f".{part + 1}" if len(parts) > 1 else ""
        if recording.nsys:
            yield from _exports(happened, recording, folder, window, more)
        if recording.kineto:
            for rank, place in enumerate(scene.places):
                at = scene.t0_epoch_ns + recording.clocks[place.host].one(window.end_ns)
                name = f"{trace_name(scene, rank, recording.pid(scene, rank), at, more)}{packed}"
                kineto.write(folder / name, happened, recording, rank, window)
                yield FileEntry(path=name, kind="kineto", rank=rank, host=_host(scene, rank))


def _exports(
    happened: Happened, recording: Recording, folder: Path, window: Window, more: str
) -> Iterator[FileEntry]:
    scene = happened.scene
    for number_, host in enumerate(scene.hosts):
        own = [p.rank for p in scene.places if p.host == number_]
        for ranks in [own] if recording.per == "host" else [[r] for r in own]:
            alone = ranks[0] if recording.per == "rank" else None
            pid = recording.pid(scene, ranks[0])
            name = f"report-{host.name}-{pid}{more}.sqlite"
            nsys.write(folder / name, happened, recording, ranks, window)
            yield FileEntry(path=name, kind="nsys_sqlite", rank=alone, host=host.name)


def _logs(happened: Happened, recording: Recording, folder: Path) -> Iterator[FileEntry]:
    scene = happened.scene
    if recording.engine_log:
        yield from _by_host(scene, "engine_log", engine_log.write_logs(happened, recording, folder))
    if recording.nccl_log:
        yield from _by_rank(scene, "nccl_log", nccl_log.write_logs(happened, recording, folder))
    if recording.kernel_log:
        yield from _by_host(scene, "dmesg", kernel_log.write_logs(happened, recording, folder))
    if recording.flight_recorder:
        yield from _by_rank(
            scene, "flight_recorder", flight_recorder.write_dumps(happened, recording, folder)
        )
    if recording.inspector and number(recording.nccl) >= inspector.SINCE:
        yield from _by_rank(
            scene, "nccl_inspector", inspector.write_records(happened, recording, folder)
        )


def _figures(happened: Happened, recording: Recording, folder: Path) -> Iterator[FileEntry]:
    scene = happened.scene
    for host, kind, path in metrics.write_devices(happened, recording, folder):
        yield FileEntry(path=path.name, kind=kind, host=scene.hosts[host].name)
    if recording.prometheus:
        for path in metrics.write_prometheus(happened, recording, folder):
            yield FileEntry(path=path.name, kind="prometheus")
    if recording.client:
        yield FileEntry(path=client.write_table(happened, recording, folder).name, kind="client")
    if recording.otlp:
        yield FileEntry(path=client.write_otlp(happened, recording, folder).name, kind="otlp")


def _by_host(scene: Scene, kind: str, files: Sequence[tuple[int, Path]]) -> Iterator[FileEntry]:
    for host, path in files:
        yield FileEntry(path=path.name, kind=kind, host=scene.hosts[host].name)


def _by_rank(scene: Scene, kind: str, files: Sequence[tuple[int, Path]]) -> Iterator[FileEntry]:
    for rank, path in files:
        yield FileEntry(path=path.name, kind=kind, rank=rank, host=_host(scene, rank))


def _host(scene: Scene, rank: int) -> str:
    return scene.hosts[scene.places[rank].host].name


def _manifest(happened: Happened, recording: Recording, files: tuple[FileEntry, ...]) -> Manifest:
    scene = happened.scene
    ended = datetime.fromtimestamp((scene.t0_epoch_ns + happened.end_ns) // NS, UTC)
    model: dict[str, Any] = {"name": scene.model.name, "layers": scene.model.layers,
                             "hidden": scene.model.hidden}  # fmt: skip
    return Manifest(
        run=recording.run, created=f"{ended:%Y-%m-%dT%H:%M:%SZ}", tool=TOOL,
        hosts=tuple(HostEntry(h.name, h.address) for h in scene.hosts),
        ranks=tuple(
            RankEntry(rank=p.rank, host=_host(scene, p.rank), pid=recording.pid(scene, p.rank),
                      tp=p.tp, pp=p.pp, dp=p.dp, ep=p.ep)
            for p in scene.places
        ),
        engine=EngineEntry(scene.engine, scene.engine_version), model=model, files=files,
        log_time={"year": ended.year, "utc_offset_s": recording.zone_s},
    )  # fmt: skip
