"""What really was the matter in a made run: `teller.truth/1`, written beside the run's folder.

Nothing that reads runs reads this; only training and evaluation do.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

SCHEMA: Final = "teller.truth/1"


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """The object at fault: `kind` names the list that counts, as in a finding."""

    kind: str  # rank, host, device, link, group, operator, component, request, none
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()  # "host:index"
    links: tuple[tuple[str, str], ...] = ()
    groups: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()


class Severity(msgspec.Struct, frozen=True):
    """How strong the cause was set, in a unit of its own: factor, ms, share and so on."""

    value: float
    unit: str


class Window(msgspec.Struct, frozen=True):
    """A span of time in ns since the run's 0."""

    start_ns: int
    end_ns: int


class StepTruth(msgspec.Struct, frozen=True, kw_only=True):
    """What a cause did to one step of one rank.

    `direct_excess_ns`: longer than in the replay of the same plan without the cause. `share`: of
    the replay's iteration. `own`: the rank itself was struck, and did not only wait.
    """

    rank: int
    step_index: int
    direct_excess_ns: int
    share: float
    own: bool


class OperatorTruth(msgspec.Struct, frozen=True, kw_only=True):
    """An operator whose own time the cause changed, on one rank, over all steps of the episode."""

    operator: str
    rank: int
    excess_ns: int


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One cause, from its beginning to its end."""

    class_: str = msgspec.field(name="class")  # of graph/classes.toml
    fault: str  # of the list of faults, or the testbed's kind
    culprit: Culprit
    severity: Severity
    intended: Window
    steps: tuple[StepTruth, ...] = ()
    operators: tuple[OperatorTruth, ...] = ()
    benign: bool = False
    measured: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """The truth of one run. Runs with one `root_seed` are relatives and never part over splits."""

    schema: str = SCHEMA
    run: str
    generator: dict[str, Any]
    root_seed: int
    twin_of: str | None = None
    episodes: tuple[Episode, ...] = ()
    healthy_windows: tuple[Window, ...] = ()
    extra: dict[str, Any] = {}


def truth_path(run: Path) -> Path:
    """Give where the truth of a run folder lies: outside of it."""
    return run.with_name(f"{run.name}.truth.json")


def write_truth(truth: Truth, run: Path) -> None:
    """Write it beside the folder."""
    encoded = msgspec.json.format(msgspec.json.encode(truth), indent=1)
    truth_path(run).write_bytes(encoded + b"\n")


def read_truth(run: Path) -> Truth:
    """Give the truth of a run folder."""
    return msgspec.json.decode(truth_path(run).read_bytes(), type=Truth)
