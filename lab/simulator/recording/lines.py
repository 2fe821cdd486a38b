"""Lines of logs on their way to files: when, whose, and the moments as each dialect prints them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording.plan import Recording

SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `source` as in a note: api, engine 0 (replica), worker 3 (rank)."""

    time_ns: int  # true, since the run's 0
    host: int
    source: str
    level: str
    where: str
    text: str

    @property
    def number(self) -> int:
        """Give the number in the source: of a replica or a rank; 0 for the API."""
        return int(self.source.rpartition(" ")[2]) if " " in self.source else 0

    @property
    def kind(self) -> str:
        """Give api, engine or worker."""
        return self.source.partition(" ")[0]


def host_of(happened: Happened, source: str) -> int:
    """Give the host on which a source runs."""
    kind, _, number = source.partition(" ")
    places = happened.scene.places
    if kind == "engine":
        return next(p.host for p in places if p.dp == int(number))
    if kind in ("worker", "nccl"):
        return places[int(number)].host
    return int(number) if kind == "kernel" else 0


def local(happened: Happened, recording: Recording, host: int, time_ns: int) -> datetime:
    """Give what the clock of a host on the wall shows at a true moment, to the µs."""
    shown = happened.scene.t0_epoch_ns + recording.clocks[host].one(time_ns)
    shown += recording.zone_s * SECOND
    whole = datetime.fromtimestamp(shown // SECOND, UTC)
    return whole.replace(microsecond=shown % SECOND // 1000)


def write(
    lines: Iterable[Line], path: Callable[[int], Path], shown: Callable[[Line], str]
) -> list[tuple[int, Path]]:
    """Write one file a host, its lines in order; give the hosts that have one."""
    by_host: dict[int, list[Line]] = {}
    for line in lines:
        by_host.setdefault(line.host, []).append(line)
    for host, own in by_host.items():
        own.sort(key=lambda line: line.time_ns)
        path(host).write_text("".join(f"{shown(line)}\n" for line in own), "utf-8")
    return [(host, path(host)) for host in sorted(by_host)]
