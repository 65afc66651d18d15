"""How many messages the rows are that a source's log delivers: counted before messages are made of them, and beside what makes them, so one that goes astray is missed.

A tap keeps the counts in the changelog with the place that it has reached, in the commit that has the messages: they are of exactly the rows up to there, whatever ends a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ingestion.heatpipe.reading import hour_of

HourCounts = Mapping[str, Mapping[str, int | None]]
"""By the hour in which they were logged (`hour_of`) and topic, errors with it. None: not known."""


def as_logged(time: datetime) -> datetime:
    """The log keeps milliseconds: no message is to come into another hour than its count."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


@dataclass
class SourceCounts:
    """`hours`: of what is committed."""

    hours: HourCounts = field(default_factory=dict)
    _whole: Counter[str] = field(default_factory=Counter)
    """Of transactions that have ended since the last commit."""
    _open: Counter[str] = field(default_factory=Counter)
    """Of the one that has not, since the last commit that had a part of it."""
    _savepoints: dict[str, Counter[str]] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)

    def add(self, topic: str, messages: int) -> None:
        self._open[topic] += messages

    def set_savepoint(self, name: str) -> None:
        self._savepoints[name] = self._open.copy()

    def roll_back(self, savepoint: str | None = None) -> None:
        """What came after it never was; None: nothing of the transaction was."""
        self._open = Counter() if savepoint is None else self._savepoints[savepoint].copy()

    def end_transaction(self) -> None:
        self._whole.update(self._open)
        self._open.clear()
        self._savepoints.clear()

    def stop(self, topic: str) -> None:
        """It is not captured any more, within a transaction perhaps: nobody can say which of its rows ought to have come."""
        self._unknown.add(topic)

    def after_commit(self, at: datetime, *, with_open: bool) -> HourCounts:
        """What `hours` is once the messages are committed. `with_open`: those of the open transaction too.

        Where the clock was set back to an hour before, that one may be told and forgotten here: it is not known any more."""
        hour, newest = hour_of(at), max(self.hours, default="")
        new = self._whole + self._open if with_open else self._whole
        counts = dict(self.hours.get(hour, {}))
        for topic, messages in new.items():
            known = counts.get(topic, 0)
            counts[topic] = None if known is None or hour < newest else known + messages
        counts |= dict.fromkeys(self._unknown)
        return {**self.hours, hour: counts} if counts else self.hours

    def note_committed(self, hours: HourCounts, *, with_open: bool) -> None:
        """What is left of savepoints lies behind what was committed."""
        self.hours = hours
        self._whole.clear()
        if with_open:
            self._open.clear()
            self._savepoints = {name: Counter() for name in self._savepoints}

    def forget_before(self, hour: str) -> None:
        """Whoever keeps the counts has those; the newest hour stays."""
        self.hours = {each: counts for each, counts in self.hours.items() if each >= hour}


def news_in(counts: HourCounts, known: HourCounts) -> HourCounts:
    """Those that are others than they were."""
    news = {
        hour: {topic: count for topic, count in of.items() if known.get(hour, {}).get(topic, 0) != count}
        for hour, of in counts.items()
    }
    return {hour: of for hour, of in news.items() if of}
