"""One rank process: `python -m teller.lab.testbed.rank RANK.json`.

Recorder and agent are attached here, from outside: the service knows of neither.
"""

import ctypes
import logging
import os
import sys
import time
from pathlib import Path
from typing import Final

import msgspec
import torch
import torch.distributed as dist

from teller.lab.testbed.agent import Agent
from teller.lab.testbed.capture import Capture
from teller.lab.testbed.engine import Engine, Worker
from teller.lab.testbed.frontend import ApiServer
from teller.lab.testbed.model import Group
from teller.lab.testbed.runner import Runner
from teller.lab.testbed.settings import Rank

log = logging.getLogger("testbed")
_SET_NAME: Final = 15  # of prctl


def main(path: Path) -> None:
    """Run the rank that the file describes until its service is ended."""
    me = msgspec.json.decode(path.read_bytes(), type=Rank)
    ctypes.CDLL(None).prctl(_SET_NAME, me.process_name.encode()[:15], 0, 0, 0)
    _log_to(me)
    torch.set_num_threads(1)
    capture = Capture(me)
    if me.profiled:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            torch.zeros(1)
    capture.attach()
    group = _join(me)
    start = time.monotonic()
    runner = Runner(me, group)
    capture.name_modules(runner.model)
    log.info("Loading weights took %.2f seconds", time.monotonic() - start)
    log.info("# GPU blocks: %d, # CPU blocks: 0", me.service.kv_blocks)
    if me.service.world > 1:
        dist.barrier()
    if me.rank:
        Agent(me, runner, None, capture).start()
        Worker(me, runner).loop()
    else:
        engine = Engine(me, runner)
        server = ApiServer(engine, me.http_port)
        server.start()
        server.ready.wait()
        Agent(me, runner, engine, capture).start()
        engine.loop()
        (me.control / "steps.json").write_bytes(msgspec.json.encode(engine.steps))
    capture.save()
    if me.service.world > 1:
        dist.barrier()
        dist.destroy_process_group()
    log.info("Shutting down")


def _join(me: Rank) -> Group:
    of = me.service
    mine = None
    if of.world > 1:
        where = f"tcp://{me.master}:{me.port}"
        dist.init_process_group("gloo", init_method=where, rank=me.rank, world_size=of.world)
        stages = [list(range(s * of.tp, (s + 1) * of.tp)) for s in range(of.pp)]
        mine = [dist.new_group(stage, group_desc="tp") for stage in stages][me.pp_rank]
    log.info(
        "rank %d in world size %d is assigned as DP rank 0, PP rank %d, TP rank %d; backend gloo",
        me.rank, of.world, me.pp_rank, me.tp_rank,
    )  # fmt: skip
    return Group(of.tp, mine)


class _Lines(logging.Formatter):
    """Lines as vLLM writes them: whole seconds, no year, local time."""

    def __init__(self, process: str, pid: int) -> None:
        super().__init__(
            f"({process} pid={pid}) %(levelname)s %(asctime)s [%(filename)s:%(lineno)d] "
            "%(message)s", datefmt="%m-%d %H:%M:%S",
        )  # fmt: skip


def _log_to(me: Rank) -> None:
    handler = logging.FileHandler(me.log)
    handler.setFormatter(_Lines(me.process_name, os.getpid()))
    log.setLevel(logging.INFO)
    log.addHandler(handler)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
