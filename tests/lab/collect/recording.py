"""What tests of the recorder share: streams of a folder, and their rows in short."""

from pathlib import Path
from typing import Any

from teller.lab.collect import nvtx_stream
from teller.lab.collect.nvtx_stream import Stream

Ran = tuple[str, list[Stream]]


def streams(folder: Path) -> list[Stream]:
    """Give the streams of a folder, by their start."""
    found = map(nvtx_stream.read, folder.glob(f"*{nvtx_stream.SUFFIX}"))
    return sorted(found, key=lambda one: one.start_ns)


def rows(stream: Stream) -> list[dict[str, Any]]:
    """Give the events of a stream, each with its domain by name and without what is not told."""
    named = {0: "", **stream.domains}
    return [
        {k: v for k, v in row.items() if v is not None} | {"domain": named[row["domain"]]}
        for row in stream.events.to_pylist()
    ]


def nested(stream: Stream) -> bool:
    """Tell whether ranges of a thread and domain lie inside each other as their depth says."""
    open_ranges: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for row in rows(stream):
        if "depth" not in row:
            continue
        around = open_ranges.setdefault((row["tid"], row["domain"]), [])
        del around[row["depth"] :]
        if len(around) != row["depth"]:
            return False
        end = row.get("end_ns", 1 << 62)
        if around and not (around[-1][0] <= row["start_ns"] and end <= around[-1][1]):
            return False
        around.append((row["start_ns"], end))
    return bool(open_ranges)
