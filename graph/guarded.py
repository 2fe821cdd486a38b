"""The one way for people's queries to the graph, whichever engine keeps it.

What a query may be is said by `reading`, what it may take by `Limits`. On the embedded engine it is
held to what both engines answer alike (`dialect`) and runs in a process of its own (`guard`) on the
published copy; a server is asked in a reading session with a time-out.
"""

from collections.abc import Mapping
from time import perf_counter
from typing import Final

from teller.errors import TellerError
from teller.graph import audit, reading
from teller.graph.answer import Answer, Limits
from teller.graph.workspace import Workspace

DEFAULT: Final = Limits()


def ask(
    workspace: Workspace,
    text: str,
    params: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT,
    *,
    who: str = "",
) -> Answer:
    """Answer one reading query; every `$name` in it must be given, and nothing else.

    Raises an error of ours for whatever is refused, stopped, or larger than the limits. Each query
    is noted in the workspace, with `who` asked where that is known.
    """
    given = dict(params or {})
    time, started = audit.now(), perf_counter()

    def passed_ms() -> int:
        return round(1000 * (perf_counter() - started))

    try:
        found = workspace.answer(reading.check_asked(text, given), given, limits)
    except TellerError as err:
        refused = audit.Asked(time=time, ms=passed_ms(), text=text, refused=str(err), who=who)
        audit.note(workspace.folder, refused)
        raise
    notices = (f"the first {limits.rows:,} of more rows",) if found.truncated else ()
    answer = Answer(found.table, found.truncated, perf_counter() - started, notices)
    audit.note(
        workspace.folder,
        audit.Asked(
            time=time,
            ms=passed_ms(),
            text=text,
            rows=answer.table.num_rows,
            truncated=answer.truncated,
            who=who,
        ),
    )
    return answer
