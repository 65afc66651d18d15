"""freshness(...): how long ago the first bucket that is not complete should have been.

Three rules, and the arguments say which one is in use:
`freshness(this, upstream)` - complete is at least 99.9% of the rows of upstream, bucket by bucket (without partitions: as a whole);
`freshness(this.event_time)` - everything up to the latest event is there;  `freshness(this)` - everything up to the latest commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import cast

from lakehub.kernel.partitions import Grain
from quality.domain.language.function_support.arguments import check_argument_count, name_argument, table_argument
from quality.domain.language.measures import LAST_COMMIT, ROWS, Answer, Ask, Measure, Reach
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
            return (Ask(name.table, Measure("maximum", (name.column,)), Reach.TABLE),)
        return (Ask(name.table, LAST_COMMIT, Reach.TABLE),)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        if len(answers) == 1:
            return _since_latest(answers[0], moment)
        own_counts, upstream_counts, committed = answers
        if moment.grain is Grain.NONE:
            return _as_a_whole(own_counts, upstream_counts, committed, moment)
        return _by_bucket(
            cast("Mapping[str | None, int]", own_counts), cast("Mapping[str | None, int]", upstream_counts), moment
        )


def _by_bucket(
    own_counts: Mapping[str | None, int], upstream_counts: Mapping[str | None, int], moment: EvaluationContext
) -> Value:
    try:
        rows, expected = (
            rows_by_bucket(counts, grain=moment.grain, zone=moment.zone) for counts in (own_counts, upstream_counts)
        )
    except ValueError as bad_name:
        return error(str(bad_name))
    c = complete_until(
        rows,
        expected,
        grain=moment.grain,
        zone=moment.zone,
        since=moment.monitored_since,
        now=moment.now,
        produced=moment.production_calendar,
    )
    return no_data("upstream has no rows") if c is None else _known_lateness(c, moment)


def _as_a_whole(own_counts: Answer, upstream_counts: Answer, committed: Answer, moment: EvaluationContext) -> Value:
    """One piece is complete now, or was last when it was committed last."""
    rows, expected = (
        sum(cast("Mapping[str | None, int]", counts).values()) for counts in (own_counts, upstream_counts)
    )
    if not expected:
        return no_data("upstream has no rows")
    if rows >= COMPLETE_SHARE * expected:
        return _known_lateness(moment.now, moment)
    return _since_latest(committed, moment)


def _since_latest(latest: Answer, moment: EvaluationContext) -> Value:
    if latest is None:
        return no_data("there are no rows")
    instant = _instant(latest)
    if instant is None:
        return error(f"{latest!r} is not a time")
    c = complete_until_latest(
        instant, grain=moment.grain, zone=moment.zone, now=moment.now, produced=moment.production_calendar
    )
    return _known_lateness(c, moment)


def _known_lateness(c: datetime, moment: EvaluationContext) -> Value:
    late = lateness(c, grain=moment.grain, zone=moment.zone, now=moment.now, produced=moment.production_calendar)
    return Known(late, complete_until=c)


def _instant(value: Answer) -> datetime | None:
    """A time without a zone is UTC, as the lake writes it; SQLite hands times over as text."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


FRESHNESS = FreshnessFunction()
