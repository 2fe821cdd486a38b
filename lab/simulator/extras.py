"""Work that faults of an operator do beside the model's own: put on a tape under a tag."""

from teller.lab.simulator import catalog
from teller.lab.simulator.happened import HostKind
from teller.lab.simulator.tape import Tape, Work
from teller.lab.simulator.work import six


def _hidden_sync(tape: Tape) -> None:
    own = catalog.host("operator")
    with (
        tape.span("aten::item", HostKind.OPERATOR, own, own),
        tape.span("aten::_local_scalar_dense", HostKind.OPERATOR, own),
    ):
        tape.read_back(4.0)


def _allocation(tape: Tape) -> None:
    with tape.span("aten::empty", HostKind.OPERATOR, catalog.host("operator")):
        tape.call("cudaMalloc", catalog.host("malloc"), six(constant=64.0 * 2**20))
    tape.sync("cudaFree")


def _blocking_copy(tape: Tape) -> None:
    own = catalog.host("operator")
    with (
        tape.span("aten::to", HostKind.OPERATOR, own * 0.5),
        tape.span("aten::copy_", HostKind.OPERATOR, own * 0.5),
    ):
        tape.pageable(4.0 * 2**20)


def _compile(tape: Tape) -> None:
    """Try kernels out, as an autotuner does, after they were compiled."""
    work = Work("trial", fixed_ns=30_000.0)
    with tape.span("triton::autotune", HostKind.OPERATOR, 8_000.0):
        for number in range(12):
            tape.kernel(f"triton_poi_fused_mul_silu_{number % 4}", work, "cuLaunchKernelEx")
        tape.sync("cudaDeviceSynchronize")


EXTRAS = {
    "compile_in_serving": _compile,
    "hidden_sync": _hidden_sync,
    "device_allocation": _allocation,
    "blocking_copy": _blocking_copy,
}
