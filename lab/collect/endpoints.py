"""The profiler endpoints of running servers: vLLM's and SGLang's, over HTTP."""

import http
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from teller.errors import BadUsage

Engine = Literal["vllm", "sglang"]

_ASK_S: Final = 10
_STOP_S: Final = 1800  # vLLM answers when its traces are written: minutes for a large model
_SAID: Final = 300
_HOW: Final[Mapping[Engine, str]] = {
    "vllm": "start the server with --profiler-config "
    '\'{"profiler": "torch", "torch_profiler_dir": "DIR"}\' (before 0.13: VLLM_TORCH_PROFILER_DIR)',
    "sglang": "its /start_profile needs no flag; is this the address of the server itself?",
}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answered."""

    url: str
    engine: Engine
    version: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """What was recorded: UTC epoch ns, and what the server said at its end."""

    begun_ns: int
    ended_ns: int
    said: str


def find(url: str) -> Server:
    """Give what kind of server answers there.

    Raises `BadUsage` where nobody answers, or nobody that we know.
    """
    url = url.rstrip("/")
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise BadUsage(f"{url!r} is no address of a server: http://HOST:PORT is meant")
    # SGLang answers /version too in some releases, vLLM has neither of the other two.
    for path in ("/server_info", "/get_server_info"):
        if isinstance(found := _asked(url + path), dict):
            return Server(url, "sglang", str(found.get("version", "")))
    found = _asked(url + "/version")
    if isinstance(found, dict) and "version" in found:
        return Server(url, "vllm", str(found["version"]))
    raise BadUsage(f"{url}: a server answers, but neither as vLLM nor as SGLang does")


def record(
    server: Server,
    seconds: float,
    folder: str,
    *,
    steps: int | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Window:
    """Record for so long; the profiler is stopped whatever comes between.

    `folder` is on the server's side: SGLang writes there, vLLM where it was told at its start.
    """
    body: dict[str, Any] = {}
    if server.engine == "sglang":
        body = {"output_dir": folder, "activities": ["CPU", "GPU"]}
        body |= {"num_steps": steps} if steps else {}
    begun = time.time_ns()
    _told(server, "/start_profile", body, _ASK_S)
    try:
        wait(seconds)
    finally:
        ended = time.time_ns()
        said = _stopped(server, steps)
    return Window(begun, ended, said)


def _stopped(server: Server, steps: int | None) -> str:
    try:
        return _told(server, "/stop_profile", {}, _STOP_S)
    except BadUsage:
        if steps:  # SGLang has stopped by itself after them, and refuses
            return ""
        raise


def _asked(url: str) -> Any:
    """Give what a server answers as JSON; None for a path that it does not have."""
    try:
        with urllib.request.urlopen(url, timeout=_ASK_S) as answer:
            return json.loads(answer.read(1 << 20) or b"null")
    except urllib.error.HTTPError:
        return None
    except ValueError:
        return None
    except (OSError, http.client.HTTPException) as err:
        raise BadUsage(f"{url}: nobody answers: {_reason(err)}") from err


def _told(server: Server, path: str, body: dict[str, Any], patience: float) -> str:
    asked = urllib.request.Request(
        server.url + path, json.dumps(body).encode() if body else b"", method="POST",
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(asked, timeout=patience) as answer:
            return str(answer.read(_SAID).decode("utf-8", "replace")).strip()
    except urllib.error.HTTPError as err:
        said = err.read(_SAID).decode("utf-8", "replace").strip()
        hint = _HOW[server.engine] if err.code == http.HTTPStatus.NOT_FOUND else said or err.reason
        raise BadUsage(f"{server.url}{path} says {err.code}: {hint}") from err
    except (OSError, http.client.HTTPException) as err:
        raise BadUsage(f"{server.url}{path}: {_reason(err)}") from err


def _reason(err: Exception) -> Exception | str:
    return getattr(err, "reason", None) or err
