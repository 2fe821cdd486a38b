"""What lines of one program mean: a module a program."""

from typing import Final

from teller.ingest.logs.knowledge import Knowledge
from teller.ingest.logs.known import (
    benchmark,
    kernel,
    nccl,
    ray,
    server,
    sglang,
    torch,
    triton,
    trtllm,
    vllm,
)

KNOWN: Final[tuple[Knowledge, ...]] = (
    nccl, vllm, sglang, trtllm, triton, torch, ray, kernel, server, benchmark,
)  # fmt: skip
