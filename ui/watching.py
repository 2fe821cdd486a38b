"""What a watch says: events as lines, and on a terminal a line that shows what goes on."""

from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Final

from rich.console import Console
from rich.status import Status
from rich.text import Text

from teller.graph.finding import Verdict
from teller.ui import phrase
from teller.ui.progress import Silent
from teller.ui.text import SEVERITY_STYLES, word

Event = Mapping[str, Any]

_FILES: Final = 3
_STYLES: Final = {"problem": "yellow", "waiting": "yellow", "idle": "dim", "watching": "dim"}


def line(event: Event) -> Text:
    """Give an event as one line: the time in UTC, the run, and what is said of it."""
    kind = event["event"]
    text = word(f"{event['time'][11:19]} ", "dim")
    if "run" in event:
        text += word(f"{event['run']['name']}  ")
    if kind in ("finding", "cleared"):
        return text + _finding(event)
    return text + word(_said(event), _STYLES.get(kind, ""))


def _finding(event: Event) -> Text:
    finding = event["finding"]
    severity = finding["severity"]
    title = word(f" {finding['class']}: {finding['title']}")
    if event["event"] == "cleared":
        return word("no longer", "green") + title
    now = " now" if event["change"] == "changed" else ""
    return word(f"{severity}{now}", SEVERITY_STYLES[severity]) + title


def _said(event: Event) -> str:
    match event["event"]:
        case "watching":
            return f"watching {event['folder']}, runs are kept in {event['workspace']}"
        case "ingested":
            return f"read {phrase.some(event['files'], _FILES) or 'what was there'}"
        case "diagnosed":
            verdict: Verdict = event["verdict"]
            return f"{phrase.VERDICTS[verdict]} ({phrase.counted(event['findings'], 'finding')})"
        case "problem":
            where = f" at {event['where']}" if event["where"] else ""
            return f"{event['file']}{where}: {event['what']}; {event['do']}"
        case "waiting":
            return f"cannot go on yet: {event['why']}"
        case "idle":
            return f"all is read ({phrase.counted(event['runs'], 'run')}); waiting for files"
        case other:
            return str(other)


class Shown(Silent):
    """Prints events on a terminal, above a line that says what goes on."""

    def __init__(self, console: Console, folder: str) -> None:
        """Begin with nothing to say of the folder."""
        self._console = console
        self._folder = phrase.visible(folder)
        self._status = Status(Text(f"looking at {self._folder}"), console=console)
        self._what, self._done = "", 0
        self._of: int | None = None

    def __enter__(self) -> "Shown":
        self._status.start()
        return self

    def tell(self, event: Event) -> None:
        """Print an event."""
        if event["event"] == "idle":
            self._status.update(Text(f"watching {self._folder}"))
        self._console.print(line(event))

    def start(self, what: str, total: int | None) -> None:
        """Show what begins."""
        self._what, self._done, self._of = phrase.visible(what), 0, total
        self.step(0)

    def step(self, n: int = 1) -> None:
        """Show how far it is."""
        self._done += n
        far = f" {self._done}/{self._of}" if self._of else ""
        self._status.update(Text(f"{self._what}{far}"))

    def done(self) -> None:
        """Show that it is watched again."""
        self._status.update(Text(f"looking at {self._folder}"))

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, at: TracebackType | None
    ) -> None:
        self._status.stop()


def plain(file: IO[str], event: Event) -> None:
    """Write an event as a line without colour, at once."""
    file.write(f"{line(event).plain}\n")
    file.flush()
