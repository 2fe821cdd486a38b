"""Whether a recording can carry a verdict: a few checks, each with what it saw and what to do."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "weak", "bad", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `weak`: a verdict is possible, with less than all; `bad`: it would mislead."""

    name: str
    state: State
    what: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Sanity:
    """All checks of a folder, by run."""

    checks: tuple[tuple[str, Check], ...]  # name of the run, "" for the folder as a whole

    @property
    def state(self) -> State:
        """The worst of all checks."""
        states = {check.state for _, check in self.checks}
        return next((s for s in _WORST if s in states), "unknown")

    def to_json(self) -> dict[str, Any]:
        """Give it as programs read it."""
        said = [{"run": run, **asdict(check)} for run, check in self.checks]
        return {"schema": "teller.sanity/1", "state": self.state, "checks": said}


_WORST: tuple[State, ...] = ("bad", "weak", "unknown", "ok")


def ranks(seen: Sequence[int], expected: int | None) -> Check:
    """Compare the ranks that are here with those that there are."""
    if expected is None or expected < 1:
        # numbers with a gap tell of a rank that is missing; the last ones may be missing unseen
        expected = max(seen, default=-1) + 1
        if set(seen) >= set(range(expected)):
            return Check("ranks", "ok" if seen else "bad", f"{len(seen)} ranks are here")
    lost = sorted(set(range(expected)) - set(seen))
    if not lost:
        return Check("ranks", "ok", f"all {expected} ranks are here")
    some = ", ".join(map(str, lost[:8])) + (", …" if len(lost) > 8 else "")
    return Check(
        "ranks", "bad" if not seen else "weak",
        f"{len(lost)} of {expected} ranks left nothing: rank {some}",
        "record all ranks into one folder; a rank that is missing may be the one that others "
        "wait for",
    )  # fmt: skip


def windows(seen: Sequence[tuple[int, int, int]], *, apart: float = 0.1) -> Check:
    """Compare when the steps of ranks were recorded: rank, first and last time in ns."""
    if len(seen) < 2:
        return Check("windows", "ok" if seen else "unknown", f"{len(seen)} rank has steps")
    first, last = min(seen, key=lambda w: w[1]), max(seen, key=lambda w: w[1])
    together = min(end for _, _, end in seen) - last[1]
    skew, long = last[1] - first[1], max(end - start for _, start, end in seen)
    who = f"rank {last[0]} begins {skew / 1e9:.3f} s after rank {first[0]}"
    if together <= 0:
        return Check("windows", "bad", f"no moment is on all ranks: {who}",
                     "record all ranks over the same time")  # fmt: skip
    if skew > max(apart * long, 1_000_000_000):
        return Check("windows", "weak", f"{who}; {together / 1e9:.3f} s are on all ranks",
                     "start the profilers together, or leave the beginning out")  # fmt: skip
    return Check("windows", "ok", f"{together / 1e9:.3f} s are on all ranks, begun within "
                 f"{skew / 1e9:.3f} s")  # fmt: skip


def steps(by_rank: dict[int, int]) -> Check:
    """Tell whether every rank has annotated steps."""
    without = sorted(rank for rank, count in by_rank.items() if not count)
    if not by_rank or len(without) == len(by_rank):
        return Check(
            "annotations", "bad", "no step is annotated on any rank",
            "switch the engine's annotations on (vLLM: VLLM_NVTX_SCOPES_FOR_PROFILING=1; SGLang: "
            "SGLANG_ENABLE_NVTX_SCHEDULER=1) and record NVTX",
        )  # fmt: skip
    if without:
        some = ", ".join(map(str, without[:8]))
        return Check("annotations", "weak", f"rank {some} has no steps, unlike others",
                     "switch annotations on for every rank, and nvtx in --trace")  # fmt: skip
    low, high = min(by_rank.values()), max(by_rank.values())
    count = f"{low}" if low == high else f"{low} to {high}"
    return Check("annotations", "ok", f"every rank has annotated steps: {count}")
