"""How good the alarms and the data were over a window: precision and recall, data-level and query-level scores.

All by length of time, as unions of intervals clipped to the window, so that durations add up over adjoining windows.
TP: lives of detected incidents that are no false positives. FP: lives of false positives, where no TP lived. FN: what
users reported, and the producer acknowledged, while no detected incident of the dataset over that range lived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from incidents.domain.spans import Span, affected, is_over, life
from lakehub.kernel.interval import Interval, clip_all, subtract, total, union

Key = tuple[int, str]
"""(dataset, category)"""

Pieces = tuple[Interval, ...]


@dataclass(frozen=True)
class Detected:
    """An incident that tests found. Open ones live until now."""

    id: int
    dataset: int
    category: str
    spans: tuple[Span, ...]
    false_positive: bool = False

    def covers(self, data: Interval) -> bool:
        """One of its spans, dead or alive, is about some of `data`."""
        return any(span.data.meets(data) for span in self.spans)


@dataclass(frozen=True)
class Reported:
    """A user's report that the producer acknowledged; `copy` None: all copies. Not fixed: it lives until now."""

    id: int
    dataset: int
    category: str
    data: Interval
    occurred_at: datetime
    fixed_at: datetime | None = None
    copy: int | None = None

    def life(self, *, now: datetime) -> Pieces:
        end = min(self.fixed_at or now, now)
        return (Interval(self.occurred_at, end),) if self.occurred_at < end else ()

    def is_alive(self, at: datetime) -> bool:
        return self.occurred_at <= at and (self.fixed_at is None or at < self.fixed_at)


@dataclass(frozen=True)
class Tally:
    """Disjoint, sorted intervals of one (dataset, category). `unsettled`: incidents that are open and count to now."""

    tp: Pieces = ()
    fp: Pieces = ()
    fn: Pieces = ()
    unsettled: tuple[int, ...] = ()

    def within(self, window: Interval) -> Tally:
        tp, fp, fn = (clip_all(pieces, window) for pieces in (self.tp, self.fp, self.fn))
        return Tally(tp, fp, fn, self.unsettled)

    def without(self, excluded: Iterable[Interval]) -> Tally:
        holes = union(excluded)
        tp, fp, fn = (subtract(pieces, holes) for pieces in (self.tp, self.fp, self.fn))
        return Tally(tp, fp, fn, self.unsettled)


@dataclass(frozen=True)
class Durations:
    """What a window adds up to; windows side by side add up too. Precision and recall of nothing are None."""

    tp: timedelta = timedelta()
    fp: timedelta = timedelta()
    fn: timedelta = timedelta()

    def __add__(self, other: Durations) -> Durations:
        return Durations(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def precision(self) -> float | None:
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        return _ratio(self.tp, self.tp + self.fn)


def tally(
    detected: Iterable[Detected],
    reported: Iterable[Reported],
    *,
    now: datetime,
    excluded: Mapping[int, Iterable[Interval]] | None = None,
) -> dict[Key, Tally]:
    """TP, FP and FN of each (dataset, category). `excluded`: by dataset, grace periods and backtests, which are left out."""
    found, reports = list(detected), list(reported)
    keys = {(incident.dataset, incident.category) for incident in found}
    keys |= {(report.dataset, report.category) for report in reports}
    left_out = {dataset: tuple(periods) for dataset, periods in (excluded or {}).items()}
    return {key: _tally_of(key, found, reports, now).without(left_out.get(key[0], ())) for key in sorted(keys)}


def _tally_of(key: Key, detected: list[Detected], reported: list[Reported], now: datetime) -> Tally:
    mine = [incident for incident in detected if (incident.dataset, incident.category) == key]
    tp = _lives((incident for incident in mine if not incident.false_positive), now)
    fp = subtract(_lives((incident for incident in mine if incident.false_positive), now), tp)
    reports = (report for report in reported if (report.dataset, report.category) == key)
    fn = union(piece for report in reports for piece in _missed(report, detected, now))
    return Tally(tp, fp, fn, unsettled=tuple(incident.id for incident in mine if not is_over(incident.spans)))


def _lives(incidents: Iterable[Detected], now: datetime) -> Pieces:
    return union(piece for incident in incidents for piece in life(incident.spans, now=now))


def _missed(report: Reported, detected: Iterable[Detected], now: datetime) -> Pieces:
    """The time of the report during which no test of the dataset, of any category, saw anything over its range."""
    seen = (
        incident
        for incident in detected
        if incident.dataset == report.dataset and not incident.false_positive and incident.covers(report.data)
    )
    return subtract(report.life(now=now), _lives(seen, now))


def durations(tallies: Iterable[Tally], window: Interval) -> Durations:
    """Clipped to the window and summed over the keys."""
    clipped = [one.within(window) for one in tallies]
    return Durations(
        tp=sum((total(one.tp) for one in clipped), timedelta()),
        fp=sum((total(one.fp) for one in clipped), timedelta()),
        fn=sum((total(one.fn) for one in clipped), timedelta()),
    )


# Data-level: the share of the time that something was wrong


@dataclass(frozen=True)
class DataLevel:
    """The incident share is what was published as the score; quality is what is left of 1. None: nothing monitored."""

    incident: timedelta
    monitored: timedelta

    def __add__(self, other: DataLevel) -> DataLevel:
        return DataLevel(self.incident + other.incident, self.monitored + other.monitored)

    @property
    def incident_share(self) -> float | None:
        return _ratio(self.incident, self.monitored)

    @property
    def quality(self) -> float | None:
        share = self.incident_share
        return None if share is None else 1 - share


def data_level(tallies: Iterable[Tally], window: Interval, *, monitored_from: datetime) -> DataLevel:
    """One dataset: its tallies, one a category, within the window and after `monitored_from`."""
    start = max(window.start, monitored_from)
    if start >= window.end:
        return DataLevel(timedelta(), timedelta())
    monitored = Interval(start, window.end)
    wrong = clip_all((piece for one in tallies for piece in (*one.tp, *one.fn)), monitored)
    return DataLevel(total(wrong), monitored.length)


# Query-level: the share of the questions that met bad data


@dataclass(frozen=True)
class Question:
    """The gate was asked about `data` of a copy."""

    at: datetime
    consumer: str
    request_id: str
    dataset: int
    copy: int
    data: Interval


@dataclass(frozen=True)
class QueryLevel:
    """`failed` of `asked` questions met data that was wrong then, by what is known now."""

    failed: int
    asked: int

    @property
    def failed_share(self) -> float | None:
        return self.failed / self.asked if self.asked else None

    @property
    def quality(self) -> float | None:
        share = self.failed_share
        return None if share is None else 1 - share


def query_level(
    questions: Iterable[Question], detected: Iterable[Detected], reported: Iterable[Reported], window: Interval
) -> QueryLevel:
    """Questions within the window, each counted once (consumer, request, dataset, copy, range) at its first time there."""
    real = [incident for incident in detected if not incident.false_positive]
    reports = list(reported)
    counted = list(_first_times(questions, window))
    failed = sum(_met_bad_data(question, real, reports) for question in counted)
    return QueryLevel(failed, len(counted))


def _first_times(questions: Iterable[Question], window: Interval) -> Iterator[Question]:
    seen = set()
    for question in sorted(questions, key=lambda question: question.at):
        key = (question.consumer, question.request_id, question.dataset, question.copy, question.data)
        if window.contains(question.at) and key not in seen:
            seen.add(key)
            yield question


def _met_bad_data(question: Question, real: Iterable[Detected], reported: Iterable[Reported]) -> bool:
    return any(_was_bad(incident, question) for incident in real) or any(
        report.dataset == question.dataset
        and report.copy in (None, question.copy)
        and report.is_alive(question.at)
        and report.data.meets(question.data)
        for report in reported
    )


def _was_bad(incident: Detected, question: Question) -> bool:
    if incident.dataset != question.dataset:
        return False
    wrong = affected(incident.spans, at=question.at, copy=question.copy)
    return any(piece.meets(question.data) for piece in wrong)


def _ratio(part: timedelta, whole: timedelta) -> float | None:
    return part / whole if whole else None
