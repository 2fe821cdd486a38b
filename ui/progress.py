"""How far long work is, as bars on a terminal, and as nothing elsewhere."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import IO, Protocol

from teller.ui.phrase import visible


class Progress(AbstractContextManager["Progress"], Protocol):
    """Hears of long work, one thing after another."""

    def start(self, what: str, total: int | None) -> None:
        """Hear what begins, and of how many steps it is, where that is known."""

    def step(self, n: int = 1) -> None:
        """Hear that `n` steps are done."""

    def done(self) -> None:
        """Hear that what began last has ended."""


class Silent(Progress):
    """Shows nothing."""

    def start(self, what: str, total: int | None) -> None:
        """Show nothing."""

    def step(self, n: int = 1) -> None:
        """Show nothing."""

    def done(self) -> None:
        """Show nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, at: TracebackType | None
    ) -> None:
        return None


class Bars(Silent):
    """Shows a bar for what goes on, and takes it away at the end."""

    def __init__(self, file: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(),
            TextColumn("{task.completed:,.0f}"), TimeElapsedColumn(),
            console=Console(file=file, markup=False, highlight=False), transient=True,
        )  # fmt: skip
        self._task = self._bars.add_task("", visible=False)

    def __enter__(self) -> "Bars":
        self._bars.start()
        return self

    def start(self, what: str, total: int | None) -> None:
        """Show a new bar in place of the one before."""
        self._bars.remove_task(self._task)
        self._task = self._bars.add_task(visible(what), total=total)

    def step(self, n: int = 1) -> None:
        """Move the bar."""
        self._bars.advance(self._task, n)

    def done(self) -> None:
        """Take the bar away."""
        self._bars.update(self._task, visible=False)

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, at: TracebackType | None
    ) -> None:
        self._bars.stop()


def shown_on(file: IO[str], *, quiet: bool) -> Progress:
    """Give bars where somebody can see them, else silence."""
    return Silent() if quiet or not file.isatty() else Bars(file)
