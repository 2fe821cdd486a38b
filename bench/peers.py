"""The environment of the peer, which its own needs keep apart from ours."""

import sys
from pathlib import Path
from typing import Final

import cost
from places import HERE, ROOT

FOLDER: Final = ROOT / ".venv-bench"
PYTHON: Final = str(FOLDER / "bin/python")
COMMAND: Final = (PYTHON, str(HERE / "peer.py"))
# our pins bind us and not the peer
FREE: Final = ("env", "-u", "PIP_CONSTRAINT", "-u", "PIP_BUILD_CONSTRAINT")


def install(made: Path) -> str:
    """Install the peer unless it is there; give why it could not be, "" where it is."""
    wanted, stamp = HERE / "requirements.txt", FOLDER / "installed.txt"
    if stamp.exists() and stamp.read_text() == wanted.read_text():
        return ""
    for command in (
        [sys.executable, "-m", "venv", str(FOLDER)],
        [*FREE, PYTHON, "-m", "pip", "install", "-q", "-r", str(wanted)],
    ):
        done = cost.of(command, made / "log")
        if done.code:
            return f"could not be installed: {done.complaint}"
    stamp.write_text(wanted.read_text())
    return ""
