"""What the tools say of traces in which it is known who is slow."""

import json
import shutil
import sys
from pathlib import Path
from typing import Final

import cost
import peers
from page import Answer
from places import TELLER, files, traces

FOUR_RANKS: Final = ("--ranks", "4", "--events", "486000")  # nine steps


def asked(made: Path, missing: str) -> list[Answer]:
    """Ask both tools about four ranks: with a slow one, without, and with clocks apart."""
    slow = "rank 2 is 1.20× slower from step {slow_from_step} on"
    planted_by = (
        (slow, ("--slow-rank", "2")),
        ("nothing: all ranks are alike", ("--slow-rank", "-1")),
        (f"{slow}; clocks up to 5 ms apart", ("--slow-rank", "2", "--clock-us", "5000")),
    )
    found = []
    for number, (planted, flags) in enumerate(planted_by):
        folder = made / f"asked-{number}"
        with files(folder, traces(folder, *FOUR_RANKS, *flags)):
            truth = json.loads(folder.with_suffix(".truth.json").read_text())
            ours, theirs = _ours(made, folder), missing or _theirs(made, folder)
        found.append(Answer(planted.format(**truth), ours, theirs))
        sys.stderr.write(f"{found[-1]}\n")
    return found


def _ours(made: Path, folder: Path) -> str:
    own = made / f"{folder.name}.workspace"
    command = [TELLER, "diagnose", str(folder), "--workspace", str(own), "-q", "--format", "json"]
    said = cost.of(command, made / "log")
    shutil.rmtree(own, ignore_errors=True)  # a scratch folder: what stays is no harm
    if said.code not in (0, 1):
        return said.complaint
    findings = json.loads(said.said)["findings"]
    return "; ".join(f["title"] + _steps(f["steps"]) for f in findings) or "no fault"


def _steps(steps: dict[str, int | None]) -> str:
    return "" if steps["first"] is None else f" (steps {steps['first']}–{steps['last']})"


def _theirs(made: Path, folder: Path) -> str:
    command = [*peers.COMMAND, "ask", str(folder)]
    said = cost.of(command, made / "log")
    if said.code:
        return said.complaint
    named = json.loads(said.said.splitlines()[-1])
    return f"stragglers: {', '.join(f'rank {rank}' for rank in named) or 'none'}"
