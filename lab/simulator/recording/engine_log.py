"""The log of an engine on each host: its own lines, those of PyTorch's watchdog, and notes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording import sglang_log, trtllm_log, vllm_log
from teller.lab.simulator.recording.lines import Line, host_of, local, write
from teller.lab.simulator.recording.notes import said
from teller.lab.simulator.recording.plan import Recording

ENGINES: Final[dict[str, ModuleType]] = {
    "vllm": vllm_log, "sglang": sglang_log, "trtllm": trtllm_log,
}  # fmt: skip
TORCH: Final = "torch"  # a level that marks a line as PyTorch's own
_OUTSIDE: Final = ("nccl", "kernel")


def write_logs(happened: Happened, recording: Recording, folder: Path) -> list[tuple[int, Path]]:
    """Write one file a host; give which hosts have one."""
    module = ENGINES[happened.scene.engine]
    own: Any = module.shown

    def shown(line: Line) -> str:
        if line.level == TORCH:
            return _torch(happened, recording, line)
        return str(own(happened, recording, line))

    path = _path(happened, folder)
    return write([*module.lines(happened, recording), *noted(happened)], path, shown)


def _path(happened: Happened, folder: Path) -> Callable[[int], Path]:
    scene = happened.scene
    return lambda host: folder / f"{scene.engine}-{scene.hosts[host].name}.log"


def noted(happened: Happened) -> Iterator[Line]:
    """Give the lines that notes make in the engine's log."""
    engine = happened.scene.engine
    for note in happened.notes:
        if note.source.partition(" ")[0] in _OUTSIDE:
            continue
        host, rank = host_of(happened, note.source), _number(note.source)
        values = {"rank": rank, "group_rank": rank} | note.values
        if line := said(note.kind, engine, values):
            yield Line(note.time_ns, host, note.source, line.level, line.where, line.text)
        if line := said(note.kind, "torch", values):
            yield Line(note.time_ns, host, note.source, TORCH, line.where, line.text)
        if note.kind == "watchdog" and (line := said("watchdog_status", "torch", values)):
            yield Line(note.time_ns, host, note.source, TORCH, line.where, line.text)


def _number(source: str) -> int:
    """Give the rank or replica of a source; 0 for what has none."""
    return int(source.rpartition(" ")[2]) if " " in source else 0


def _torch(happened: Happened, recording: Recording, line: Line) -> str:
    """Give a line as PyTorch's C++ prints it: a stamp without a year, and the rank before."""
    when = local(happened, recording, line.host, line.time_ns)
    stamp = f"{when.month}{when:%d} {when:%H:%M:%S}.{when.microsecond:06d}{line.time_ns % 1000:03d}"
    return f"[rank{line.number}]:[E{stamp} {4711 + line.number} {line.where}] {line.text}"
