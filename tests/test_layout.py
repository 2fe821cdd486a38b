"""The layout holds: links lead to their folders, code has one name, files stay small."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import teller

ROOT = Path(__file__).resolve().parents[1]
LINKS = ("graph", "ingest", "lab", "migrations", "models", "ui")
FILE_LINES = 300
FUNCTION_LINES = 40
LONGER: frozenset[str] = frozenset()  # "folder/file.py" or "folder/file.py:function", with a reason
HEAVY = ("torch", "streamlit", "sentence_transformers", "torch_geometric", "neo4j")

FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (*LINKS, "src/teller", "bench")
    for where, _, names in os.walk(ROOT / folder)
    for path in (Path(where, name) for name in names)
    if path.suffix == ".py"
)


def run(code: str) -> list[str]:
    """Give the words that the code prints in a Python of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.split()


@pytest.mark.parametrize("name", LINKS)
def test_a_link_leads_to_its_folder(name: str) -> None:
    link = ROOT / "src" / "teller" / name
    assert link.is_symlink(), f"{link} is no link: clone with core.symlinks=true"
    assert os.readlink(link) == f"../../{name}"
    assert link.resolve() == ROOT / name


def test_no_folder_is_imported_under_a_second_name() -> None:
    assert not set(LINKS) & set(sys.modules)
    assert not set(LINKS) & set(run("import teller.cli, sys; print(*sys.modules)"))


def test_the_package_under_test_is_this_checkout() -> None:
    assert Path(str(teller.__file__)).resolve() == ROOT / "src" / "teller" / "__init__.py"


def test_the_command_line_loads_nothing_heavy() -> None:
    assert not set(HEAVY) & set(run("import teller.cli, sys; print(*sys.modules)"))


def too_long(name: str) -> Iterator[tuple[str, int]]:
    text = (ROOT / name).read_text()
    yield name, max(0, len(text.splitlines()) - FILE_LINES)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # a command's flags are its parameters, each with its help: only the body is code
            start = node.body[0] if name.startswith("src/teller/cli/") else node
            lines = (node.end_lineno or node.lineno) - start.lineno + 1
            yield f"{name}:{node.name}", max(0, lines - FUNCTION_LINES)


def test_files_and_functions_are_short_enough_to_be_read_at_once() -> None:
    over = {what: by for name in FILES for what, by in too_long(name) if by}
    assert not over.keys() - LONGER, {what: over[what] for what in over.keys() - LONGER}
    assert not LONGER - over.keys(), "these are short now: take them off the list"
