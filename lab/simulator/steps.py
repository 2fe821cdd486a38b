"""Whole steps on tapes: what the worker of each engine does before, in and after the model."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from teller.lab.simulator import catalog
from teller.lab.simulator.dialect import Dialect
from teller.lab.simulator.extras import EXTRAS
from teller.lab.simulator.happened import CopyKind, HostKind
from teller.lab.simulator.layers import Kind, Layers
from teller.lab.simulator.program import Program
from teller.lab.simulator.scene import DTYPE_BYTES, Scene
from teller.lab.simulator.tape import Names, Tape
from teller.lab.simulator.work import six

_PHASES = {
    "vllm": ("gpu_model_runner: preprocess", "gpu_model_runner: forward",
             "gpu_model_runner: sample", "gpu_model_runner: bookkeep"),
    "sglang": ("scheduler.prepare", "scheduler.forward", "scheduler.sample", "scheduler.resolve"),
    "trtllm": ("_prepare_inputs", "_forward_step_inner", "_sample_async", "_update_requests"),
}  # fmt: skip
_VIEWS = 14  # operators that only look at tensors, while inputs are prepared
_COPIES = {"vllm": 9, "sglang": 4, "trtllm": 6}


def build(scene: Scene, names: Dialect, kind: Kind, numbers: Names) -> Program:
    """Give the program of one kind of step on the ranks of one pipeline stage."""
    tape = Tape(numbers)
    layers = Layers(scene, names, tape, kind)
    prepare, forward, sample, bookkeep = _PHASES[scene.engine]
    with _phase(layers, prepare):
        _prepare(layers)
    with _phase(layers, forward):
        _forward(layers)
    if kind.last:
        with _phase(layers, sample):
            _sample(layers)
    with _phase(layers, bookkeep):
        _bookkeep(layers)
    return tape.done()


@contextmanager
def _phase(layers: Layers, name: str) -> Iterator[None]:
    if layers.names.scopes:
        with layers.tape.span(name, HostKind.PHASE, 6000.0, 3000.0):
            yield
    else:
        layers.tape.spend(6000.0)
        yield
        layers.tape.spend(3000.0)


def _extras(layers: Layers, role: str) -> None:
    for tag, layer, where in layers.kind.extras:
        if (layer, where) == (-1, role):
            with layers.tape.tagged(tag):
                EXTRAS[tag](layers.tape)


def _operator(layers: Layers, name: str, ns: float) -> None:
    if layers.names.operators:
        with layers.tape.span(name, HostKind.OPERATOR, ns):
            pass
    else:
        layers.tape.spend(ns)


def _prepare(layers: Layers) -> None:
    """Lay out the inputs: looks at tensors, copies of indices, a few kernels."""
    tape, view = layers.tape, catalog.host("view")
    tape.spend(55_000.0)
    copies = _COPIES[layers.scene.engine]
    for i in range(copies):
        for _ in range(_VIEWS // copies + 1):
            _operator(layers, "aten::slice", view)
            _operator(layers, "aten::as_strided", view * 0.4)
        with _copying(layers):
            tape.copy(
                "Memcpy HtoD (Pinned -> Device)", CopyKind.H2D,
                six(constant=512.0, token=8.0) if i % 2 else six(constant=256.0, sample=8.0),
            )  # fmt: skip
    layers.torch("add")
    _extras(layers, "prepare")
    tape.spend(30_000.0)


@contextmanager
def _copying(layers: Layers) -> Iterator[None]:
    if layers.names.operators:
        own = catalog.host("operator")
        with layers.tape.span("aten::copy_", HostKind.OPERATOR, own * 0.6, own * 0.4):
            yield
    else:
        yield


def _forward(layers: Layers) -> None:
    kind, tape = layers.kind, layers.tape
    first, last = kind.layers
    if not kind.first:
        _pass_on(layers, "recv")
    if kind.graph and not kind.prefill:
        nodes = (last - first) / 36
        with tape.replay("cudaGraphLaunch", catalog.host("graph_launch") * max(0.3, nodes)):
            _model(layers, first, last)
    elif kind.graph:
        _pieces(layers, first, last)
    else:
        with layers.module("model"):
            _model(layers, first, last)
    if kind.last and not kind.graph:
        _extras(layers, "forward")
    if not kind.last:
        _pass_on(layers, "send")


def _pass_on(layers: Layers, op: str) -> None:
    """Give activations to the next pipeline stage, or take them from the one before."""
    size = six(token=layers.shapes.activation)
    kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    with tape_range(layers, f"c10d::{op}"):
        layers.tape.collective(
            kernel, "pp", op, size, own=False, api="ncclSend" if op == "send" else "ncclRecv"
        )


def _model(layers: Layers, first: int, last: int) -> None:
    if layers.kind.first:
        layers.torch("embedding")
    for number in range(first, last):
        layers.layer(number)
    if layers.kind.last:
        with layers.module("model.norm"):
            layers.kernel("norm") if not layers.names.native else layers.torch("mean")


def _pieces(layers: Layers, first: int, last: int) -> None:
    """Launch graphs of what lies between attentions; attention itself is launched alone."""
    with layers.tape.replay("cudaGraphLaunch", catalog.host("graph_piece")):
        if layers.kind.first:
            layers.torch("embedding")
    for number in range(first, last):
        with layers.tape.replay("cudaGraphLaunch", catalog.host("graph_piece")):
            layers.layer(number)
        layers.tape.spend(12_000.0)


def _sample(layers: Layers) -> None:
    """Choose tokens: gather the rows, project to the vocabulary, pick."""
    scene, tape = layers.scene, layers.tape
    layers.torch("index")
    layers.kernel("lm_head")
    if scene.tp > 1:
        size = six(sample=layers.shapes.logits)
        with layers.operators(""), tape_range(layers, "c10d::_allgather_base_"):
            tape.collective(
                "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "tp",
                "all_gather", size, own=False, api="ncclAllGather",
            )  # fmt: skip
    _extras(layers, "sample")
    layers.torch("softmax")
    if scene.engine == "trtllm":
        layers.torch("argmax")
    else:
        layers.torch("sample")
    tape.spend(25_000.0)


def tape_range(layers: Layers, name: str) -> AbstractContextManager[object]:
    """Open an operator of the framework, where these are recorded."""
    if layers.names.operators:
        return layers.tape.span(name, HostKind.OPERATOR, 2400.0, 800.0)
    return nullcontext()


def _bookkeep(layers: Layers) -> None:
    """Bring the tokens to the host and wait for them; stages before the last only finish."""
    tape = layers.tape
    if layers.scene.offload:
        model = layers.scene.model
        heads = max(model.kv_heads / layers.scene.tp, 1)
        first, last = layers.kind.layers
        blocks = 2.0 * DTYPE_BYTES * (last - first) * heads * model.head
        tape.copy("Memcpy DtoH (Device -> Pinned)", CopyKind.D2H, six(token=blocks))
    if layers.kind.last:
        tape.copy("Memcpy DtoH (Device -> Pinned)", CopyKind.D2H, six(sample=8.0))
        tape.sync(
            "cudaEventSynchronize" if layers.scene.engine == "vllm" else "cudaStreamSynchronize"
        )
    else:
        tape.sync("cudaStreamSynchronize")
    tape.spend(40_000.0)
