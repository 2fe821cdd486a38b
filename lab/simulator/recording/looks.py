"""How names look: of kernels as CUPTI and its readers print them, of calls with their versions."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from zlib import crc32

_SINCE: Final = {  # the release of CUDA whose entry point it is
    "cudaLaunchKernel": 7000, "cudaLaunchKernelExC": 11060, "cudaLaunchCooperativeKernel": 9000,
    "cudaGraphLaunch": 10000, "cudaStreamIsCapturing": 10000, "cudaGraphInstantiate": 12000,
    "cudaFuncSetAttribute": 9000, "cudaEventRecordWithFlags": 11010, "cudaMallocAsync": 11020,
    "cudaFreeAsync": 11020, "cudaStreamBeginCapture": 10000, "cudaStreamEndCapture": 10000,
    "cudaThreadExchangeStreamCaptureMode": 10010,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": 7000,
}  # fmt: skip
_OLDEST: Final = 3020
_CBIDS: Final = {
    "cudaLaunchKernel": 211, "cudaLaunchKernelExC": 430, "cudaMemcpyAsync": 41, "cudaMemcpy": 31,
    "cudaMemsetAsync": 51, "cudaStreamSynchronize": 131, "cudaDeviceSynchronize": 165,
    "cudaEventRecord": 135, "cudaEventQuery": 136, "cudaEventSynchronize": 137,
    "cudaStreamWaitEvent": 147, "cudaGraphLaunch": 311, "cudaMalloc": 20, "cudaFree": 22,
    "cudaHostAlloc": 27, "cudaStreamIsCapturing": 317, "cuLaunchKernel": 307,
    "cuLaunchKernelEx": 652, "cudaFuncGetAttributes": 14, "cudaFuncSetAttribute": 271,
}  # fmt: skip
_PLAIN: Final = re.compile(r"(?<=[<, ])-?\d+(?=(?:u|ul|l)?[,>])(?:u|ul|l)?")
_NUMBERS: Final = {"u": "(unsigned int)", "ul": "(unsigned long)", "l": "(long)", "": "(int)"}


@dataclass(frozen=True, slots=True)
class Launch:
    """The shape of a kernel's launch; the same for each launch of a name."""

    registers: int
    grid: int
    block: int
    shared: int


@lru_cache(maxsize=1 << 12)
def launch(name: str) -> Launch:
    """Give the shape of a kernel's launches, drawn from its name."""
    draw = crc32(name.encode())
    if "nccl" in name[:16]:
        return Launch(96, 16, 544, 82_000)
    block = (128, 256, 256, 384, 512)[draw % 5]
    heavy = any(word in name for word in ("gemm", "nvjet", "flash", "Attention", "cutlass"))
    registers = (168, 128, 232, 255)[draw >> 3 & 3] if heavy else (16, 24, 32, 40)[draw >> 3 & 3]
    return Launch(registers, 1 + (draw >> 8) % 1056, block, 49_152 * (1 + (draw >> 5) % 4) * heavy)


def is_driver(call: str) -> bool:
    """Tell whether a call is of the driver's interface."""
    return not call.startswith("cuda")


def versioned(call: str) -> str:
    """Give a call's name as nsys writes it."""
    return call if is_driver(call) else f"{call}_v{_SINCE.get(call, _OLDEST)}"


def cbid(call: str) -> int:
    """Give the number that CUPTI has for a call."""
    return _CBIDS.get(call, crc32(call.encode()) % 400)


@lru_cache(maxsize=1 << 12)
def demangled(name: str) -> str:
    """Give a kernel's name as nsys demangles it: numbers with their types, namespaces unnamed."""
    text = name.replace("(anonymous namespace)", "<unnamed>")
    return _PLAIN.sub(lambda m: _typed(m[0]), text)


def _typed(text: str) -> str:
    digits = text.rstrip("ul")
    return _NUMBERS[text[len(digits) :]] + digits


@lru_cache(maxsize=1 << 12)
def short(name: str) -> str:
    """Give the bare name of a kernel's function: no result, namespaces, templates, arguments."""
    text = name.replace("(anonymous namespace)::", "").removeprefix("void ")
    head = re.split(r"[<(]", text, maxsplit=1)[0]
    return head.rsplit("::", 1)[-1].strip() or text


@lru_cache(maxsize=1 << 12)
def mangled(name: str) -> str:
    """Give something like a kernel's symbol; C functions are their own."""
    if "(" not in name and "<" not in name:
        return name
    text = short(name)
    return f"_ZN{len(text)}{text}I{crc32(name.encode()):08x}EvT_"
