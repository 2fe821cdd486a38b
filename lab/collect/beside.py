"""A command with the small Kineto daemon beside it: one window, after a delay."""

import threading
import time
from pathlib import Path
from typing import Final

from teller.lab.collect import launch, on_demand
from teller.lab.collect.command import Plan
from teller.lab.collect.launch import Ran

SECONDS: Final = 1.0  # of a window, where nothing else is said
_LAST_S: Final = 5  # for traces that are being written when the command is over


def run(plan: Plan, out: Path, host: str) -> Ran:
    """Run a plan, and ask its PyTorch processes for one window of Kineto.

    Raises `BadUsage` where another daemon runs on this machine, or the command cannot be started.
    """
    delay, seconds = plan.window
    daemon = on_demand.Daemon()
    ended = threading.Event()
    begin = time.monotonic() + delay

    def beside() -> None:
        if not ended.wait(max(begin - time.monotonic(), 0)):
            on_demand.window(daemon, out, seconds or SECONDS, over=ended.is_set)

    thread = threading.Thread(target=beside, daemon=True)
    try:
        thread.start()
        return launch.run(plan, out, host)
    finally:
        ended.set()
        thread.join(timeout=_LAST_S)
        daemon.close()
