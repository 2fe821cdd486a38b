"""Text of Kineto's events that depends on names and calls alone: each distinct one is made once."""

from typing import Final

from teller.lab.simulator.happened import OPS, CopyKind
from teller.lab.simulator.recording.looks import Launch
from teller.lab.simulator.scene import Group

_COLLECTIVES: Final = {
    "all_reduce": "allreduce", "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base", "all_to_all": "all_to_allv",
    "broadcast": "broadcast", "send": "send", "recv": "recv",
}  # fmt: skip
_GATHERED: Final = ("all_gather",)
_SCATTERED: Final = ("reduce_scatter",)
_LISTED: Final = 30  # ranks that a list of a large group shows
_KINDS: Final = {CopyKind.H2D: "HtoD", CopyKind.D2H: "DtoH", CopyKind.D2D: "DtoD"}
_MULTIPROCESSORS: Final = 132


def quoted(text: str) -> str:
    """Give text as the writer puts it between quotes."""
    return text.replace("\\", "/").replace("\n", " ").replace('"', '\\"')


def shape(look: Launch) -> str:
    """Give the arguments of a kernel's launch."""
    blocks = look.grid / _MULTIPROCESSORS
    return (
        f'"registers per thread": {look.registers}, "shared memory": {look.shared}, '
        f'"blocks per SM": {blocks:.6f}, "warps per SM": {blocks * look.block / 32:.6f}, '
        f'"grid": [{look.grid}, 1, 1], "block": [{look.block}, 1, 1], '
        f'"est. achieved occupancy %": {min(100, int(blocks * look.block / 20.48))}'
    )


def copy_name(kind: int, *, pageable: bool) -> str:
    """Give the name of a copy: from where to where."""
    host = "Pageable" if pageable else "Pinned"
    ends = {CopyKind.H2D: (host, "Device"), CopyKind.D2H: ("Device", host)}
    source, target = ends.get(CopyKind(kind), ("Device", "Device"))
    return f"Memcpy {_KINDS.get(CopyKind(kind), 'DtoD')} ({source} -> {target})"


def comm(group: Group, op: int, elements: int, peer: int, *, generation: str, number: int) -> str:
    """Give what `record_param_comms` says of a collective, but its number."""
    word, size = OPS[op], len(group.ranks)
    inward = elements // size if word in _GATHERED else elements
    outward = elements // size if word in _SCATTERED else elements
    listed = ", ".join(map(str, group.ranks[:_LISTED]))
    more = ", ..." if size > _LISTED else ""
    stride = group.ranks[1] - group.ranks[0] if size > 1 else 1
    said = [
        f'"Collective name": "{_COLLECTIVES[word]}"', '"dtype": "BFloat16"',
        f'"In msg nelems": {inward}', f'"Out msg nelems": {outward}', f'"Group size": {size}',
        '"In split size": "[]"', '"Out split size": "[]"',
        f'"Global rank start": {group.ranks[0]}', f'"Global rank stride": {stride}',
    ]  # fmt: skip
    if generation == "2024":
        said.append(f'"Process Group ID": {number}')
    if generation >= "2025":
        said.append(f'"Process Group Name": "{group.name}"')
    if generation >= "2024":
        said.append(f'"Process Group Ranks": "[{listed}{more}]"')
    if generation >= "2025":
        said.append(f'"Process Group Description": "{_desc(group)}"')
    if word in ("send", "recv") and generation >= "2025":
        said.append(f'"{"Dst" if word == "send" else "Src"} Rank": {peer}')
    if generation >= "2026":
        said.append(f'"Comms Id": {group.comm}')
    return ", ".join(said)


def _desc(group: Group) -> str:
    return "default_pg" if group.desc == "world" else group.desc


def kernel_of(op: int) -> str:
    """Give what PyTorch annotates around a call of NCCL."""
    return f"nccl:{OPS[op]}"
