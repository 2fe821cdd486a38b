"""Ray: workers that died, memory that ran out, nodes that were given up."""

from typing import Final

import pyarrow as pa

from teller.ingest.logs import phrases
from teller.ingest.logs.knowledge import Meant
from teller.ingest.logs.meaning import meant
from teller.ingest.logs.phrases import LINE, Phrase

_PHRASES: Final = (
    Phrase(
        "process.died",
        "A worker died or was killed",
        r"(?s)Worker IP address: (?P<host>\S+).*?Worker PID: (?P<pid>\d+)"
        r".*?Worker exit type: (?P<text>\w+(?: Worker exit detail: [^\n]*)?)",
    ),
    Phrase(
        "process.died",
        "killed due to memory pressure",
        r"(?P<text>(?P<value>\d+) Workers \(tasks / actors\) killed due to memory pressure \(OOM\))"
        r".*? at node \(ID: \w+, IP: (?P<host>[\w.:-]+)\)",
    ),
    Phrase("process.died", "he actor died", r"(?P<text>[Tt]he actor died[^\n]*)"),
    Phrase("process.died", "The node was low on memory", "", LINE),
    Phrase("process.died", "Worker exit type: ", r"^Worker .*pid ?= ?(?P<pid>\d+)", LINE),
    Phrase(
        "host.lost",
        "has been marked dead",
        r"(?P<text>node with node id: \w+ and address: (?P<host>[\w.:-]+) .*marked dead.*)",
    ),
    Phrase("host.lost", "Removing node", r"(?P<text>Removing node.*)"),
    Phrase("host.lost", "missed too many heartbeats", r"^(?P<text>Node .* missed too many.*)"),
    Phrase("engine.error", "ailed to connect to GCS", "", LINE),
    Phrase("engine.error", "lost connection to GCS", "", LINE),
)

MARKS: tuple[str, ...] = phrases.marks(_PHRASES)


class _Knowing:
    """What one file's lines of Ray mean."""

    def learn(self, lines: pa.Table) -> Meant:
        """Read lines."""
        return meant(*phrases.read(lines, _PHRASES))


def knowing() -> _Knowing:
    """Begin a file."""
    return _Knowing()
