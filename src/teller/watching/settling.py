"""Which files of a watched folder are to be read now: those that are new and are written out.

A file is written out when it was left alone for a while and ends as its format wants it; one that
never does is read in the end, and its reader says what is wrong. A folder that is being filled is
waited for, so that its files are read together. A growing log is not waited for, but it is read
again from its start: the more a look costs, the rarer it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from teller.ingest.glance import Mark, Sight, is_whole, may_grow

SHARE: Final = 4.0  # × what the last look at them cost, until growing logs are looked at again
HELD: Final = 2.0  # × the settling time, for a log that grows without a pause


@dataclass(slots=True)
class _Waiting:
    """A file that is not read as it stands now. Times are of the monotonic clock."""

    mark: Mark
    first: float  # when it was seen to be new or changed
    quiet_since: float
    grows: bool
    whole: bool | None = None  # not looked at yet


@dataclass(slots=True)
class Settling:
    """What is waited for; times in s.

    A file must be left alone for `settle`; one that does not end, and a folder that is being
    filled, are waited for as long as `patience`.
    """

    settle: float
    patience: float
    _waiting: dict[Path, _Waiting] = field(default_factory=dict)
    _logs_from: float = 0.0  # when growing logs are looked at again

    @property
    def waiting(self) -> int:
        """Give the number of files that are waited for."""
        return len(self._waiting)

    def due(
        self, sights: Sequence[Sight], read: Mapping[str, Mark], now: float, now_ns: int
    ) -> list[Sight]:
        """Give the files to read now; `read` are those that were, as they stood then."""
        new = [s for s in sights if read.get(s.name) != s.mark]
        self._waiting = {s.path: self._seen(s, now, now_ns) for s in new}
        ready = [s for s in new if self._is_ready(s.path, now)]
        late = {s.path for s in ready}
        filling = {
            path.parent
            for path, one in self._waiting.items()
            if path not in late and not one.grows and now - one.first < self.patience
        }
        return [s for s in ready if s.path.parent not in filling]

    def done(self, sights: Sequence[Sight], now: float, cost_s: float) -> None:
        """Hear that files were read, and how long all that took."""
        for sight in sights:
            self._waiting.pop(sight.path, None)
        if any(may_grow(s.path) for s in sights):
            self._logs_from = now + SHARE * cost_s

    def _seen(self, sight: Sight, now: float, now_ns: int) -> _Waiting:
        one = self._waiting.get(sight.path)
        if one is None:
            age = (now_ns - max(sight.mark.modified_ns, sight.mark.changed_ns)) / 1e9
            # an entry's time tells, unless the clock of the disk's host runs ahead of this one's
            since = now - age if age > self.settle else now
            return _Waiting(sight.mark, now, since, may_grow(sight.path))
        if one.mark != sight.mark:
            grows = one.grows or may_grow(sight.path)  # an empty file does not tell
            return _Waiting(sight.mark, one.first, now, grows)
        return one

    def _is_ready(self, path: Path, now: float) -> bool:
        one = self._waiting[path]
        quiet = now - one.quiet_since
        if one.grows:
            settled = quiet >= self.settle or now - one.first >= HELD * self.settle
            return settled and now >= self._logs_from
        if quiet < self.settle:
            return False
        if one.whole is None:
            one.whole = is_whole(path)
        return one.whole or quiet >= self.patience
