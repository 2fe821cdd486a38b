"""The kernel's log of each host: what drivers say as they load, and what notes say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from teller.lab.simulator.happened import Happened
from teller.lab.simulator.recording.lines import SECOND, Line, local, write
from teller.lab.simulator.recording.notes import said
from teller.lab.simulator.recording.plan import Recording

_BOOT_S: Final = (3_000, 900_000)  # from the boot to the run's 0


def write_logs(happened: Happened, recording: Recording, folder: Path) -> list[tuple[int, Path]]:
    """Write one file a host; give which hosts have one."""
    hosts = range(len(happened.scene.hosts))
    lines = [line for host in hosts for line in _loaded(happened, recording, host)]
    for note in happened.notes:
        if note.source.startswith("kernel ") and (one := said(note.kind, "kernel", note.values)):
            host = int(note.source.rpartition(" ")[2])
            lines.append(Line(note.time_ns, host, note.source, one.level, "", one.text))
    return write(
        lines, lambda host: folder / f"dmesg-{happened.scene.hosts[host].name}.log",
        lambda line: _shown(happened, recording, line),
    )  # fmt: skip


def _uptime_ns(recording: Recording, host: int) -> int:
    least, most = _BOOT_S
    return (least + (recording.seed >> 7 + 3 * host) % (most - least)) * SECOND


def _loaded(happened: Happened, recording: Recording, host: int) -> Iterator[Line]:
    about = happened.scene.hosts[host]
    said_ = [
        (9.1, "info", "mlx5_core 0000:3b:00.0: firmware version: 28.39.1002"),
        (9.9, "notice", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 "
         "09:35:42 UTC 2024"),
        (10.4, "info", "nvidia-uvm: Loaded the UVM driver, major device number 236."),
        (14.2, "info", "mlx5_core 0000:3b:00.0 eth0: Link up"),
        (21.0, "info", "nvidia-peermem: loaded"),
    ]  # fmt: skip
    said_ += [(11.0 + 0.2 * i, "info", f"NVRM: GPU at PCI:{bus.rpartition(':')[0]}:"
               f"{bus.rpartition(':')[2][:2]}: {uuid}")
              for i, (bus, uuid) in enumerate(zip(about.bus, about.uuid, strict=True))]  # fmt: skip
    boot = -_uptime_ns(recording, host)
    for after, level, text in said_:
        yield Line(boot + round(after * SECOND), host, f"kernel {host}", level, "", text)


def _shown(happened: Happened, recording: Recording, line: Line) -> str:
    if recording.kernel_log == "boot":
        since = line.time_ns + _uptime_ns(recording, line.host)
        return f"[{since / SECOND:>12.6f}] {line.text}"
    when = local(happened, recording, line.host, line.time_ns)
    if recording.kernel_log == "human":
        return f"[{when:%a %b %d %H:%M:%S %Y}] {line.text}"
    zone = f"{recording.zone_s // 3600:+03d}:{recording.zone_s % 3600 // 60:02d}"
    stamp = f"{when:%Y-%m-%dT%H:%M:%S},{when.microsecond:06d}{zone}"
    return f"kern  :{line.level:<6}: {stamp} {line.text}"
