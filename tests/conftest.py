"""What tests share: the folder of public trace files that lies beside the checkout."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Give the folder of reference traces, or skip: a clone alone does not have it."""
    folder = Path(os.environ.get("TELLER_SHARED", ROOT.parent / "shared")).resolve()
    if not (folder / "traces").is_dir():
        pytest.skip(f"no reference traces in {folder}; TELLER_SHARED names another folder")
    return folder
