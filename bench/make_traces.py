"""Make Kineto traces of any number of ranks and any size from one real trace, with a slow rank.

The seed is repeated in time. Within a step each rank runs at its own pace; the collectives of all
ranks end together, and what follows the last one of a step starts together, as on real devices.
Times are whole nanoseconds and come out the same for the same arguments. The truth is written
beside the folder, to `<folder>.truth.json`.
"""

import argparse
import gzip
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
from isal import igzip

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Event = dict[str, Any]

STEP: Final = "ProfilerStep#"
ON_DEVICE: Final = ("kernel", "gpu_memcpy", "gpu_memset")
NUMBERED: Final = ("correlation", "External id", "Record function id")
JITTER_NS: Final = 150_000
# what varies: time, duration, ids, number of the rank's device, number of the step
VARIES: Final = re.compile(r'"@([tdir])@"|@(n)@')
FORMAT: Final = {"t": "%d.%03d", "d": "%d.%03d", "i": "%d", "r": "%d", "n": "%d"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to make; `slow_rank` below 0 for none, `clock_us` the largest error of a clock."""

    ranks: int = 8
    events: int = 1_000_000
    slow_rank: int = 3
    slow_factor: float = 1.2
    clock_us: float = 0.0
    plain: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Seed:
    """A real trace: its events, and their times in ns since its first step began."""

    header: dict[str, Any]
    marks: list[Event]
    events: list[Event]
    t0_ns: int
    start: Ints
    end: Ints
    on_device: npt.NDArray[np.bool_]
    collectives: Ints  # places in `events`, in order of time
    joins: Ints  # ends of the last collective of each step
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pace:
    """How one copy of the seed goes on each rank: `begins` of its segments, and its length."""

    begins: Floats
    jitter: Floats  # one row a rank, one column a segment
    factor: Floats
    length: float


@dataclass(frozen=True, slots=True)
class Template:
    """The text of one copy; `slots` say where which event's values go."""

    text: str
    slots: dict[str, tuple[Ints, Ints]]
    fixed: Ints


def read_seed(path: Path) -> Seed:
    """Give a real trace, from its first step on."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        header = json.load(file)
    events = header.pop("traceEvents")
    header.pop("INFO", None)
    spans = [e for e in events if e["ph"] in "Xsf" and e.get("cat") != "Trace"]
    steps = [e for e in spans if e["name"].startswith(STEP) and e["cat"] == "user_annotation"]
    t0_ns = min(_ns(e["ts"]) for e in steps)
    spans = [e for e in spans if _ns(e["ts"]) >= t0_ns]
    start = np.array([_ns(e["ts"]) for e in spans]) - t0_ns
    end = start + np.array([_ns(e.get("dur", 0)) for e in spans])
    joint = [
        i for i, e in enumerate(spans) if e.get("cat") == "kernel" and "nccl" in e["name"].lower()
    ]
    places = np.array(sorted(joint, key=lambda i: int(start[i])), np.int64)
    return Seed(
        header, [e for e in events if e["ph"] == "M"], spans, t0_ns, start, end,
        np.array([e.get("cat") in ON_DEVICE for e in spans]), places,
        _joins(start[places], end[places], steps, t0_ns),
        tuple(sorted(int(e["name"].removeprefix(STEP)) for e in steps)),
    )  # fmt: skip


def _ns(us: float) -> int:
    return round(us * 1000)


def _joins(start: Ints, end: Ints, steps: list[Event], t0_ns: int) -> Ints:
    found = []
    for step in steps:
        first = _ns(step["ts"]) - t0_ns
        inside = (start >= first) & (start < first + _ns(step["dur"]))
        if inside.any():
            found.append(int(end[inside].max()))
    return np.array(sorted(found), np.int64)


def make(folder: Path, seed: Seed, plan: Plan) -> dict[str, Any]:
    """Write one file a rank into the folder; give the truth about them."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = max(1, round(plan.events / len(seed.events) / plan.ranks))
    healthy = copies - max(1, copies // 3)
    random = np.random.default_rng(plan.seed)
    paces = [_pace(seed, plan, random, slow=k >= healthy) for k in range(copies)]
    clocks = np.rint(random.uniform(-1000, 1000, plan.ranks) * plan.clock_us).astype(np.int64)
    clocks[0] = 0
    shifts = np.concatenate([[0], np.cumsum([p.length for p in paces])])[:-1].round()
    template = _template(seed.events, plan.ranks)
    written = 0
    for rank in range(plan.ranks):
        name = f"rank-{rank}.pt.trace.json" + ("" if plan.plain else ".gz")
        with (folder / name).open("wb") as raw:
            file = raw if plan.plain else igzip.IGzipFile("", "wb", 2, raw, 0)
            begins = shifts.astype(np.int64) + seed.t0_ns + clocks[rank]
            written += _write(file, seed, template, rank, paces, begins)
            if not plan.plain:
                file.close()
    slow_from = seed.steps[0] + healthy * len(seed.steps)
    truth = asdict(plan) | {
        "written": written, "copies": copies, "steps": copies * len(seed.steps),
        "slow_from_step": slow_from if plan.slow_rank >= 0 else None, "clocks_ns": clocks.tolist(),
    }  # fmt: skip
    folder.with_name(f"{folder.name}.truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return truth


def _pace(seed: Seed, plan: Plan, random: np.random.Generator, *, slow: bool) -> Pace:
    factor = np.ones(plan.ranks)
    if slow and plan.slow_rank >= 0:
        factor[plan.slow_rank] = plan.slow_factor
    knots = np.concatenate([[0], seed.joins, [seed.end.max()]])
    jitter = random.uniform(0, JITTER_NS, (plan.ranks, len(knots) - 1))
    lasting = (np.diff(knots) * factor[:, None] + jitter).max(axis=0)
    begins = np.concatenate([[0], np.cumsum(lasting)])
    return Pace(begins[:-1], jitter, factor, float(begins[-1]))


def _moved(seed: Seed, pace: Pace, rank: int, time: Ints) -> Floats:
    """Give where times of the seed lie in a copy; their order stays."""
    segment = np.searchsorted(seed.joins, time, side="right")
    since = time - np.concatenate([[0], seed.joins])[segment]
    return pace.begins[segment] + pace.jitter[rank, segment] + since * pace.factor[rank]


def _together(seed: Seed, pace: Pace) -> tuple[Floats, Floats]:
    """Give the starts of the collectives on each rank, and the ends, which all ranks share."""
    at = seed.collectives
    lasting = (seed.end - seed.start)[at]
    arrival = np.array([_moved(seed, pace, r, seed.start[at]) for r in range(len(pace.factor))])
    end = np.zeros(len(at))
    for i in range(len(at)):
        if i:
            arrival[:, i] = np.maximum(arrival[:, i], end[i - 1])
        end[i] = arrival[:, i].max() + lasting[i]
    return arrival, end


def _write(
    file: IO[bytes], seed: Seed, template: Template, rank: int, paces: list[Pace], begins: Ints
) -> int:
    """Write one rank's file; give the number of events in it."""
    ranks = len(paces[0].factor)
    header = seed.header | {"distributedInfo": _group(seed.header, rank, ranks)}
    file.write(json.dumps(header).encode()[:-1] + b',\n"traceEvents": [\n')
    swapped = {0: rank, rank: 0}
    marks = [e | {"pid": swapped.get(e["pid"], e["pid"])} for e in seed.marks]
    file.write("".join(f"{json.dumps(mark)},\n" for mark in marks).encode())
    values = template.fixed.copy()
    values[template.slots["r"][0]] = rank
    ids = template.slots["i"][0]
    highest = int(values[ids].max(initial=0)) + 1
    for number, (pace, begin) in enumerate(zip(paces, begins.tolist(), strict=True)):
        start, end = _times(seed, pace, rank)
        file.write(b",\n" if number else b"")
        file.write(_filled(template, values, start + begin, end - start))
        values[ids] += highest
        values[template.slots["n"][0]] += len(seed.steps)
    file.write(b"\n]}\n")
    return len(seed.marks) + len(seed.events) * len(paces)


def _times(seed: Seed, pace: Pace, rank: int) -> tuple[Ints, Ints]:
    """Give start and end of all events in a copy."""
    start, end = _moved(seed, pace, rank, seed.start), _moved(seed, pace, rank, seed.end)
    alone = start + (seed.end - seed.start) * pace.factor[rank]
    end[seed.on_device] = alone[seed.on_device]  # no kernel waits for others, but collectives
    arrival, end[seed.collectives] = _together(seed, pace)
    start[seed.collectives] = arrival[rank]
    return start.round().astype(np.int64), end.round().astype(np.int64)


def _group(header: dict[str, Any], rank: int, ranks: int) -> dict[str, Any]:
    told = dict(header.get("distributedInfo", {}))
    config = [g | {"pg_size": ranks, "ranks": [*range(ranks)]} for g in told.get("pg_config", [])]
    return told | {"rank": rank, "world_size": ranks, "pg_config": config}


def _template(events: list[Event], ranks: int) -> Template:
    lines, fixed = [], []
    slots: dict[str, tuple[list[int], list[int]]] = {kind: ([], []) for kind in FORMAT}
    for number, event in enumerate(events):
        numbers: list[int] = []
        line = json.dumps(_marked(event, ranks, numbers)).replace("%", "%%")
        values = iter(numbers)
        for kind in (a or b for a, b in VARIES.findall(line)):
            slots[kind][0].append(len(fixed))
            slots[kind][1].append(number)
            fixed += [next(values)] if kind in "in" else [0] * FORMAT[kind].count("%")
        lines.append(VARIES.sub(lambda m: FORMAT[m[1] or m[2]], line))
    at = {k: (np.array(a, np.int64), np.array(b, np.int64)) for k, (a, b) in slots.items()}
    return Template(",\n".join(lines), at, np.array(fixed, np.int64))


def _marked(event: Event, ranks: int, numbers: list[int]) -> Event:
    """Put signs in the place of what varies; the numbers behind them come in order of the text."""
    made: Event = {}
    for key, value in event.items():
        made[key] = {"ts": "@t@", "dur": "@d@", "id": "@i@"}.get(key, value)
        if key == "id":
            numbers.append(value)
        elif key == "pid" and value == 0:
            made[key] = "@r@"
        elif key == "name" and value.startswith(STEP):
            made[key] = f"{STEP}@n@"
            numbers.append(int(value.removeprefix(STEP)))
        elif key == "args":
            counted = [k for k in value if k in NUMBERED]
            numbers += [value[k] for k in counted]
            made[key] = value | dict.fromkeys(counted, "@i@")
            made[key] |= {"device": "@r@"} if "device" in value else {}
            made[key] |= _members(ranks) if "Process Group Ranks" in value else {}
    return made


def _members(ranks: int) -> dict[str, Any]:
    return {"Process Group Ranks": str([*range(ranks)]), "Group size": ranks}


def _filled(template: Template, fixed: Ints, start: Ints, lasting: Ints) -> bytes:
    values = fixed.copy()
    for kind, time in (("t", start), ("d", lasting)):
        slots, events = template.slots[kind]
        values[slots], values[slots + 1] = np.divmod(time[events], 1000)
    return (template.text % tuple(values.tolist())).encode()


def main() -> None:
    """Make traces as the command line says."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("folder", type=Path)
    said.add_argument("--seed-trace", type=Path, required=True)
    said.add_argument("--plain", action="store_true", help="no gzip")
    for name in ("ranks", "events", "slow_rank", "slow_factor", "clock_us", "seed"):
        value = getattr(Plan(), name)
        said.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    told = vars(said.parse_args())
    folder, seed, plan = told.pop("folder"), told.pop("seed_trace"), Plan(**told)
    if plan.slow_rank >= plan.ranks:
        said.error(f"--slow-rank {plan.slow_rank}: there are ranks 0 to {plan.ranks - 1}; -1: none")
    make(folder, read_seed(seed), plan)


if __name__ == "__main__":
    main()
