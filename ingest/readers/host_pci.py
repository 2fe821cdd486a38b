"""Kernel modules, and the PCIe bridges and links that `lspci -vvv` describes."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_lines import Block, above, found
from teller.ingest.readers.side_tables import Unread, number, samples

LSMOD: Final = r"^Module\s+Size\s+Used by"
_BUS: Final = r"(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d"
LSPCI: Final = rf"^\s*(?:ACSCtl:|LnkSta:\s*Speed|Capabilities: \[\w+)|^{_BUS} PCI bridge"
_DEVICE: Final = rf"^(?P<bus>{_BUS})\s+(?P<kind>[^:]+): (?P<what>.*)$"
_GENERATION: Final = {"2.5": 1.0, "5": 2.0, "8": 3.0, "16": 4.0, "32": 5.0, "64": 6.0}


def modules(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give a sample for each module that is loaded, and one that says that a list was read."""
    table = below(block, LSMOD)
    loaded = found(table, r"^(?P<name>[A-Za-z0-9_]+)\s+\d+\s+-?\d+(?:\s.*)?$")
    unread.add(others(table, loaded))
    yield samples("host.module", loaded.num_rows, text=loaded["name"], line=loaded["line"])
    yield samples("host.modules_listed", 1, value=float(loaded.num_rows), line=table.first - 1)


def bridges(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give for each bridge whether ACS redirects, and for each NVIDIA device its PCIe link."""
    acs = found(block, r"ACSCtl:\s*(?P<flags>.*)$")
    bus = pc.fill_null(above(block, _DEVICE, acs["line"])["bus"], "")
    redirects = pc.match_substring_regex(acs["flags"], r"(?:Req|Cmplt)Redir\+")
    text = pc.utf8_trim_whitespace(pc.binary_join_element_wise(bus, acs["flags"], " "))
    yield samples("host.acs", acs.num_rows, value=redirects.cast(pa.int8()).cast(pa.float64()),
                  text=text, line=acs["line"])  # fmt: skip
    for word, ending in ("LnkSta", ""), ("LnkCap", "_max"):
        link = found(block, word + r":.*Speed (?P<speed>[\d.]+)GT/s.*Width x(?P<width>\d+)")
        device = above(block, _DEVICE, link["line"])
        link = link.append_column("bus", device["bus"])
        link = link.filter(pc.match_substring(device["what"], "NVIDIA"))
        speed = pa.array([_GENERATION.get(one) for one in link["speed"].to_pylist()], pa.float64())
        who = {"text": link["bus"], "line": link["line"]}
        made = samples(f"gpu.pcie_gen{ending}", link.num_rows, value=speed, **who)
        yield made.filter(made["value"].is_valid())
        yield samples(f"gpu.pcie_width{ending}", link.num_rows, value=number(link["width"]), **who)


def below(block: Block, header: str) -> Block:
    """Give the lines under a table's header, to the next empty one."""
    start = pc.index(pc.match_substring_regex(block.lines, header), True).as_py() + 1
    rest = block.lines.slice(start)
    size = pc.index(pc.match_substring_regex(rest, r"^\s*$"), True).as_py()
    return Block(block.first + start, rest if size < 0 else rest.slice(0, size))


def others(block: Block, rows: pa.Table) -> pa.Array:
    """Give the numbers of the lines that are not among the rows."""
    return block.numbers.filter(pc.invert(pc.is_in(block.numbers, rows["line"].combine_chunks())))
