"""Network devices of a host: GIDs, state and rate of links, counters."""

import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.host_pci import below, others
from teller.ingest.readers.side_lines import Block, found
from teller.ingest.readers.side_tables import Unread, number, samples

GIDS: Final = r"^DEV\s+PORT\s+INDEX\s+GID"
IBSTAT: Final = r"^CA '\w+'|^Infiniband device '\w+' port \d+ status"
DEVINFO: Final = r"^hca_id:\s+\w+"
RDMA_LINK: Final = r"^(?:\d+/\d+: )?link \w+/\d+ .*state [A-Z]+"
ETHTOOL: Final = r"^NIC statistics:"
SYS_COUNTERS: Final = r"^/sys/class/(?:infiniband|net)/[^:]+:\s*-?\d+\s*$"

_GID: Final = (
    r"^(?P<device>\S+)\s+(?P<port>\d+)\s+(?P<index>\d+)\s+(?P<gid>[0-9a-fA-F:]{15,})"
    r"(?:\s+(?P<ipv4>\d+\.\d+\.\d+\.\d+))?\s+(?P<version>[vV]\d\S*|IB\S*)\s*(?P<netdev>\S*)\s*$"
)
# fmt: off
COUNTERS: Final = (  # counters that add up to one figure of a device
    ("net.retransmits",
     r"^(?:local_ack_timeout_err|packet_seq_err|roce_adp_retrans|tx_retrans\w*|\w*retransmit\w*)$"),
    ("net.drops",
     r"^(?:[rt]x_(?:dropped|discards_phy|missed_errors|fifo_errors|out_of_buffer|no_buffer\w*)|"
     r"out_of_buffer|port_(?:rcv_errors|xmit_discards))$"),
    ("net.pause_frames", r"^[rt]x_(?:prio\d+_pause|global_pause|pause_ctrl_phy)$"),
)
# fmt: on


def gids(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give a sample for each GID; its text has six words, "-" for what the table leaves empty."""
    table = below(block, GIDS)
    rows = found(table, _GID)
    rule = pc.match_substring_regex(table.lines, r"^[-\s]*$|^n_gids_found")
    left = others(table, rows)
    unread.add(left.filter(pc.invert(pc.is_in(left, table.numbers.filter(rule)))))
    words = [
        pc.if_else(pc.equal(rows[name], ""), "-", rows[name])
        for name in ("device", "port", "gid", "ipv4", "version", "netdev")
    ]
    yield samples("host.gid", rows.num_rows, value=number(rows["index"]),
                  text=pc.binary_join_element_wise(*words, " "), line=rows["line"])  # fmt: skip
    local = pc.match_substring_regex(rows["gid"], r"^(?i:fe[89ab])[0-9a-fA-F]:")
    each = rows.append_column("local", local).group_by("device", use_threads=False).aggregate(
        [("local", "min"), ("line", "min")]
    )  # fmt: skip
    yield samples("host.gid_link_local", each.num_rows, text=each["device"],
                  value=each["local_min"].cast(pa.int8()).cast(pa.float64()),
                  line=each["line_min"])  # fmt: skip


def links(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give state and rate of each port that ibstat, ibstatus or ibv_devinfo describes."""
    told = found(
        block,
        r"^\s*(?P<key>CA|hca_id|Infiniband device|[Pp]ort|[Ss]tate|Physical state|phys[_ ]state|"
        r"[Rr]ate|active_width|active_speed|[Ll]ink[_ ]layer)\b\s*:?\s*(?P<value>.*?):?\s*$",
    )
    device, ports = "", list[dict[str, str]]()
    for line, key, value in zip(
        *(told[name].to_pylist() for name in told.column_names), strict=True
    ):
        whole = re.fullmatch(r"'(\w+)' port (\d+) status", value)
        if key == "Infiniband device" and whole:
            ports.append({"name": f"{whole[1]}:{whole[2]}", "line": line})
        elif key in ("CA", "hca_id") and re.fullmatch(r"'?\w+'?", value):
            device = value.strip("'")
        elif key.lower() == "port" and value.isdigit() and device:
            ports.append({"name": f"{device}:{value}", "line": line})
        elif ports:
            ports[-1].setdefault(key.lower().replace(" ", "_").replace("physical", "phys"), value)
    state = [" ".join(_state(port)) for port in ports]
    lines = pa.array([int(port["line"]) for port in ports], pa.int64())
    yield samples("host.nic_link", len(ports), text=pa.array(state, pa.string()), line=lines)
    rate = pa.array([_rate(port) for port in ports], pa.float64())
    name = pa.array([port["name"] for port in ports], pa.string())
    made = samples("net.link_rate_bytes_per_s", len(ports), value=rate, text=name, line=lines)
    yield made.filter(made["value"].is_valid())


def rdma_links(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give the state of each link of `rdma link`."""
    rows = found(block, r"^(?:\d+/\d+: )?link (?P<name>\w+)/(?P<port>\d+) (?P<rest>.*)$")
    name = pc.binary_join_element_wise(rows["name"], rows["port"], ":")
    text = pc.binary_join_element_wise(name, pc.utf8_trim_whitespace(rows["rest"]), " ")
    yield samples("host.nic_link", rows.num_rows, text=text, line=rows["line"])


def counters(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give counters of devices: drops, retransmissions and pauses as sums, the others if not 0."""
    rows = found(
        block,
        r"^\s*(?:/sys/class/(?:infiniband|net)/(?P<device>[^/]+)/(?:ports/(?P<port>\d+)/)?"
        r"(?:\w+/)?)?(?P<name>[A-Za-z]\w+):\s*(?P<value>\d+)\s*$",
    )
    port = pc.if_else(
        pc.equal(rows["port"], ""), "", pc.binary_join_element_wise("", rows["port"], ":")
    )
    rows = rows.set_column(
        rows.column_names.index("device"), "device",
        pc.binary_join_element_wise(rows["device"], port, ""),
    )  # fmt: skip
    rows = rows.set_column(rows.column_names.index("value"), "value", number(rows["value"]))
    rest = pa.repeat(True, rows.num_rows)
    for sample, pattern in COUNTERS:
        mine = pc.match_substring_regex(rows["name"], pattern)
        rest = pc.and_(rest, pc.invert(mine))
        each = rows.filter(mine).group_by("device", use_threads=False).aggregate(
            [("value", "sum"), ("line", "min")]
        )  # fmt: skip
        yield samples(sample, each.num_rows, value=each["value_sum"], text=each["device"],
                      line=each["line_min"])  # fmt: skip
    others_ = rows.filter(pc.and_(rest, pc.greater(rows["value"], 0)))
    named = pc.binary_join_element_wise("prom", others_["name"], ":")
    made = samples("", others_.num_rows, value=others_["value"], text=others_["device"],
                   line=others_["line"])  # fmt: skip
    yield made.set_column(0, made.schema.field(0), named)


def _state(port: dict[str, str]) -> Iterator[str]:
    """Give a port's words: name, state, physical state, link layer."""
    yield port["name"]
    for key in ("state", "phys_state", "link_layer"):
        if port.get(key):
            yield re.sub(r"^\d+: |\s*\(\d+\)$|^PORT_", "", port[key])


def _rate(port: dict[str, str]) -> float | None:
    """Give bytes a second of what a port prints in Gbit/s; width times speed in ibv_devinfo."""
    if rate := re.match(r"(\d+(?:\.\d+)?)", port.get("rate", "")):
        return float(rate[1]) * 1e9 / 8
    width = re.match(r"(\d+)X", port.get("active_width", ""))
    speed = re.match(r"(\d+(?:\.\d+)?) Gbps", port.get("active_speed", ""))
    return int(width[1]) * float(speed[1]) * 1e9 / 8 if width and speed else None
