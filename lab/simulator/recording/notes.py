"""The dictionary of notes: what each kind needs, and what each program writes of it.

Values that a kind does not need but its text has are filled here, so that writers of causes give
only what the cause decides.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

DIALECTS: Final = ("vllm", "sglang", "trtllm", "nccl", "nccl_new", "torch", "kernel")
_FILLED: Final = {  # of texts; a note's own values go before
    "index": 0, "event": "GID table change(18)", "group": "0", "desc": "default_pg", "pg_id": 0,
    "group_rank": 0, "rank": 0, "gained": 4096, "row": 0x12BAC1C3E0, "events": 12,
    "tic": "10:00:00", "seconds": 20,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """What a program writes of a note."""

    text: str
    level: str
    where: str  # "core.py:844", "" where the program does not tell


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of note: the values that it needs, its text by dialect, or which figures show it."""

    needs: tuple[str, ...]
    texts: Mapping[str, str]
    figures: str = ""


@cache
def forms() -> dict[str, Form]:
    """Give all kinds."""
    text = files("teller.lab.simulator.recording").joinpath("notes.toml").read_text("utf-8")
    return {
        kind: Form(tuple(told.pop("needs")), {d: told[d] for d in DIALECTS if d in told},
                   told.get("figures", ""))
        for kind, told in tomllib.loads(text).items()
    }  # fmt: skip


def said(kind: str, dialect: str, values: Mapping[str, Any]) -> Said | None:
    """Give what a program writes; None where it writes nothing. An unknown kind is our mistake."""
    form = forms()[kind]
    if dialect not in form.texts:
        return None
    missing = [need for need in form.needs if need not in values]
    assert not missing, f"a note of kind {kind} lacks {', '.join(missing)}"
    text, _, place = form.texts[dialect].rpartition("|")
    level, _, where = place.partition(" ")
    return Said(text.format(**{**_FILLED, **_derived(values), **values}), level, where)


def _derived(values: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if "bus" in values:  # with or without the function
        made["slot"] = str(values["bus"]).partition(".")[0]
    if "ms" in values:
        made["seconds_of_ms"] = values["ms"] / 1000
    if "timeout_ms" in values:
        made["ran_ms"] = values["timeout_ms"] + 27
    if "bytes" in values and "ms" in values:
        made["mib"] = values["bytes"] / (1 << 20)
        made["mib_per_s"] = made["mib"] / max(values["ms"], 1e-6) * 1000
    return made
