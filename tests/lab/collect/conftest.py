"""The recorder, built here, and programs that annotate under it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from teller.lab.collect import build
from tests.lab.collect.recording import Ran, streams

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def recorder() -> Path:
    """Give the library that records, or skip where it cannot be built."""
    if reason := build.why_not():
        if os.environ.get("CI"):
            pytest.fail(reason)  # there the compiler is part of what is set up
        pytest.skip(reason)
    return build.recorder()


@pytest.fixture(scope="session")
def program(recorder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the C program of many stories, built with the headers that programs use."""
    files = metadata.files("nvidia-nvtx") or []
    header = next(Path(str(f.locate())) for f in files if f.name == "nvToolsExt.h")
    made = tmp_path_factory.mktemp("program") / "annotates"
    words = ("-O1", f"-I{header.parents[1]}", str(HERE / "annotates.c"), "-o", str(made))
    command = [build.compiler() or "cc", *words, "-pthread", "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return made


@pytest.fixture
def environment(recorder: Path, tmp_path: Path) -> dict[str, str]:
    """Give the environment in which a program is recorded into `tmp_path`."""
    kept = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return kept | {"NVTX_INJECTION64_PATH": str(recorder), "TELLER_NVTX_DIR": str(tmp_path)}


@pytest.fixture
def recorded(environment: dict[str, str], tmp_path: Path) -> Callable[..., Ran]:
    """Give what runs a program under the recorder: what it printed, and its streams by time."""

    def run(*words: str | Path, **more: str) -> Ran:
        assert shutil.which(str(words[0]))
        done = subprocess.run(
            words, env=environment | more, stdout=subprocess.PIPE, text=True, check=True, timeout=60
        )
        return done.stdout, streams(tmp_path)

    return run
