"""How lines begin: what launchers put in front, and the headers of logging libraries, as data.

Patterns are RE2. Groups of one name mean the same everywhere: y mo mon d h mi s f zone a civil
time, boot and usec a time since boot, level and prio how grave, host, process, pid, rank, where;
task is a launcher's number, which may be a rank or a node's.
"""

import re
from dataclasses import dataclass
from typing import Final

DAY: Final = r"(?P<y>[12]\d{3})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)"
HOUR: Final = r"(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
ZONE: Final = r"(?: ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d))?"
ISO: Final = f"{DAY}[T ]{HOUR}{ZONE}"
MONTH: Final = "(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
CTIME: Final = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {MONTH} +(?P<d>\d{{1,2}}) {HOUR} (?P<y>\d{{4}})"
LEVEL: Final = "(?P<level>TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|FATAL|CRITICAL|SUCCESS|SEVERE)"
GRAVE: Final = "(?P<level>emerg|alert|crit|err|warn|notice|info|debug)"
FILE: Final = r"(?P<where>[\w./<>~+-]+:\d+)"
FACILITY: Final = "(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7])"
BOOT: Final = r"\[ *(?P<boot>\d{1,9}\.\d{3,9})\]"


@dataclass(frozen=True, slots=True)
class Grammar:
    """One way in which a line, or what a launcher puts in front of it, begins."""

    name: str
    pattern: str
    origin: str = ""  # who writes so; "" where many do
    sure: bool = True  # one such line tells what the file is

    @property
    def groups(self) -> tuple[str, ...]:
        """Name the groups."""
        return tuple(re.findall(r"\?P<(\w+)>", self.pattern))

    @property
    def bare(self) -> str:
        """Give the pattern without names."""
        return re.sub(r"\?P<\w+>", "?:", self.pattern)


HEADERS: Final = (
    Grammar(
        "nccl",
        rf"(?:\[?{DAY}[T ]{HOUR}\]? )?(?P<host>[\w.-]+):(?P<pid>\d+):(?P<tid>\d+) "
        r"(?:(?P<process>\[-?\d+\]) )?(?:[\d.]+ )?(?:[^\s:]+:\d+ (?:\([^()]*\) )?)?"
        "NCCL (?P<level>INFO|WARN|TRACE|CALL|ABORT|VERSION|ERROR) ?",
        "nccl",
    ),
    Grammar(
        "vllm",
        "(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:(?P<y>[12]\\d{3})-)?"
        rf"(?P<mo>\d\d)-(?P<d>\d\d) {HOUR} \[?{FILE}\] ?",
        "vllm",
    ),
    Grammar("sglang", rf"\[{ISO}(?P<process>(?: [A-Z_]{{2,8}}\d+)+)\] ?", "sglang"),
    Grammar(
        "trtllm",
        rf"\[(?P<mo>\d\d)/(?P<d>\d\d)/(?P<y>\d{{4}})-{HOUR}\] \[(?:TRT-LLM|TRT)\] "
        r"(?:\[RANK (?P<rank>\d+)\] )?\[(?P<level>[A-Z])\] ?(?:\[RANK \d+\] )?",
        "trtllm",
    ),
    Grammar("trtllm_cc", r"\[TensorRT-LLM\]\[(?P<level>[A-Z]+)\] ?(?:\[RANK (?P<rank>\d+)\] )?",
            "trtllm"),
    Grammar("torch", rf"\[(?P<level>[IWEFC])(?P<mo>\d{{1,2}})(?P<d>\d\d) {HOUR} "
            rf"(?:(?P<pid>\d+) )?{FILE}\] ?", "torch"),
    Grammar("torch_2023", rf"\[(?P<level>[IWEFC]) {FILE}\] ?", "torch"),
    Grammar("glog", rf"(?P<level>[IWEFC])(?:(?P<y>20\d\d))?(?P<mo>\d\d)(?P<d>\d\d) {HOUR} +"
            rf"(?P<pid>\d+) {FILE}\] ?", "glog"),
    Grammar(
        "ray",
        rf"\[{ISO} (?P<level>[DIWECF]) (?P<pid>\d+) (?P<tid>\d+)\] "
        rf"(?:\((?P<process>[\w-]+)\) )?{FILE}: ",
        "ray",
    ),
    Grammar("ray_python", rf"{ISO}\t{LEVEL} {FILE} -- ", "ray"),
    Grammar("fabric", rf"\[{MONTH} +(?P<d>\d{{1,2}}) (?P<y>\d{{4}}) {HOUR}\] \[{LEVEL}\] "
            r"\[tid (?P<tid>\d+)\] ?", "fabricmanager"),
    Grammar("kernel_decoded", f"{FACILITY} *:{GRAVE} *: {BOOT} ?", "kernel"),
    Grammar("kernel_decoded_ctime", rf"{FACILITY} *:{GRAVE} *: \[{CTIME}\] ?", "kernel"),
    Grammar("kernel_decoded_iso", f"{FACILITY} *:{GRAVE} *: {ISO} ?", "kernel"),
    Grammar("kernel_iso", rf"{DAY}T(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d),(?P<f>\d{{6}})"
            r"(?P<zone>[+-]\d\d:\d\d) ", "kernel"),
    Grammar("kernel_ctime", rf"\[{CTIME}\] ", "kernel"),
    Grammar("kernel_boot", rf"(?:<(?P<prio>\d{{1,3}})>)?{BOOT}(?:\[ *[TC]\d+\])? ", "kernel"),
    Grammar("kmsg", r"(?P<prio>\d{1,3}),\d+,(?P<usec>\d{1,15}),[^;,\s]+(?:,[^;\s]*)?;", "kernel"),
    Grammar("syslog_kernel", rf"(?:<\d+>)?{MONTH} +(?P<d>\d{{1,2}}) {HOUR} (?P<host>[\w.-]+) "
            r"kernel: (?:\[ *\d+\.\d+\] )?", "kernel"),
    Grammar("syslog", rf"(?:<\d+>)?{MONTH} +(?P<d>\d{{1,2}}) {HOUR} (?P<host>[\w.-]+) "
            r"(?P<process>[\w./@-]+)(?:\[(?P<pid>\d+)\])?: "),
    Grammar("syslog_5424", rf"<\d+>1 {ISO} (?P<host>\S+) (?P<process>\S+) (?P<pid>\d+|-) \S+ "
            r"(?:-|\[[^\]]*\]) "),
    Grammar("journal_kernel", rf"{ISO} (?P<host>[\w.-]+) kernel: (?:\[ *\d+\.\d+\] )?", "kernel"),
    Grammar("journal", rf"{ISO} (?P<host>[\w.-]+) (?P<process>[\w./@-]+)\[(?P<pid>\d+)\]: "),
    Grammar("pipes", rf"{ISO} *\| *{LEVEL} *\| *(?P<where>[^\s|]+)(?: - | \| )"),
    Grammar("pipes_name", rf"{ISO} *\| *(?P<where>[^|]{{1,60}}) \| *{LEVEL} *(?: - |\| |: )"),
    Grammar("dashes", rf"{ISO} +- +(?:(?P<where>\S{{1,80}}) - )?{LEVEL} +- "),
    Grammar("bracketed_level", rf"\[{ISO}\] *\[?{LEVEL}\b\]?:? ?"
            r"(?:\[[\w./<>-]+:\d+(?::\w+)?\] ?|[\w./<>-]+:\d+: )?"),
    Grammar("level", rf"{ISO}(?:,? +|: |\t)\[?{LEVEL}\]?(?:: ?|\t| )"),
    Grammar("tensorflow", rf"{ISO}: (?P<level>[IWEF]) {FILE}\] "),
    Grammar("bracketed", rf"\[{ISO}\] ?", sure=False),
    Grammar("iso", rf"{ISO}[:,]?(?: |\t|$)", sure=False),
    Grammar("access", rf"[\w.:-]+ \S+ \S+ \[(?P<d>\d\d)/{MONTH}/(?P<y>\d{{4}}):{HOUR} "
            r"(?P<zone>[+-]\d{4})\] "),
    Grammar("uvicorn", f"{LEVEL}:(?: {{2,}}| )", sure=False),
    Grammar("python", rf"{LEVEL}:(?P<where>[A-Za-z_][\w.]*):", sure=False),
    Grammar("level_only", rf"\[{LEVEL}\] ?", sure=False),
)  # fmt: skip

# in front of the header; several may follow each other
PREFIXES: Final = (
    Grammar("cri", rf"{DAY}T{HOUR}(?P<zone>Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] "),
    Grammar("stamp", rf"{DAY}T(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)\.(?P<f>\d{{7,9}})(?P<zone>Z) "),
    Grammar("mpirun", r"\[[^\s\[\],]{0,80}?\d+,(?P<task>\d+)\](?:<std\w+>)?: ?"),
    Grammar("rank", r"\[rank(?P<rank>\d+)\]: ?", "torch"),
    Grammar("torchrun", r"\[(?P<process>[a-z_]+\d+)\]: ?", sure=False),
    Grammar("pod", r"\[pod/(?P<host>[\w.-]+)/(?P<process>[\w.-]+)\] "),
    Grammar(
        "actor",
        r"\((?P<process>(?:[A-Za-z_][\w.:-]*(?: [\w=]+){0,2} )?)pid=(?P<pid>\d+)"
        r"(?:, ip=(?P<host>[\w.:]+))?\) ?",
    ),
    Grammar("ray_part", r"\((?P<process>raylet|autoscaler|gcs_server)(?:,? [^()]{0,60})?\) ",
            "ray"),
)  # fmt: skip

# what could be the beginning of a message as well: taken where a header follows, and in the lines
# of that file that begin with exactly the same
WEAK: Final = (
    Grammar("srun", r" *(?P<task>\d{1,5}): "),
    Grammar("pdsh", r"(?P<host>[A-Za-z0-9][\w.-]*): "),
    Grammar("compose", r"(?P<process>[A-Za-z0-9][\w.-]*) +\| "),
)
BY_NAME: Final = {g.name: g for g in (*HEADERS, *PREFIXES, *WEAK)}

_HEADER: Final = "|".join(g.bare for g in HEADERS)
_PREFIX: Final = "|".join(g.bare for g in PREFIXES)
_WEAK: Final = "|".join(g.bare for g in WEAK)
ANY_PREFIX: Final = f"^(?:{_PREFIX})"
ANY_SURE: Final = f"^(?:{_PREFIX}|{_HEADER})"
HEAD: Final = (
    f"^(?:(?:{_PREFIX}){{1,3}}(?:{_HEADER})?|(?:{_HEADER})|"
    f"(?:{_WEAK})(?:{_PREFIX}){{0,2}}(?:{_HEADER}))"
)
