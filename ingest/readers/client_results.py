"""Results of serving benchmarks with lists of requests: vLLM, SGLang, genai-perf."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.readers.client_columns import ends
from teller.ingest.readers.side_json import Whole, documents, opening
from teller.ingest.readers.side_lines import Lines
from teller.ingest.readers.side_tables import Unread, joined, reading, rows
from teller.ingest.readers.side_times import epoch, ns_of
from teller.ingest.records import LINES, REQUESTS, Records
from teller.ingest.source import Facts, Reading, Remark

FORMAT: Final = "client_results"

_S: Final = 1e9
_LISTS: Final = (b'"ttfts"', b'"itls"', b'"input_lens"', b'"output_lens"')
_SUMS: Final = (b'"request_throughput"', b'"output_throughput"')


class Result(msgspec.Struct):
    """A benchmark's result; texts of requests are not even decoded."""

    input_lens: list[Whole | None] = []
    output_lens: list[Whole | None] = []
    ttfts: list[float | None] = []
    itls: list[list[float] | None] = []
    start_times: list[float | None] = []
    errors: list[str | None] = []


class PerfRequest(msgspec.Struct):
    """A request of genai-perf; all times are epoch ns."""

    timestamp: Whole
    response_timestamps: list[Whole] = []


class Experiment(msgspec.Struct):
    """One load of genai-perf."""

    requests: list[PerfRequest] = []


class Profile(msgspec.Struct):
    """The profile that genai-perf exports."""

    experiments: list[Experiment]


def looks_like(head: bytes, path: Path) -> bool:
    """Tell whether a file begins as a benchmark's result."""
    if opening(head) != b"{" or b'"traceEvents"' in head:
        return False
    profile = b'"experiments"' in head and b'"response_timestamps"' in head
    sums = sum(word in head for word in _SUMS) == len(_SUMS)
    return profile or sums or sum(word in head for word in _LISTS) >= 2


def read(path: Path) -> Reading:
    """Read one file of results: a request for each entry of the lists."""
    lines, unread = Lines(path), Unread()
    head = next(lines.raw_blocks(1 << 16), (1, b""))[1]
    tables: list[pa.Table] = []
    if b'"experiments"' in head:
        profiles = documents(lines, Profile, unread)
        done = [request for p in profiles for e in p.experiments for request in e.requests]
        tables = [_of_profile(done)] if done else []
    else:
        results = documents(lines, Result, unread)
        tables = [made for result in results if (made := _of_result(result)).num_rows]
        if results and not tables:
            why = "the result holds sums only, no single requests"
            remedy = "save it with its details, as --save-detailed or --output-details does"
            return Reading(remarks=(Remark(str(path), "", why, remedy),))
    requests = joined(REQUESTS, tables)
    numbers = pa.array(range(1, requests.num_rows + 1), pa.int64())
    requests = requests.set_column(REQUESTS.get_field_index("line"), "line", numbers)
    facts = Facts(str(path), FORMAT, event_count=requests.num_rows)
    records = Records(facts, "utc", lines=_lines(requests), requests=requests)
    return reading(lines, records, unread, "request")


def _of_result(result: Result) -> pa.Table:
    """Give the requests of one result; lists that are shorter are null at their end."""
    size = max(len(result.ttfts), len(result.itls), len(result.input_lens))

    def column(given: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array([*given, *[None] * (size - len(given))][:size], kind)

    middle = [float(np.median(one)) if one else None for one in result.itls]
    ttft = ns_of(column(result.ttfts, pa.float64()), _S)
    ttft = pc.if_else(pc.equal(ttft, 0), None, ttft)  # no token came
    start = epoch(column(result.start_times, pa.float64()))
    errors = column(result.errors, pa.string())
    status = ends(pc.if_else(pc.fill_null(pc.equal(errors, ""), True), "ok", errors))
    last = [float(sum(one)) if one else 0.0 for one in result.itls]
    end = pc.add(pc.add(start, ttft), ns_of(column(last, pa.float64()), _S))
    return rows(REQUESTS, size, {
        "start_ns": start, "first_token_ns": pc.add(start, ttft), "end_ns": end,
        "prompt_tokens": column(result.input_lens, pa.int64()),
        "output_tokens": column(result.output_lens, pa.int64()),
        "ttft_ns": ttft, "itl_p50_ns": ns_of(column(middle, pa.float64()), _S),
        "status": status if result.errors else None,
    })  # fmt: skip


def _of_profile(requests: Sequence[PerfRequest]) -> pa.Table:
    """Give the requests of genai-perf; of tokens it tells only when parts of answers came."""
    start = pa.array([one.timestamp for one in requests], pa.int64())
    come = [one.response_timestamps for one in requests]
    first = pa.array([one[0] if one else None for one in come], pa.int64())
    end = pa.array([one[-1] if one else None for one in come], pa.int64())
    between = [float(np.median(np.diff(one))) if len(one) > 1 else None for one in come]
    return rows(REQUESTS, len(requests), {
        "start_ns": start, "first_token_ns": first, "end_ns": end,
        "ttft_ns": pc.subtract(first, start),
        "itl_p50_ns": ns_of(pa.array(between, pa.float64()), 1.0),
    })  # fmt: skip


def _lines(requests: pa.Table) -> pa.Table:
    """Give a line for each request that says its figures."""
    shown = [
        pc.binary_join_element_wise(name, pc.cast(requests[name], pa.string()), " ",
                                    null_handling="replace", null_replacement="unknown")
        for name in ("prompt_tokens", "output_tokens", "ttft_ns", "itl_p50_ns", "status")
    ]  # fmt: skip
    text = pc.binary_join_element_wise(*shown, ", ")
    return rows(LINES, requests.num_rows, {
        "place": requests["line"], "line": requests["line"], "time_ns": requests["start_ns"],
        "resolution_ns": 1000, "process": "", "level": "", "origin": "client", "text": text,
        "template": "client record",
    })  # fmt: skip
