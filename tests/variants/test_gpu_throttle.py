"""A device that heat or power slows down, and what looks like it: idle, capped, locked ones."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

HOSTS = ("node-a", "gpu-17", "ip-10-0-3-4", "dgx03", "infer-7f9c-0", "rack2-h100-05")
REASONS = (
    (0x20, "thermal"),
    (0x48, "thermal"),
    (0x88, "brake"),
    (0x24, "thermal"),
    (0x8, "slowdown"),
    (0x4, "cap"),
)
BENIGN = ("capped", "idle", "locked", "boost", "blip", "prefill", "hot")
FIELDS = {
    "clock": ("clocks.sm [MHz]", "clocks.current.sm [MHz]"),
    "power": ("power.draw [W]", "power.draw.instant [W]"),
    "mask": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    "heat": ("temperature.gpu", "temperature.gpu"),
    "busy": ("utilization.gpu [%]", "utilization.gpu [%]"),
}
UNITS = {"clock": " MHz", "power": " W", "busy": " %"}


@dataclass
class Story:
    """What happens: `struck` of `hosts` with `devices` each, from sample `onset` on."""

    seed: int

    def __post_init__(self) -> None:
        self.random = random = Random(self.seed)
        self.benign = BENIGN[self.seed // 3 % len(BENIGN)] if self.seed % 3 == 2 else ""
        self.hosts = random.sample(HOSTS, random.choice((1, 1, 2)))
        self.devices = random.choice((2, 4, 8))
        self.struck = random.choice(self.hosts), random.randrange(self.devices)
        self.bits, self.word = random.choice(REASONS)
        self.good = random.choice((1410, 1755, 1980, 2520))
        self.slow = round(self.good * random.uniform(0.2, 0.7))
        self.samples = random.choice((40, 60))
        self.onset = random.choice((0, 15, 30)) if self.bits != 0x4 else 20
        self.every = random.choice((1, 2, 5))
        self.begin = datetime(2026, random.randint(1, 12), 12, 4, 10)

    def figures(self, host: str, device: int, at: int) -> dict[str, float]:
        """Give what a device says at one sample."""
        jitter = self.random.uniform
        late, mine = at >= self.onset, (host, device) == self.struck
        said = {"clock": self.good, "power": jitter(630, 650), "mask": 0, "heat": 61, "busy": 99}
        if not self.benign:
            if late and mine:
                said |= {"clock": self.slow + self.random.randint(-40, 40), "mask": self.bits}
                said |= {"heat": 86, "power": jitter(205, 240)}
            elif late:
                said["power"] = jitter(310, 330)  # it waits
            elif at % 7 == 3:
                said |= {"mask": 0x4, "power": 700, "clock": self.good - 15}
        elif self.benign == "capped":
            said |= {"mask": 0x4, "power": 699, "clock": self.good - self.random.randint(0, 60)}
        elif self.benign == "prefill":  # all of them, under load
            said |= {"mask": 0x4, "power": 700, "clock": round(self.good * 0.78)} if late else {}
        elif self.benign == "idle":
            idle = {"mask": 0x1, "power": 75, "clock": 345, "busy": 0, "heat": 34}
            said |= idle if at >= 30 or mine else {}
        elif self.benign == "locked":
            said |= {"mask": 0x2, "clock": round(self.good * 0.7), "power": 420}
        elif self.benign == "boost":
            said |= {"mask": 0x10, "clock": self.good - 15}
        elif self.benign == "blip":
            said |= {"mask": 0x20, "clock": self.slow} if at in (12, 13) and mine else {}
        elif self.benign == "hot":  # the bit is set, the clock hardly moves
            said |= {"mask": 0x20, "clock": self.good - 45, "heat": 84} if late and mine else {}
        return said


def devices_of(story: Story, folder: Path) -> None:
    """Write what the devices say: one table, or one a host."""
    random, apart = story.random, len(story.hosts) > 1 and story.random.random() < 0.5
    names = [key for key in FIELDS if key not in ("heat", "busy") or random.random() < 0.8]
    random.shuffle(names)
    driver, units = random.randrange(2), random.random() < 0.7
    rows: dict[str, list[str]] = {host: [] for host in story.hosts}
    for at in range(story.samples):
        time = story.begin + timedelta(seconds=at * story.every)
        for host in story.hosts:
            for device in range(story.devices):
                said = story.figures(host, device, at)
                cells = [f"{time:%Y/%m/%d %H:%M:%S}.000", host, str(device)]
                for name in names:
                    text = f"0x{said[name]:016x}" if name == "mask" else f"{said[name]:.0f}"
                    cells.append(text + (UNITS.get(name, "") if units else ""))
                rows[host].append(cells[0] + "\x00" + ", ".join(cells))
    titles = [FIELDS[name][driver] for name in names]
    titles = titles if units else [title.partition(" [")[0] for title in titles]
    head = ", ".join(["timestamp", "host", "index", *titles])
    whole = [line for lines in rows.values() for line in lines]
    tables = {f"{h}.nvml": r for h, r in rows.items()} if apart else {"nvml": whole}
    for name, lines in tables.items():
        body = [line.partition("\x00")[2] for line in sorted(lines)]
        text = "\n".join([head, *body]) + "\n"
        if random.random() < 0.3:
            (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"{name}.{random.choice(('csv', 'txt'))}").write_text(text)


def log_of(story: Story, folder: Path) -> bool:
    """Write what the engine says, if it does: its throughput falls with the slow device's clock."""
    random = story.random
    dialect = random.choice(("sglang", "sglang-tp", "vllm", "none"))
    usual, batch = random.randint(900, 4000), random.choice((8, 24, 64))
    lines = []
    for second in range(0, story.samples * story.every, 5):
        time = story.begin + timedelta(seconds=second)
        hit = second >= story.onset * story.every and not story.benign
        rate = usual * (story.slow / story.good if hit else 1) * random.uniform(0.99, 1.01)
        if story.benign == "idle" and second >= 30 * story.every:
            continue
        if dialect.startswith("sglang"):
            who = " TP0" if dialect == "sglang-tp" else ""
            lines.append(
                f"[{time:%Y-%m-%d %H:%M:%S}{who}] Decode batch. #running-req: {batch}, #token: "
                f"51200, token usage: 0.21, cuda graph: True, gen throughput (token/s): {rate:.2f}"
                ", #queue-req: 0, "
            )
        elif dialect == "vllm":
            lines.append(
                f"INFO {time:%m-%d %H:%M:%S} [loggers.py:123] Engine 000: Avg prompt throughput: "
                f"0.0 tokens/s, Avg generation throughput: {rate:.1f} tokens/s, Running: {batch} "
                "reqs, Waiting: 0 reqs, GPU KV cache usage: 21.0%, Prefix cache hit rate: 0.0%"
            )
    if lines:
        (folder / random.choice(("server.log", "sglang.log", "out.txt"))).write_text(
            "\n".join(lines) + "\n"
        )
    return bool(lines)


@pytest.mark.parametrize("seed", range(21))
def test_a_device_that_heat_or_power_slows(
    seed: int, tmp_path: Path, right: Callable[..., dict[str, Any]]
) -> None:
    story = Story(seed)
    folder = tmp_path / "run"
    folder.mkdir()
    devices_of(story, folder)
    logged = log_of(story, folder)
    if story.benign:
        right(folder, "", verdict="no_fault" if logged else "not_visible")
        return
    host, device = story.struck
    said = right(folder, "gpu_throttle", {"hosts": [host], "devices": [f"{host}:{device}"]})
    assert story.word in said["findings"][0]["title"]
