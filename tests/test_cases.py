"""The small cases: class, culprit, evidence and numbers, and nothing that is forbidden."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from teller import pipeline
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.models.listening import Ask
from teller.pipeline import Options, Silent


@pytest.fixture(scope="module")
def marks(shared: Path) -> ModuleType:
    """Give the cases' own marking."""
    spec = importlib.util.spec_from_file_location("case_marks", shared / "cases" / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["case_marks"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", range(1, 16))
def test_a_case_is_answered_right(
    number: int, shared: Path, marks: ModuleType, tmp_path: Path
) -> None:
    case = sorted((shared / "cases").glob(f"o{number:02d}_*"))[0]
    folder = tmp_path / "input"
    shutil.copytree(case, folder, ignore=shutil.ignore_patterns("expected.json"))
    workspace = Workspace(tmp_path / "workspace", project=project)
    said = pipeline.diagnose([folder], workspace, Options(model=Ask()), Silent()).to_json()
    asked = json.loads((case / "expected.json").read_text("utf-8"))["score"]
    mark = marks.mark(case.name, asked, json.loads(json.dumps(said)))
    assert mark.total >= 95, mark.missed
    assert not mark.forbidden
