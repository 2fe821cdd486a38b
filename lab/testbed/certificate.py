"""How quiet the machine was: what a run's figures may be trusted for."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_HUNDRED: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Pressure:
    """Counters of the whole machine at one moment; s since boot."""

    time_s: float
    stalled_s: float | None  # some task waited for a CPU
    stolen_s: float
    busy_s: float
    load: tuple[float, float, float]

    @classmethod
    def now(cls) -> "Pressure":
        """Read them."""
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _, _, irq, soft, steal = (int(word) / _HUNDRED for word in words)
        busy = user + nice + system + irq + soft
        return cls(time.monotonic(), _stalled_s(), steal, busy, os.getloadavg())

    def since(self, before: "Pressure") -> dict[str, Any]:
        """Give shares of the time since then."""
        past = self.time_s - before.time_s
        stalled = None
        if self.stalled_s is not None and before.stalled_s is not None:
            stalled = round((self.stalled_s - before.stalled_s) / past, 4)
        return {
            "seconds": round(past, 2), "load_before": before.load, "load_after": self.load,
            "cpus": os.cpu_count(), "stalled_share": stalled,
            "stolen_share": round((self.stolen_s - before.stolen_s) / past, 4),
            "cpus_busy": round((self.busy_s - before.busy_s) / past, 3),
        }  # fmt: skip


def _stalled_s() -> float | None:
    """Give how long some task waited for a CPU; None where the kernel does not count it."""
    try:
        first = Path("/proc/pressure/cpu").read_text().split("\n", 1)[0]
    except OSError:
        return None
    return int(first.split("total=")[1]) / 1e6
