"""freshness(...): how long ago the first bucket that is not complete should have been.

Three rules, and the arguments say which one is in use:
`freshness(this, upstream)` - complete is at least 99.9% of the rows of upstream, bucket by bucket (without partitions: as a whole);
`freshness(this.event_time)` - everything up to the latest event is there;  `freshness(this)` - everything up to the latest commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import cast

from lakehub.kernel.calendar import Grain
from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_name, a_table, exactly
from quality.domain.expression.measures import COMMITTED, ROWS, Answer, Ask, Measure, Reach
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, error, no_data
from quality.domain.freshness import COMPLETE_SHARE, by_bucket, complete_until, complete_with, lateness


class Freshness:
    signature = "freshness(table, upstream) or freshness(table.event_time) or freshness(table)"
    kind = Kind.DURATION
    tables = 2

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 1, 2, self.signature)
        if len(args) == 2:
            tables = [a_table(arg, self.signature) for arg in args]
            return *(Ask(table, ROWS, Reach.EACH_PARTITION) for table in tables), Ask(tables[0], COMMITTED, Reach.TABLE)
        name = a_name(args[0], self.signature)
        if name.column:
            return (Ask(name.table, Measure("maximum", (name.column,)), Reach.TABLE),)
        return (Ask(name.table, COMMITTED, Reach.TABLE),)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        if len(answers) == 1:
            return _since_latest(answers[0], moment)
        ours, upstream, committed = answers
        if moment.grain is Grain.NONE:
            return _as_a_whole(ours, upstream, committed, moment)
        return _by_bucket(cast("Mapping[str | None, int]", ours), cast("Mapping[str | None, int]", upstream), moment)


def _by_bucket(ours: Mapping[str | None, int], upstream: Mapping[str | None, int], moment: Moment) -> Value:
    try:
        rows, expected = (by_bucket(counts, grain=moment.grain, zone=moment.zone) for counts in (ours, upstream))
    except ValueError as bad_name:
        return error(str(bad_name))
    c = complete_until(
        rows,
        expected,
        grain=moment.grain,
        zone=moment.zone,
        since=moment.since,
        now=moment.now,
        produced=moment.produced,
    )
    return no_data("upstream has no rows") if c is None else _late(c, moment)


def _as_a_whole(ours: Answer, upstream: Answer, committed: Answer, moment: Moment) -> Value:
    """One piece is complete now, or was last when it was committed last."""
    rows, expected = (sum(cast("Mapping[str | None, int]", counts).values()) for counts in (ours, upstream))
    if not expected:
        return no_data("upstream has no rows")
    if rows >= COMPLETE_SHARE * expected:
        return _late(moment.now, moment)
    return _since_latest(committed, moment)


def _since_latest(latest: Answer, moment: Moment) -> Value:
    if latest is None:
        return no_data("there are no rows")
    instant = _instant(latest)
    if instant is None:
        return error(f"{latest!r} is not a time")
    c = complete_with(instant, grain=moment.grain, zone=moment.zone, now=moment.now, produced=moment.produced)
    return _late(c, moment)


def _late(c: datetime, moment: Moment) -> Value:
    late = lateness(c, grain=moment.grain, zone=moment.zone, now=moment.now, produced=moment.produced)
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


FRESHNESS = Freshness()
