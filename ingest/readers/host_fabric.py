"""Switches and cables of an InfiniBand fabric, as `ibnetdiscover` lists them."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.side_lines import Block, above, found
from teller.ingest.readers.side_tables import Unread, samples

IBNETDISCOVER: Final = r'^(?:Switch|Ca|Rt)\s+\d+\s+"[SHR]-[0-9a-f]+"|^switchguid=0x|^vendid=0x'
_NODE: Final = r'^(?:Switch|Ca|Rt)\s+\d+\s+"(?P<id>[SHR]-[0-9a-f]+)"\s*(?:#\s*"(?P<label>[^"]*)")?'
_EDGE: Final = (
    r'^\[(?P<port>\d+)\](?:\([0-9a-f]+\))?\s+"(?P<id>[SHR]-[0-9a-f]+)"\[(?P<far>\d+)\]'
    r'(?:\([0-9a-f]+\))?\s*(?:#\s*(?:lid \d+ lmc \d+ )?"(?P<label>[^"]*)".*?(?P<rate>\d+x\w+))?'
)


def edges(block: Block, unread: Unread) -> Iterator[pa.Table]:
    """Give a sample for each cable, once: text "A[port] B[port] RATE".

    A switch is its id, a host's adapter "host/device" where its label says so.
    """
    rows = found(block, _EDGE)
    like = found(block, r"^(?P<like>\[)")["line"]
    unread.add(like.filter(pc.invert(pc.is_in(like, rows["line"].combine_chunks()))))
    node = above(block, _NODE, rows["line"])
    begun = node["id"].is_valid()
    rows, node = rows.filter(begun), node.filter(begun)
    a, b = (
        _end(node["id"], node["label"], rows["port"]),
        _end(rows["id"], rows["label"], rows["far"]),
    )
    # both ends list a cable: in one order, the first row of each is enough
    first, second = pc.min_element_wise(a, b), pc.max_element_wise(a, b)
    pair = pc.binary_join_element_wise(first, second, " ").combine_chunks().dictionary_encode()
    _, once = np.unique(np.asarray(pair.indices), return_index=True)
    once = np.sort(once)
    text = pc.binary_join_element_wise(pair.cast(pa.string()), rows["rate"].combine_chunks(), " ")
    yield samples("host.topology", len(once), text=pc.utf8_trim_whitespace(text).take(once),
                  line=rows["line"].take(once))  # fmt: skip


def _end(id_: pa.Array, label: pa.Array, port: pa.Array) -> pa.Array:
    """Give the name of one end of a cable."""
    host = pc.extract_regex(label, r"^(?P<host>[\w.-]+) (?P<device>[\w.-]+)$")
    name = pc.binary_join_element_wise(
        pc.struct_field(host, "host"), pc.struct_field(host, "device"), "/"
    )
    adapter = pc.and_(pc.starts_with(id_, "H-"), name.is_valid())
    named = pc.if_else(pc.fill_null(adapter, False), name, id_)
    return pc.binary_join_element_wise(named, "[", port, "]", "")
