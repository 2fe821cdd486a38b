"""Every module that knows a program's lines stands lines that are broken, empty or hostile."""

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from teller.graph.vocabulary import known
from teller.ingest.logs.known import (
    benchmark,
    kernel,
    ray,
    server,
    sglang,
    torch,
    triton,
    trtllm,
    vllm,
)
from teller.ingest.records import MEMBERS, REQUESTS, SAMPLES

Lines = Callable[..., pa.Table]
MODULES = (vllm, sglang, trtllm, triton, torch, ray, kernel, server, benchmark)
HUGE = "9" * 400
HOSTILE = [
    f"Xid (PCI:0000:9b:00): {HUGE}, pid={HUGE}, GPU{HUGE} GSP",
    f"[PG {HUGE} Rank {HUGE}] Watchdog caught: WorkNCCL(SeqNum={HUGE}, OpType=A, NumelIn={HUGE}, "
    f"NumelOut={HUGE}) last enqueued work: {HUGE}, last completed work: -{HUGE}",
    f"failed (exitcode: {HUGE}) local_rank: {HUGE} (pid: {HUGE})",
    f"iter = {HUGE}, rank = {HUGE}, host_step_time = {HUGE}ms, prev_device_step_time = {HUGE}ms",
    f"Iteration({HUGE}): {HUGE} context requests, {HUGE} context tokens, {HUGE} generation "
    f"requests, {HUGE} generation tokens, iteration elapsed time: {HUGE} ms",
    f"rank {HUGE} in world size {HUGE} is assigned as DP rank",
    f"world_size={HUGE} rank={HUGE} local_rank=0 distributed_init_method=x",
    f"Engine {HUGE}: Avg generation throughput: {HUGE} tokens/s, Running: {HUGE} reqs",
    f"Decode batch, #running-req: {HUGE}, token usage: {HUGE}, cuda graph: {HUGE}",
    f"Finish: obj=A(rid='{HUGE}'), out={{'prompt_tokens': {HUGE}, 'completion_tokens': {HUGE}}}",
    f"Subprocess x (pid={HUGE}) crashed with exit code {HUGE}",
    f'{{"Active Request Count":{HUGE},"Iteration Counter":{HUGE}}}',
    f"# Rank {HUGE} Group 0 Pid {HUGE} on host device {HUGE} [0000:07:00]",
    f"  busbw\n  {HUGE}  {HUGE}  float  sum  -1  1  {HUGE}.00  {HUGE}.00  0  1  1.00  1.00  0",
    f"Latency of step {HUGE}: {HUGE} ms",
    f"A worker died or was killed: Worker IP address: x Worker PID: {HUGE} Worker exit type: A",
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rsplit(".", 1)[-1])
class TestModule:
    """The same stories for each module."""

    def test_no_lines_give_nothing(self, module: ModuleType, lines: Lines) -> None:
        meant = meant = module.knowing().learn(lines([]))
        assert meant.learned.samples.schema == SAMPLES
        assert meant.learned.members.schema == MEMBERS
        assert meant.learned.requests.schema == REQUESTS
        assert meant.learned.samples.num_rows == 0

    def test_marks_alone_and_rubbish_raise_nothing(self, module: ModuleType, lines: Lines) -> None:
        chance = random.Random(7)
        texts = [
            mark + tail
            for mark in module.MARKS
            for tail in ("", "(", ": ", "=-1,", "\n\n ", "é\x00")
        ]
        texts += ["".join(chance.choices(" ,:=[](){}'\"\\%.0aA\n", k=60)) for _ in range(200)]
        texts += [mark + text for mark, text in zip(module.MARKS * 9, texts, strict=False)]
        meant = module.knowing().learn(lines([*texts, *HOSTILE], process="TP" + HUGE))
        assert all(rank < 2**31 for rank in (meant.processes or {}).values())

    def test_cut_and_spliced_real_lines(
        self, module: ModuleType, lines: Lines, shared: Path
    ) -> None:
        chance = random.Random(11)
        paths = [*(shared / "traces").glob("*_log/*.log"), *(shared / "cases").glob("*/*.log")]
        texts = [
            text
            for path in sorted(paths)
            for text in path.read_text(errors="replace").splitlines()[::7]
            if any(mark in text for mark in module.MARKS)
        ]
        torn = [text[: chance.randrange(len(text) + 1)] for text in texts]
        spliced = [
            a + text[chance.randrange(len(text) + 1) :]
            for a, text in zip(torn, texts[1:], strict=False)
        ]
        knowing = module.knowing()
        for some in (texts, torn, spliced, ["\n".join(torn)]):
            meant = knowing.learn(lines(some, first=1))
            assert all(map(known, meant.learned.samples["name"].unique().to_pylist()))
            if meant.told is not None:
                assert meant.told["place"].null_count == 0
