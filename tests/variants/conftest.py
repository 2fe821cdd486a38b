"""Variants of each kind of incident: other hosts, ranks, sizes and versions, and what looks alike.

A test makes a folder of input files from a seed and says what the answer must be.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teller import pipeline
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent

Envelope = dict[str, Any]
GRAVE = ("medium", "high", "critical")


@pytest.fixture
def answer(tmp_path: Path) -> Callable[[Path], Envelope]:
    """Give a function that diagnoses a folder and gives the envelope."""

    def ask(folder: Path) -> Envelope:
        workspace = Workspace(tmp_path / "workspace", project=project)
        said = pipeline.diagnose([folder], workspace, Options(), Silent())
        envelope: Envelope = json.loads(json.dumps(said.to_json()))
        return envelope

    return ask


@pytest.fixture
def right(answer: Callable[[Path], Envelope]) -> Callable[..., Envelope]:
    """Give a function that holds an answer to what is wanted, and gives the envelope.

    `klass` is the class of the first finding ("" where none may weigh medium or more), `culprit`
    the parts of its culprit that must be exactly so, `never` classes that no grave finding may
    claim.
    """

    def check(
        folder: Path,
        klass: str,
        culprit: dict[str, Any] | None = None,
        never: tuple[str, ...] = (),
        verdict: str = "",
    ) -> Envelope:
        said = answer(folder)
        grave = [f for f in said["findings"] if f["severity"] in GRAVE]
        told = [(f["class"], f["severity"], f["title"]) for f in grave]
        assert said["verdict"] == (verdict or ("fault" if klass else "no_fault")), told
        if not klass:
            assert not told
            return said
        assert grave, "nothing was found"
        assert grave[0]["class"] == klass, told
        got = {part: grave[0]["culprit"][part] for part in culprit or {}}
        assert got == (culprit or {}), told
        assert not [t for t in told if t[0] in never], told
        return said

    return check
