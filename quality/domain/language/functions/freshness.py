"""freshness(...): how long ago the bucket that is due, the first after the front of the data, ended.

Three rules, and the arguments say which one is in use. The front is the end of the latest bucket that ended and
`freshness(this, upstream)` - has at least 99.9% of the rows of upstream (without partitions: as a whole);
`freshness(this.event_time)` - holds events;  `freshness(this)` - holds rows (without partitions: the time of the latest commit).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import cast

from lakehub.kernel.partitions import Grain, floor_to_bucket
from quality.domain.language.function_support.arguments import check_argument_count, name_argument, table_argument
from quality.domain.language.measures import LAST_COMMIT, LATEST, ROWS, Answer, Ask, Measure, Reach
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value, error, no_data
from quality.domain.timeliness.lateness import (
    COMPLETE_SHARE,
    complete_until,
    complete_until_latest,
    lateness,
    rows_by_bucket,
)
from quality.domain.value_types import ValueType

NO_BUCKET = "no bucket that has ended holds rows"
NO_COMMITS = (
    "there is no event time, and no commit is known that would say when the data is of: name a column of the event time"
)


class FreshnessFunction:
    signature = "freshness(table, upstream) or freshness(table.event_time) or freshness(table)"
    value_type = ValueType.DURATION
    table_arguments = 2

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 1, 2, self.signature)
        if len(args) == 2:
            tables = [table_argument(arg, self.signature) for arg in args]
            return *(Ask(table, ROWS, Reach.EACH_PARTITION) for table in tables), Ask(
                tables[0], LAST_COMMIT, Reach.TABLE
            )
        name = name_argument(args[0], self.signature)
        if name.column:
            return (Ask(name.table, Measure(LATEST, (name.column,)), Reach.TABLE),)
        return Ask(name, ROWS, Reach.EACH_PARTITION), Ask(name, LAST_COMMIT, Reach.TABLE)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        *counts, latest = answers
        if moment.grain is not Grain.NONE and counts:
            own, *upstream = (
                rows_by_bucket(cast("Mapping[str | None, int]", rows), grain=moment.grain, zone=moment.zone)
                for rows in counts
            )
            return _by_upstream(own, upstream[0], moment) if upstream else _by_rows(own, moment)
        if len(counts) == 2:
            return _as_a_whole(counts, latest, moment)
        return _since_commit(latest, moment) if counts else _since_event(latest, moment)


def _by_upstream(own: Mapping[datetime, int], upstream: Mapping[datetime, int], moment: EvaluationContext) -> Value:
    c = complete_until(
        own,
        upstream,
        grain=moment.grain,
        zone=moment.zone,
        since=moment.monitored_since,
        now=moment.now,
        produced=moment.production_calendar,
    )
    return no_data("upstream has no rows") if c is None else _known_lateness(c, moment)


def _by_rows(own: Mapping[datetime, int], moment: EvaluationContext) -> Value:
    now = floor_to_bucket(moment.now, moment.grain, moment.zone)
    ended = [start for start, rows in own.items() if rows and start < now]
    return _since(max(ended), moment) if ended else no_data(NO_BUCKET)


def _as_a_whole(counts: Sequence[Answer], committed: Answer, moment: EvaluationContext) -> Value:
    """One piece is complete now, or was last when it was committed last."""
    rows, expected = (sum(cast("Mapping[str | None, int]", side).values()) for side in counts)
    if not expected:
        return no_data("upstream has no rows")
    if rows >= COMPLETE_SHARE * expected:
        return _known_lateness(moment.now, moment)
    return _since_commit(committed, moment)


def _since_commit(committed: Answer, moment: EvaluationContext) -> Value:
    instant = instant_of(committed, moment)
    return no_data(NO_COMMITS) if instant is None else _since(instant, moment)


def _since_event(latest: Answer, moment: EvaluationContext) -> Value:
    """`latest` is the latest event of what ended."""
    if latest is None:
        return no_data("there is no event yet" if moment.grain is Grain.NONE else NO_BUCKET)
    instant = instant_of(latest, moment)
    return error(f"{latest!r} is not a time") if instant is None else _since(instant, moment)


def _since(latest: datetime, moment: EvaluationContext) -> Value:
    c = complete_until_latest(
        latest, grain=moment.grain, zone=moment.zone, now=moment.now, produced=moment.production_calendar
    )
    return _known_lateness(c, moment)


def _known_lateness(c: datetime, moment: EvaluationContext) -> Value:
    late = lateness(c, grain=moment.grain, zone=moment.zone, now=moment.now, produced=moment.production_calendar)
    return Known(late, complete_until=c)


def instant_of(value: Answer, moment: EvaluationContext) -> datetime | None:
    """A time without a zone is of the dataset's clocks, unless the dataset says of which; a day begins where the dataset is.
    SQLite hands both over as text."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value) if len(value) == len("2026-11-16") else datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value if value.tzinfo else _instant_of_wall_time(value, moment)
    return (
        datetime(value.year, value.month, value.day, tzinfo=moment.zone).astimezone(UTC)
        if isinstance(value, date)
        else None
    )


def _instant_of_wall_time(wall: datetime, moment: EvaluationContext) -> datetime:
    """Of a time that the clock shows twice the second, once it has been."""
    first, second = (
        wall.replace(tzinfo=moment.event_zone or moment.zone, fold=fold).astimezone(UTC) for fold in (0, 1)
    )
    return second if first < second < floor_to_bucket(moment.now, moment.grain, moment.zone) else first


FRESHNESS = FreshnessFunction()
