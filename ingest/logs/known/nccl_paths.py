"""How NCCL joins the ranks of a communicator: edges of channels, their number, nodes."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import WHO, matched, number, samples
from teller.ingest.logs.known.nccl_comms import Comms
from teller.ingest.logs.meaning import integers
from teller.ingest.records import PATHS

EDGE: Final = (
    r"^(?:Channel|Ring) (?P<channel>\d{1,5})(?:/\d+)? : (?P<src>\d{1,7})(?:\[[0-9a-fA-F]+\])? -> "
    r"(?P<dst>\d{1,7})(?:\[[0-9a-fA-F]+\])?(?: \[(?P<way>send|receive)\])? "
    r"via (?P<transport>\S.*?)(?: comm 0x[0-9a-fA-F]+ nRanks \d+)?\s*$"
)
CHANNELS: Final = r"^(?P<channels>\d{1,5}) coll channels, "
NODES: Final = (
    r"^comm (?P<pointer>0x[0-9a-fA-F]+) rank \d+ nRanks \d+ nNodes (?P<nodes>\d{1,7}) localRanks"
)
TIMINGS: Final = (
    r"^Init timings - \w+: rank (?P<own>\d{1,7}) nranks \d+ total (?P<total>\d{1,6}(?:\.\d+)?)"
)


def paths(rows: pa.Table, comms: Comms) -> tuple[pa.Table, pa.Table]:
    """Give the edges of channels, and the lines read."""
    told = matched(rows, EDGE, " via ")
    src, dst = (told[end].combine_chunks() for end in ("src", "dst"))
    # the receiver speaks of what it receives, the sender of all else
    own = pc.if_else(pc.equal(told["way"], "receive"), dst, src).combine_chunks()
    comm = comms.by_rank(told, own)
    largest = pc.max_element_wise(integers(src), integers(dst))
    fits = pc.less(largest, comms.column("of", comm))
    comm = pc.if_else(fits, comm, None)
    made = {who: told[who] for who in WHO} | {
        "comm": comms.column("comm", comm),
        "channel": told["channel"],
        "src_rank": src,
        "dst_rank": dst,
        "transport": told["transport"],
        "rank": comms.ranks(told, comm),
    }
    columns = [made[f.name].cast(f.type) for f in PATHS]
    return pa.table(columns, schema=PATHS), told


def network_edges(told: pa.Table) -> pa.Table:
    """Give a sample for each edge of channels that goes over a network, once a process."""
    over = told.filter(pc.starts_with(told["transport"], "NET/"))
    key = ["host", "pid", "src", "dst", "transport"]
    first = over.append_column("at", pa.array(range(over.num_rows), pa.int64()))
    first = first.group_by(key).aggregate([("at", "min")])["at_min"].sort()
    each = over.take(first)
    text = pc.binary_join_element_wise(each["src"], "->", each["dst"], " ", each["transport"], "")
    device = pc.struct_field(
        pc.extract_regex(each["transport"], r"^NET/[^/]+/(?P<device>\d{1,4})\b"), "device"
    )
    return samples("nccl.edge", each, value=integers(device), text=text)


def sizes(rows: pa.Table, comms: Comms) -> list[tuple[pa.Table, pa.Table]]:
    """Give samples of channels, nodes and init times of communicators, each with its lines."""
    channels = matched(rows, CHANNELS, " coll channels, ")
    nodes = matched(rows, NODES, " nNodes ")
    timings = matched(rows, TIMINGS, "Init timings - ")
    last = comms.column("comm", comms.by_process(channels))
    of_pointer = comms.column("comm", comms.by_pointer(nodes))
    of_rank = comms.column("comm", comms.by_rank(timings, timings["own"].combine_chunks()))
    total_ns = pc.multiply(number(timings["total"]), 1e9)
    return [
        (samples("nccl.channels", channels, value=integers(channels["channels"]),
                 text=_or_none(last)), channels),
        (samples("nccl.nodes", nodes, value=integers(nodes["nodes"]),
                 text=_or_none(of_pointer)), nodes),
        (samples("nccl.init_ns", timings, value=total_ns, text=_or_none(of_rank)), timings),
    ]  # fmt: skip


def _or_none(comm: pa.Array) -> pa.Array:
    return pc.fill_null(comm, "")
