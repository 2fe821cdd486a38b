"""What changed from one run to another, as the one object that every surface renders."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from teller.graph.finding import Finding, RunSummary

DIFFERENCE_SCHEMA: Final = "teller.diff/1"

# more, less: clearly, and by the threshold or more. same: less than the threshold, or clearly
# within it. unsure: it may be by the threshold, but noise may be all of it. few: too few figures.
# apart: figures on both sides, at no like load. new, gone: in one run only.
Told = Literal["more", "less", "same", "unsure", "few", "apart", "new", "gone"]
Section = Literal[
    "step", "throughput", "family", "operator", "collective", "pace", "request", "load"
]
Answer = Literal["slower", "new_fault", "not_slower", "not_comparable"]


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both runs, at like load: medians, and the interval of their difference."""

    section: Section
    name: str
    where: str  # phase and load, host or device, group: what the figure is of
    unit: str  # ns, count, ratio, per_s
    usual: float | None
    now: float | None
    low: float | None  # of now minus usual, in the unit; None where too little is there to tell
    high: float | None
    usual_count: int  # figures that were compared
    now_count: int
    told: Told
    worse: Literal["more", "less", ""]  # which way is slower; "" where neither is
    decides: bool = False  # it may make the answer "slower"
    each: tuple[float, float] | None = None  # a call's own time, ns: in the usual run, and now
    calls: tuple[float, float] | None = None  # calls a step: in the usual run, and now

    @property
    def slower(self) -> bool:
        """Tell whether it clearly got worse."""
        return bool(self.worse) and self.told == self.worse

    @property
    def ratio(self) -> float | None:
        """Give now over usual, None where that says nothing."""
        if self.usual is None or self.now is None or not self.usual:
            return None
        return self.now / self.usual

    def to_json(self) -> dict[str, Any]:
        """Give it as the envelope holds it."""
        return asdict(self) | {"ratio": self.ratio, "slower": self.slower}


@dataclass(frozen=True, slots=True)
class Setting:
    """A version, option or variable that is not the same in both runs."""

    name: str
    usual: tuple[str, ...]  # its values; none where it is not told
    now: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """All that changed from the usual run to the other."""

    usual: RunSummary
    now: RunSummary
    threshold: float
    answer: Answer
    changes: tuple[Change, ...]
    settings: tuple[Setting, ...]
    findings: tuple[Finding, ...]  # of the second run, compared with the usual one
    new_faults: tuple[int, ...]  # ids of findings whose class the usual run does not show
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Give the `teller.diff/1` envelope."""
        return {
            "schema": DIFFERENCE_SCHEMA,
            "answer": self.answer,
            "threshold": self.threshold,
            "usual": self.usual.to_json(),
            "now": self.now.to_json(),
            "changes": [c.to_json() for c in self.changes],
            "settings": [asdict(s) for s in self.settings],
            "findings": [
                f.to_json() | {"new": f.id in self.new_faults} for f in self.findings
            ],
            "notes": list(self.notes),
        }  # fmt: skip


def answer(changes: Sequence[Change], new_faults: Sequence[int]) -> Answer:
    """Say what the changes amount to."""
    deciding = [c for c in changes if c.decides]
    if any(c.slower for c in deciding):
        return "slower"
    if new_faults:
        return "new_fault"
    judged = any(c.told in ("more", "less", "same", "unsure") for c in deciding)
    return "not_slower" if judged else "not_comparable"


def exit_code(difference: Difference) -> int:
    """Give 0 where nothing is slower, 1 where something is or a fault is new, 2 for no answer."""
    return {"not_slower": 0, "slower": 1, "new_fault": 1, "not_comparable": 2}[difference.answer]
