"""What a diagnosis says, as the one object that every surface renders."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from teller.graph.explanation import Sentence

Severity = Literal["critical", "high", "medium", "low", "info"]
Verdict = Literal["fault", "no_fault", "data_quality", "not_visible"]

SEVERITIES: Final[tuple[Severity, ...]] = ("info", "low", "medium", "high", "critical")
ENVELOPE_SCHEMA: Final = "teller.diagnosis/1"


def _frozen(said: Any) -> Any:
    """Turn lists of JSON back into tuples."""
    return tuple(_frozen(x) for x in said) if isinstance(said, (list, tuple)) else said


@dataclass(frozen=True, slots=True)
class Culprit:
    """Who is to blame: a kind, and objects of every kind that name it. Devices are `host:index`."""

    kind: str = "none"
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    groups: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that can be opened: a node of the graph, where it was read, and a sentence."""

    role: str  # cause, effect, victim, healthy, context
    kind: str  # label of the node
    id: int  # of the node; a string in JSON
    source: str  # "rank1.json:place" or "node-a.log:17"
    text: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What it costs: excess over expected time, its share of the run, and over how many GPUs."""

    excess_ns: int = 0
    share: float = 0.0
    gpu_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer with its evidence. Times are ns since the run's t0."""

    id: int
    run: int
    klass: str  # a class of the class list; `class` in JSON
    case_class: str
    title: str
    severity: Severity
    confidence: float
    culprit: Culprit
    text: str  # the explanation, a few sentences
    next_step: str
    ruleset: str
    first_step: int | None = None
    last_step: int | None = None
    step_count: int = 0
    start_ns: int | None = None
    end_ns: int | None = None
    cost: Cost = field(default_factory=Cost)
    numbers: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    against: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    voices: Mapping[str, float] = field(default_factory=dict)
    explanation: tuple[Sentence, ...] = ()  # every sentence is proved by the graph

    def to_json(self) -> dict[str, Any]:
        """Give the finding as the envelope holds it: ids are strings, `class` is spelt out."""
        return {
            "id": str(self.id),
            "run": str(self.run),
            "class": self.klass,
            "case_class": self.case_class,
            "title": self.title,
            "severity": self.severity,
            "confidence": round(self.confidence, 3),
            "culprit": asdict(self.culprit),
            "text": self.text,
            "steps": {
                "first": self.first_step,
                "last": self.last_step,
                "count": self.step_count,
            },
            "time": {"start_ns": self.start_ns, "end_ns": self.end_ns},
            "cost": asdict(self.cost),
            "numbers": dict(self.numbers),
            "evidence": [asdict(e) | {"id": str(e.id)} for e in self.evidence],
            "against": list(self.against),
            "not_checked": list(self.not_checked),
            "next_step": self.next_step,
            "ruleset": self.ruleset,
            "voices": dict(self.voices),
            "explanation": [s.to_json() for s in self.explanation],
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "Finding":
        """Read back what `to_json` gave."""
        who = said["culprit"]
        culprit = Culprit(**{k: _frozen(v) for k, v in who.items()})
        steps, time = said["steps"], said["time"]
        return cls(
            id=int(said["id"]),
            run=int(said["run"]),
            klass=said["class"],
            case_class=said["case_class"],
            title=said["title"],
            severity=said["severity"],
            confidence=said["confidence"],
            culprit=culprit,
            text=said["text"],
            next_step=said["next_step"],
            ruleset=said["ruleset"],
            first_step=steps["first"],
            last_step=steps["last"],
            step_count=steps["count"],
            start_ns=time["start_ns"],
            end_ns=time["end_ns"],
            cost=Cost(**said["cost"]),
            numbers=said["numbers"],
            evidence=tuple(Evidence(**(e | {"id": int(e["id"])})) for e in said["evidence"]),
            against=tuple(said["against"]),
            not_checked=tuple(said["not_checked"]),
            voices=said["voices"],
            explanation=tuple(map(Sentence.from_json, said.get("explanation", ()))),
        )


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What the envelope says of one run."""

    id: int
    name: str
    t0_epoch_ns: int
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    steps: int
    clock_residual_ns: int | None
    requests: int = 0
    requests_over_target: int | None = None  # None where no target is set
    targets: Mapping[str, int] = field(default_factory=dict)  # ns: ttft, itl, e2e

    def to_json(self) -> dict[str, Any]:
        """Give it as the envelope holds it."""
        return asdict(self) | {"id": str(self.id), "t0_epoch_ns": str(self.t0_epoch_ns)}


@dataclass(frozen=True, slots=True)
class InputSummary:
    """What the envelope says of one input; `rank` is None where it has none."""

    file: str
    kind: str
    rank: int | None
    events: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Quality:
    """One remark on one file: where, what, and what to do."""

    file: str
    where: str
    what: str
    do: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer for one input."""

    verdict: Verdict
    runs: tuple[RunSummary, ...]
    findings: tuple[Finding, ...]
    data_quality: tuple[Quality, ...]
    inputs: tuple[InputSummary, ...]
    notes: tuple[str, ...] = ()  # what could not be answered, and what to record to see it

    def to_json(self) -> dict[str, Any]:
        """Give the `teller.diagnosis/1` envelope."""
        return {
            "schema": ENVELOPE_SCHEMA,
            "verdict": self.verdict,
            "runs": [r.to_json() for r in self.runs],
            "findings": [f.to_json() for f in self.findings],
            "data_quality": [asdict(q) for q in self.data_quality],
            "inputs": [asdict(i) for i in self.inputs],
            "notes": list(self.notes),
        }
