"""What requests are to keep to: parsed from words, kept with runs, and shown in the graph."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from teller.errors import BadUsage, UnknownName
from teller.graph import ids, queries, schema
from teller.graph.archive import RunEntry
from teller.graph.store import Store
from teller.graph.workspace import Workspace

Targets = Mapping[str, int]  # ns by name

NAMES: Final = {  # with the sample that holds it in the graph
    "ttft": "slo.ttft_ns",  # time to first token
    "itl": "slo.itl_ns",  # median time between tokens
    "e2e": "slo.e2e_ns",  # from the start to the end
}
SETTINGS: Final = "settings.toml"
NONE_NS: Final = 1 << 62  # no request takes so long
_UNITS: Final = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(us|µs|ms|s|min)")
_MOST_NS: Final = 24 * 3600e9


def parsed(text: str) -> dict[str, int]:
    """Give the targets of "ttft=500ms,itl=50ms"; raise `BadUsage` or `UnknownName`."""
    found: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, is_there, value = (word.strip() for word in part.partition("="))
        if not is_there:
            raise BadUsage(f"target {part!r}: not of the form NAME=TIME, as in ttft=500ms")
        if name in found:
            raise BadUsage(f"target {name} is given twice")
        found[name] = _target(name, value)
    return found


def of_settings(folder: Path) -> dict[str, int]:
    """Give the targets in `[slo]` of a workspace's settings; none where there is no such file."""
    path = folder / SETTINGS
    try:
        said: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise BadUsage(f"{path}: {err}") from err
    slo = said.get("slo", {})
    if not isinstance(slo, dict):
        raise BadUsage(f'{path}: slo is a table, as in [slo] and then ttft = "500ms"')
    try:
        return {name: _target(name, value) for name, value in slo.items()}
    except (BadUsage, UnknownName) as err:
        raise BadUsage(f"{path}: [slo]: {err}") from err


def _target(name: str, value: object) -> int:
    if name not in NAMES:
        raise UnknownName("target", name, NAMES)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadUsage(
            f"target {name}={value}: give a number and its unit (us, ms, s, min), as in {name}=50ms"
        )
    size = float(match[1]) * _UNITS[match[2]]
    if not 1 <= size <= _MOST_NS:
        raise BadUsage(f"target {name}={value}: give one above 0 and below a day")
    return round(size)


def keep(workspace: Workspace, runs: Sequence[int], targets: Targets) -> None:
    """Put targets in the place of those that these runs have; without any, they stay as they are.

    The caller is the workspace's only writer. What is not in the graph yet is loaded with them.
    """
    stale = [r for r in runs if targets and workspace.archive.entry(r).targets != targets]
    if not stale:
        return
    shown = [run for run in stale if workspace.holds(run)]
    workspace.archive.save_targets(stale, targets)
    if not shown:
        return
    with workspace.changing() as store:
        for run in shown:
            entry = workspace.archive.entry(run)
            store.remove(schema.SAMPLE.label, [_id(entry.key, name) for name in NAMES])
            store.append(run, tables(entry))


def tables(entry: RunEntry) -> dict[str, pa.Table]:
    """Give the samples that hold a run's targets."""
    rows = [
        {
            "id": _id(entry.key, name), "run_id": entry.run_id, "kind": schema.SAMPLE.label,
            "name": NAMES[name], "value": float(target),
        }
        for name, target in entry.targets.items()
        if name in NAMES
    ]  # fmt: skip
    return {schema.SAMPLE.label: pa.Table.from_pylist(rows, schema.SAMPLE.arrow)} if rows else {}


def of_run(graph: Store, run_id: int) -> dict[str, int]:
    """Give the targets of a run, by their names."""
    rows = queries.run(graph, "targets", run=run_id).to_pylist()
    said = {row["name"]: int(row["target_ns"]) for row in rows}
    return {name: said[sample] for name, sample in NAMES.items() if sample in said}


def missed(graph: Store, run_id: int, targets: Targets) -> pa.Table:
    """Give the requests that missed a target, as the query `requests_over_target` does."""
    limits = {f"{name}_ns": targets.get(name, NONE_NS) for name in NAMES}
    return queries.run(graph, "requests_over_target", run=run_id, **limits)


def _id(key: str, name: str) -> int:
    return ids.node_id(key, schema.SAMPLE.label, "target", name)
