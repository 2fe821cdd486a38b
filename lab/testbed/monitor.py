"""Watches the ranks ten times a second: time on the CPU, waiting for it, faults, TCP."""

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from teller.lab.testbed.net import Loopback, Namespaces
from teller.lab.testbed.tcp_state import TcpState

EVERY_S: Final = 0.1


class Monitor(threading.Thread):
    """Writes a JSON object a moment, as `ingest` reads host metrics."""

    def __init__(self, pids: Sequence[int], net: Loopback | Namespaces, out: Path) -> None:
        super().__init__(daemon=True, name="Monitor")
        self.pids, self.net, self.out = pids, net, out
        self._over = threading.Event()

    def stop(self) -> None:
        """End it, and wait for the end."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Write until stopped."""
        tcp = [TcpState(name) for name in self.net.namespaces[: len(self.pids)]]
        names = dict(zip(self.net.addresses, self.net.hosts, strict=True))
        with self.out.open("w", encoding="utf-8") as out:
            while not self._over.wait(EVERY_S):
                now, nodes = time.time_ns(), []
                for rank, pid in enumerate(self.pids):
                    try:
                        node = _process(pid)
                    except OSError:  # it has just ended
                        continue
                    peers = tcp[rank].by_peer() if tcp else {}
                    told = {names.get(address, address): one for address, one in peers.items()}
                    nodes.append({"rank": rank, "host": self.net.hosts[rank], **node, "tcp": told})
                out.write(json.dumps({"t": now, "nodes": nodes, "cpu": _ticks()}) + "\n")


def _process(pid: int) -> dict[str, Any]:
    """Give the sums over a process's threads; ns, counts, bytes since it began."""
    place = Path("/proc", str(pid))
    threads = [
        [int(word) for word in (place / "task" / thread / "schedstat").read_text().split()]
        for thread in os.listdir(place / "task")
    ]
    stat = (place / "stat").read_text().rpartition(")")[2].split()
    written = (place / "io").read_text().split("write_bytes: ")[1].split()[0]
    return {
        "oncpu_ns": sum(t[0] for t in threads), "runq_ns": sum(t[1] for t in threads),
        "utime": int(stat[11]), "stime": int(stat[12]), "minflt": int(stat[7]),
        "rss": int(stat[21]), "wbytes": int(written),
    }  # fmt: skip


def _ticks() -> list[list[int]]:
    """Give the first eight figures of each CPU in /proc/stat."""
    lines = Path("/proc/stat").read_text().splitlines()
    return [
        [int(word) for word in line.split()[1:9]]
        for line in lines
        if line.startswith("cpu") and not line.startswith("cpu ")
    ]
