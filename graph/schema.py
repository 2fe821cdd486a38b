"""What the graph may hold: every label, relation, key and column, named here and nowhere else.

Arrow schemas, engine DDL, write Cypher and `docs/schema.md` derive from `NODES` and `RELATIONS`.
A column name has one type in the whole graph, so that a query never has to ask which node it is on.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

INT: Final = pa.int64()
TEXT: Final = pa.string()
REAL: Final = pa.float64()
FLAG: Final = pa.bool_()

SCHEMA_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One property: its name with its unit, its type and what it says."""

    name: str
    type: pa.DataType
    doc: str


@dataclass(frozen=True, slots=True)
class Node:
    """A label. Every node also has the columns of `COMMON` in front."""

    label: str
    doc: str
    own: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Give the common columns and then its own."""
        return COMMON + self.own

    @property
    def arrow(self) -> pa.Schema:
        """Give the Arrow schema of a table of these nodes."""
        return _arrow(self.columns, filled=("id", "run_id", "kind"))


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation type, the label pairs it joins, and the columns that tell twins apart (`key`)."""

    type: str
    ends: tuple[tuple[Node, Node], ...]
    doc: str
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.Schema:
        """Give the Arrow schema of a table of one end pair: `src`, `dst`, then the columns."""
        ends = (Column("src", INT, "Id of the start node."), Column("dst", INT, "Id of the end."))
        return _arrow(ends + self.columns, filled=("src", "dst", *self.key))


def _arrow(columns: Iterable[Column], filled: tuple[str, ...]) -> pa.Schema:
    return pa.schema([pa.field(c.name, c.type, nullable=c.name not in filled) for c in columns])


COMMON: Final = (
    Column("id", INT, "The same for the same input on any machine; a string in JSON and URLs."),
    Column("run_id", INT, "Id of the run; 0 for what all runs share."),
    Column("kind", TEXT, "The label again, since `labels()` is not portable."),
)

# fmt: off
# One label a paragraph: the formatter would give each column a line and bury the labels.
NAME = Column("name", TEXT, "The name as the source gives it.")
RANK = Column("rank", INT, "Global rank; null where it is not known.")
HOST = Column("host", TEXT, "Host name.")
START = Column("start_ns", INT, "Start, ns since the run's t0 on the common clock.")
END = Column("end_ns", INT, "End, ns since the run's t0 on the common clock.")
DUR = Column("dur_ns", INT, "End minus start, ns.")
STEP_INDEX = Column("step_index", INT, "Number of the engine step on this rank.")
SIZE = Column("size_bytes", INT, "Payload in bytes.")
DTYPE = Column("dtype", TEXT, "Element type of the payload.")
SEQ = Column("seq", INT, "Number of the collective in its group, from 1; NCCL's opCount plus 1.")
OP = Column("op", TEXT, "Kind of collective: all_reduce, all_gather, broadcast, send, …")
FAMILY = Column("family", TEXT, "Operator family: gemm, attention, norm, all_reduce, memcpy, …")
LAYER = Column("layer", TEXT, "engine, framework, runtime, device, comm or os.")
TRANSPORT = Column("transport", TEXT, "What carries the data: NVLink, IB, socket, assumed ring, …")
DEVICE_INDEX = Column("device_index", INT, "Index of the device as the process counts.")
INPUT_ID = Column("input_id", INT, "Id of the input it was read from.")
TIME = Column("time_ns", INT, "Time, ns since the run's t0 on the common clock.")
BODY = Column("text", TEXT, "The text itself.")
PROCESS = Column("process", TEXT, "The process as the log labels it: EngineCore_DP0, Worker_TP1, …")
LINE = Column("line", INT, "Line number in the input, from 1.")
EXCESS = Column("excess_ns", INT, "Observed minus expected time, ns.")
CONFIDENCE = Column("confidence", REAL, "0 to 1.")
TIED_BY = Column("tied_by", TEXT, "What ties it to a step: number, range, request, process, time.")
PURE = Column("pure_ns", INT, "From the last arrival to the end, ns.")
SKEW = Column("skew_ns", INT, "Last minus first arrival, ns.")
LAST_RANK = Column("last_rank", INT, "The rank that arrived last.")
CLASS = Column("class", TEXT, "A class of the class list.")
CULPRIT = Column("culprit", TEXT, "The culprit in words.")
TITLE = Column("title", TEXT, "One line for people.")
WORLD = Column("world_size", INT, "Number of ranks.")
STATUS = Column("status", TEXT, "Where it stands.")
ARRIVAL = Column("arrival_ns", INT, "When this rank arrived, ns since the run's t0.")
POSITION = Column("position", INT, "Place in the order, from 0.")
DEPTH = Column("depth", INT, "Number of ancestors in its lane.")
COUNT = Column("count", INT, "How many.")

RUN = Node("Run", "One recorded window of a deployment.", (
    NAME, Column("deployment", TEXT, "The service that is watched."),
    Column("t0_epoch_ns", INT, "UTC epoch of time 0 of this run, ns."),
    START, END, WORLD, Column("engine", TEXT, "Inference engine, where known."),
    Column("model", TEXT, "Model, where known."),
    Column("baseline", FLAG, "Kept as a healthy run to compare with."),
))
INPUT = Node("Input", "A file that was read.", (
    Column("path", TEXT, "Path inside the run folder."),
    Column("format", TEXT, "Format, by content."), RANK, HOST,
    Column("event_count", INT, "Events used."), Column("used", FLAG, "Whether it is in the run."),
    Column("note", TEXT, "Why it is not used, or a note."),
))
REMARK = Node("Remark", "What was wrong with an input.", (
    Column("path", TEXT, "Path inside the run folder."),
    Column("place", TEXT, "Byte, line or table."), BODY, Column("remedy", TEXT, "What to do."),
))
SAMPLE = Node("Sample", "A side fact: a metric, a clock, a figure in a log line.", (
    NAME, Column("value", REAL, "Its number."), BODY, TIME, RANK, HOST, DEVICE_INDEX, PROCESS,
    INPUT_ID, LINE,
))
HOST_NODE = Node("Host", "A machine.", (NAME,))
DEVICE = Node("Device", "A GPU of a host.", (
    NAME, DEVICE_INDEX, Column("uuid", TEXT, "UUID of the device, where known."),
))
LINK = Node("Link", "A path between two hosts.", (
    NAME, Column("src_host", TEXT, "Sending host."), Column("dst_host", TEXT, "Receiving host."),
    TRANSPORT,
))
RANK_NODE = Node("Rank", "One rank of the run.", (
    RANK, HOST, Column("pid", INT, "Process id."), Column("tp", INT, "Tensor-parallel place."),
    Column("pp", INT, "Pipeline stage."), Column("dp", INT, "Data-parallel place."),
    Column("ep", INT, "Expert-parallel place."),
    Column("clock_offset_ns", INT, "Added to this rank's UTC times to reach the common clock."),
    Column("clock_drift_ppm", REAL, "Drift of this rank's clock, parts per million."),
    Column("clock_residual_ns", INT, "Spread that alignment leaves; null when not aligned."),
    Column("rank_source", TEXT, "Where the rank number was found."),
))
STEP = Node("Step", "One engine iteration on one rank.", (
    RANK, STEP_INDEX, Column("phase", TEXT, "prefill, decode, mixed or unknown."), START, END, DUR,
    Column("own_ns", INT, "Self time without waiting for other ranks, ns."),
    Column("token_count", INT, "Tokens computed."), Column("batch_size", INT, "Requests."),
    Column("context_tokens", INT, "Tokens attended to."), EXCESS,
    Column("p_abnormal", REAL, "Probability that the step is abnormal."),
    Column("found_by", TEXT, "How the step was found."), CONFIDENCE,
))
ITERATION = Node("Iteration", "The same step over all ranks.", (
    STEP_INDEX, START, END, DUR, SKEW, LAST_RANK,
))
SPAN = Node("Span", "Anything with a start and an end.", (
    RANK, STEP_INDEX, NAME, Column("operator", TEXT, "Name without versions, shapes, addresses."),
    FAMILY, LAYER, Column("lane", TEXT, "Thread or stream."),
    Column("stream", INT, "Device stream; null on the host."), DEVICE_INDEX, START, END, DUR,
    Column("self_ns", INT, "Duration without children, ns."),
    Column("own_ns", INT, "Self time without waiting for other ranks, ns."),
    Column("gap_ns", INT, "Time before it with no span in its lane, ns."), DEPTH, SIZE, EXCESS,
    Column("late_ns", INT, "Own arrival minus the group's median, ns; 0 outside collectives."),
    INPUT_ID,
))
COLLECTIVE = Node("Collective", "One operation over the ranks of a group.", (
    OP, SEQ, SIZE, DTYPE, Column("algo", TEXT, "Algorithm, where known."),
    Column("proto", TEXT, "Protocol, where known."),
    Column("ranks_seen", INT, "Ranks that were seen taking part."), START, END, SKEW, PURE,
    LAST_RANK, Column("matched_by", TEXT, "seq, order or single."),
))
GROUP = Node("ProcessGroup", "Ranks that communicate together.", (
    NAME, Column("comm", TEXT, "Communicator id."), WORLD,
    Column("parallelism", TEXT, "tp, pp, dp, ep or world, where known."),
))
REQUEST = Node("Request", "One request of a client.", (
    NAME, START, Column("first_token_ns", INT, "First token, ns since t0."), END,
    Column("prompt_tokens", INT, "Tokens of the prompt."),
    Column("output_tokens", INT, "Tokens given."), Column("ttft_ns", INT, "Time to first token."),
    Column("itl_p50_ns", INT, "Median time between tokens."),
    Column("queue_ns", INT, "Time in the queue."),
    Column("preemptions", INT, "Times it was preempted."), STATUS,
    Column("told_by", TEXT, "Which source each figure is from: telemetry, client, log, ranges."),
))
LOG_LINE = Node("LogLine", "A line of a service log.", (
    RANK, HOST, PROCESS, TIME,
    Column("level", TEXT, "debug, info, warning, error or fatal."),
    Column("origin", TEXT, "The program that wrote it: vllm, sglang, nccl, kernel, …"), BODY,
    Column("params", TEXT, "Parameters of its template, JSON."), STEP_INDEX,
    Column("request", TEXT, "Name of the request it speaks of."),
    Column("placed_by", TEXT, "clock: its own time; order: between timed neighbours; nothing."),
    TIED_BY, CONFIDENCE, INPUT_ID, LINE,
))
LOG_TEMPLATE = Node("LogTemplate", "A mined template of log lines.", (BODY,))
OPERATOR = Node("Operator", "A name with versions, shapes and addresses taken off.", (
    NAME, FAMILY, LAYER,
))
FRAGMENT = Node("Fragment", "A token of the tokenizer: a piece of call tree.", (
    NAME, Column("size", INT, "Number of operators in it."),
))
FINDING = Node("Finding", "What a diagnosis says.", (
    CLASS, Column("case_class", TEXT, "The class of the case vocabulary."), TITLE,
    Column("severity", TEXT, "critical, high, medium, low or info."), CONFIDENCE,
    Column("culprit_kind", TEXT, "rank, host, device, link, group, operator, component, request."),
    CULPRIT, Column("components", TEXT, "Engine components, comma separated."), EXCESS,
    Column("share", REAL, "Share of the time that it costs, 0 to 1."), BODY, START, END,
    Column("ruleset", TEXT, "Rule set or model that said it."),
    Column("detail", TEXT, "The whole finding, JSON."),
))
INCIDENT = Node("Incident", "Findings of one class and culprit in one deployment.", (
    Column("deployment", TEXT, "The service that is watched."), CLASS, CULPRIT, TITLE, STATUS,
    Column("first_seen_epoch_ns", INT, "First seen, UTC epoch ns."),
    Column("last_seen_epoch_ns", INT, "Last seen, UTC epoch ns."),
    Column("note", TEXT, "Why it is not used, or a note."),
))

NODES: Final = (
    RUN, INPUT, REMARK, SAMPLE, HOST_NODE, DEVICE, LINK, RANK_NODE, STEP, ITERATION, SPAN,
    COLLECTIVE, GROUP, REQUEST, LOG_LINE, LOG_TEMPLATE, OPERATOR, FRAGMENT, FINDING, INCIDENT,
)

GROUP_RANK = Column("group_rank", INT, "Rank inside the group.")

HAS_RANK = Relation("HAS_RANK", ((RUN, RANK_NODE),), "The run has this rank.")
ON_HOST = Relation("ON_HOST", ((RANK_NODE, HOST_NODE),), "The rank runs on this host.")
HAS_DEVICE = Relation("HAS_DEVICE", ((HOST_NODE, DEVICE),), "The host has this device.")
USES_DEVICE = Relation("USES_DEVICE", ((RANK_NODE, DEVICE),), "The rank runs on this device.")
HAS_LINK = Relation("HAS_LINK", ((HOST_NODE, LINK),), "The link starts at this host.")
RAN = Relation("RAN", ((RANK_NODE, STEP),), "The rank ran this step.")
FOLLOWED_BY = Relation("FOLLOWED_BY", ((STEP, STEP),), "The next step of the same rank.")
ON_RANK = Relation("ON_RANK", ((ITERATION, STEP),), "The iteration's step on one rank.")
SERVED_IN = Relation("SERVED_IN", ((REQUEST, ITERATION),), "The iteration served the request.",
                     (TIED_BY, CONFIDENCE))
IN_STEP = Relation("IN_STEP", ((SPAN, STEP),), "The span belongs to this step.")
CHILD = Relation("CHILD", ((SPAN, SPAN),), "Parent to child in one host lane.")
LAUNCHED = Relation("LAUNCHED", ((SPAN, SPAN),), "API call to the device work it launched.")
NEXT = Relation("NEXT", ((SPAN, SPAN),), "The next span on the same device stream.", (
    Column("gap_ns", INT, "Time before it with no span in its lane, ns."),
))
WAITED_FOR = Relation("WAITED_FOR", ((SPAN, SPAN),), "Sync call to the work it waited for.")
IN_COLLECTIVE = Relation("IN_COLLECTIVE", ((SPAN, COLLECTIVE),), "The span took part in it.", (
    ARRIVAL, Column("host_arrival_ns", INT, "Start of the host call, ns since t0."),
    Column("wait_ns", INT, "Own arrival to last arrival, ns."), PURE,
    Column("arrival_order", INT, "0 for the first to arrive."),
))
IN_GROUP = Relation("IN_GROUP", ((COLLECTIVE, GROUP),), "The collective ran in this group.")
JOINED = Relation("JOINED", ((RANK_NODE, COLLECTIVE),), "What this rank said of the collective.", (
    SEQ, OP, SIZE, DTYPE, ARRIVAL, Column("state", TEXT, "scheduled, started or completed."),
    Column("shape", TEXT, "Shapes of this rank's input as the record prints them."),
    INPUT_ID, LINE,
))
MEMBER_OF = Relation("MEMBER_OF", ((RANK_NODE, GROUP),), "The rank is in this group.", (
    GROUP_RANK, Column("last_enqueued", INT, "Last sequence number enqueued."),
    Column("last_started", INT, "Last sequence number started."),
    Column("last_completed", INT, "Last sequence number completed."), INPUT_ID, LINE,
))
TALKED_TO = Relation("TALKED_TO", ((RANK_NODE, RANK_NODE),), "Data went between these ranks.", (
    Column("group_name", TEXT, "Name of the process group."), OP, COUNT, SIZE,
    Column("pure_p50_ns", INT, "Median pure time, ns."),
    Column("pure_p99_ns", INT, "99th percentile of pure time, ns."), TRANSPORT,
), key=("group_name", "op"))
ABOUT = Relation("ABOUT", (
    (SAMPLE, RANK_NODE), (SAMPLE, HOST_NODE), (SAMPLE, DEVICE), (SAMPLE, LINK),
), "What the side fact is about.")
DURING = Relation("DURING", ((LOG_LINE, STEP),), "The line was written during this step.")
INSIDE = Relation("INSIDE", ((LOG_LINE, SPAN),), "The line was written inside this span.")
FROM_RANK = Relation("FROM_RANK", ((LOG_LINE, RANK_NODE),), "The rank that wrote the line.")
FROM_HOST = Relation("FROM_HOST", ((LOG_LINE, HOST_NODE),), "The host that wrote the line.")
MATCHES = Relation("MATCHES", ((LOG_LINE, LOG_TEMPLATE),), "The line's template.")
CONSISTS_OF = Relation("CONSISTS_OF", ((STEP, FRAGMENT),), "The step holds this fragment.", (
    COUNT,
))
CONTAINS = Relation("CONTAINS", ((FRAGMENT, OPERATOR),), "The fragment holds this operator.", (
    POSITION, Column("parent", INT, "Position of its parent; -1 at the top."), DEPTH,
), key=("position",))
PART_OF = Relation("PART_OF", ((INPUT, RUN),), "The input belongs to this run.")
ON_INPUT = Relation("ON_INPUT", ((REMARK, INPUT),), "The remark is about this input.")
IN_RUN = Relation("IN_RUN", ((FINDING, RUN),), "The finding is about this run.")
BLAMES = Relation("BLAMES", tuple(
    (FINDING, n) for n in (RANK_NODE, HOST_NODE, DEVICE, LINK, GROUP, OPERATOR, REQUEST)
), "Who is to blame.")
SHOWN_BY = Relation("SHOWN_BY", tuple(
    (FINDING, n) for n in (SPAN, COLLECTIVE, STEP, LOG_LINE, RANK_NODE)
), "The evidence.", (Column("role", TEXT, "cause, effect, victim, healthy, …"),), key=("role",))
GROUPS = Relation("GROUPS", ((INCIDENT, FINDING),), "The incident gathers this finding.")

RELATIONS: Final = (
    HAS_RANK, ON_HOST, HAS_DEVICE, USES_DEVICE, HAS_LINK, RAN, FOLLOWED_BY, ON_RANK, SERVED_IN,
    IN_STEP, CHILD, LAUNCHED, NEXT, WAITED_FOR, IN_COLLECTIVE, IN_GROUP, JOINED, MEMBER_OF,
    TALKED_TO, ABOUT, DURING, INSIDE, FROM_RANK, FROM_HOST, MATCHES, CONSISTS_OF, CONTAINS,
    PART_OF, ON_INPUT, IN_RUN, BLAMES, SHOWN_BY, GROUPS,
)
# fmt: on
