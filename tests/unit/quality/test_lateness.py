"""c and the lateness, against a slow model that walks through the hours one by one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, floor_to_bucket, partition_at, partition_name, partitions_within
from quality.domain.evaluation.evaluate import Evaluation, asks_of_expression, evaluate
from quality.domain.language import parse
from quality.domain.language.measures import Answer, Ask
from quality.domain.language.values import EvaluationContext, Failed
from quality.domain.timeliness.lateness import complete_until, complete_until_latest, lateness
from quality.domain.timeliness.production_calendar import parse_calendar

NEW_YORK, UTC_ZONE = ZoneInfo("America/New_York"), ZoneInfo("UTC")
START = datetime(2026, 10, 30, 4, tzinfo=UTC)
"""Midnight in New York; the night of 1 November has 25 hours."""
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

counts = st.sampled_from([0, 1, 998, 999, 1000, 1001])
grains = st.sampled_from([Grain.HOUR, Grain.DAY])
moments = st.integers(0, 130).map(lambda hours: START + hours * HOUR)
slas = st.integers(1, 50).map(lambda hours: hours * HOUR)


@given(grains, st.lists(counts, min_size=1, max_size=130), st.lists(counts, min_size=1, max_size=130), moments)
def test_c_is_the_end_of_the_latest_bucket_that_is_complete(
    grain: Grain, ours: list[int], upstream: list[int], now: datetime
) -> None:
    """The slow model looks at every bucket that ended, and keeps the last that lacks nothing."""
    have, want = _by_bucket(ours, grain), _by_bucket(upstream, grain)
    complete_to = complete_until(have, want, grain=grain, zone=NEW_YORK, since=START, now=now)
    known = {start: rows for start, rows in want.items() if rows}
    if not known:
        assert complete_to is None
        return
    front = START
    for number in range(131):
        bucket = partition_at(START + number * HOUR, grain, NEW_YORK)
        if bucket.end <= now and have.get(bucket.start, 0) * 1000 >= 999 * known.get(bucket.start, 0):
            front = max(front, bucket.end)
    assert complete_to == front


@given(grains, moments, moments, slas)
def test_lateness_below_the_sla_is_the_rule(grain: Grain, instant: datetime, now: datetime, sla: timedelta) -> None:
    c = min(floor_to_bucket(instant, grain, NEW_YORK), floor_to_bucket(now, grain, NEW_YORK))
    late = lateness(c, grain=grain, zone=NEW_YORK, now=now)
    assert (late < sla) == (c >= floor_to_bucket(now - sla, grain, NEW_YORK))


@given(moments, moments, slas)
def test_without_buckets_the_data_may_be_as_old_as_the_sla(c: datetime, now: datetime, sla: timedelta) -> None:
    assert (lateness(c, grain=Grain.NONE, zone=NEW_YORK, now=now) <= sla) == (c >= now - sla)


def _by_bucket(hourly: list[int], grain: Grain) -> dict[datetime, int]:
    rows: dict[datetime, int] = {}
    for number, count in enumerate(hourly):
        start = partition_at(START + number * HOUR, grain, NEW_YORK).start
        rows[start] = rows.get(start, 0) + count
    return rows


def fresh(
    ours: Answer,
    upstream: Answer,
    *,
    now: datetime,
    sla: str = "2h",
    grain: Grain = Grain.DAY,
    committed: Answer = None,
) -> Evaluation:
    expression = parse(f"freshness(this, upstream) < {sla}")
    answers = dict(zip(asks_of_expression(expression), (ours, upstream, committed), strict=True))
    return evaluate(expression, answers, EvaluationContext(now, grain, NEW_YORK, START))


FULL = {"2026-10-30": 1000, "2026-10-31": 1000, "2026-11-01": 1000}


def test_a_daily_dataset_does_not_flap_once_a_day() -> None:
    """At 01:59 the day that ended two hours ago is not late yet; at 02:00 it is."""
    midnight = datetime(2026, 11, 1, 4, tzinfo=UTC)
    behind = {"2026-10-30": 1000}
    assert fresh(behind, FULL, now=midnight + timedelta(minutes=119)).outcome is Outcome.PASS
    late = fresh(behind, FULL, now=midnight + timedelta(minutes=120))
    assert (late.outcome, late.complete_until) == (Outcome.FAIL, midnight - timedelta(days=1))
    assert (late.observed_text, late.threshold, late.behind) == ("1 d 2 h", "< 1 d 2 h", "2026-10-31 is due")


def test_an_old_hole_is_no_lack_of_freshness() -> None:
    """It is completeness of that day, and of that day only; the front is what counts."""
    holed = {**FULL, "2026-10-31": 0}
    evaluation = fresh(holed, FULL, now=datetime(2026, 11, 2, 12, tzinfo=UTC))
    assert (evaluation.outcome, evaluation.complete_until) == (Outcome.PASS, datetime(2026, 11, 2, 5, tzinfo=UTC))
    late = fresh({**FULL, "2026-11-01": 998}, FULL, now=datetime(2026, 11, 2, 12, tzinfo=UTC))
    assert (late.outcome, late.complete_until) == (Outcome.FAIL, datetime(2026, 11, 1, 4, tzinfo=UTC))


SINCE_EVENT = parse("freshness(this.at) < 2h")
BY_ROWS = parse("freshness(this) < 2h")
MIDNIGHT = datetime(2026, 11, 2, 5, tzinfo=UTC)
"""In New York."""


@pytest.mark.parametrize("minutes", range(0, 24 * 60, 45))
def test_a_daily_batch_is_fresh_all_day(minutes: int) -> None:
    """Its latest event is of the evening before; that the day is over is all that can be known."""
    event, now = MIDNIGHT - timedelta(hours=3), MIDNIGHT + timedelta(minutes=minutes)
    (asked,) = asks_of_expression(SINCE_EVENT)
    evaluation = evaluate(SINCE_EVENT, {asked: event}, EvaluationContext(now, Grain.DAY, NEW_YORK, START))
    assert (evaluation.outcome, evaluation.complete_until) == (Outcome.PASS, MIDNIGHT)
    next_day = evaluate(SINCE_EVENT, {asked: event}, EvaluationContext(now + DAY, Grain.DAY, NEW_YORK, START))
    assert (next_day.outcome is Outcome.FAIL) == (minutes >= 120)


@given(grains, st.lists(counts, min_size=1, max_size=130), moments)
def test_without_anything_to_compare_with_the_front_is_the_latest_bucket_that_ended_and_holds_rows(
    grain: Grain, ours: list[int], now: datetime
) -> None:
    have = _by_bucket(ours, grain)
    named = {
        partition_name(partition_at(start, grain, NEW_YORK), grain, NEW_YORK): rows for start, rows in have.items()
    }
    answers = dict(zip(asks_of_expression(BY_ROWS), ({**named, "2031-01-01": 5, "31.12.2026": 7}, None), strict=True))
    evaluation = evaluate(BY_ROWS, answers, EvaluationContext(now, grain, NEW_YORK, START))
    ends = [partition_at(start, grain, NEW_YORK).end for start, rows in have.items() if rows]
    front = max((end for end in ends if end <= now), default=None)
    assert evaluation.complete_until == front
    late = front is None or floor_to_bucket(now - 2 * HOUR, grain, NEW_YORK) > front
    assert evaluation.outcome is (Outcome.NO_DATA if front is None else Outcome.FAIL if late else Outcome.PASS)


def test_a_table_that_says_no_time_says_so() -> None:
    answers: dict[Ask, Answer | Failed] = dict(zip(asks_of_expression(BY_ROWS), ({"": 5}, None), strict=True))
    evaluation = evaluate(BY_ROWS, answers, EvaluationContext(MIDNIGHT))
    assert evaluation.outcome is Outcome.NO_DATA
    assert "name a column of the event time" in evaluation.cause


@pytest.mark.parametrize("day", [date(2026, 11, 1), "2026-11-01"])
def test_a_date_is_a_day_of_the_dataset(day: Answer) -> None:
    (asked,) = asks_of_expression(SINCE_EVENT)
    evaluation = evaluate(SINCE_EVENT, {asked: day}, EvaluationContext(MIDNIGHT, Grain.DAY, NEW_YORK, START))
    assert evaluation.complete_until == MIDNIGHT


KOLKATA, LOS_ANGELES = ZoneInfo("Asia/Kolkata"), ZoneInfo("America/Los_Angeles")


@pytest.mark.parametrize(
    ("zone", "grain", "event", "now", "front"),
    [
        (KOLKATA, Grain.DAY, datetime(2026, 11, 15, 20), datetime(2026, 11, 17, 12), datetime(2026, 11, 16)),
        (LOS_ANGELES, Grain.HOUR, datetime(2026, 11, 17, 10, 59), datetime(2026, 11, 17, 11, 30), datetime(2026, 11, 17, 11)),
        (NEW_YORK, Grain.HOUR, datetime(2026, 11, 1, 1, 30), datetime(2026, 11, 1, 3, 30), datetime(2026, 11, 1, 2)),
        (NEW_YORK, Grain.HOUR, datetime(2026, 11, 1, 1, 30), datetime(2026, 11, 1, 1, 30, fold=1), datetime(2026, 11, 1, 1, fold=1)),
    ],
    ids=["Kolkata", "Los Angeles", "shown twice, both over", "shown twice, within the second"],
)  # fmt: skip
def test_an_event_time_without_a_zone_is_of_the_clocks_of_the_dataset(
    zone: ZoneInfo, grain: Grain, event: datetime, now: datetime, front: datetime
) -> None:
    (asked,) = asks_of_expression(SINCE_EVENT)
    moment = EvaluationContext(now.replace(tzinfo=zone).astimezone(UTC), grain, zone)
    evaluation = evaluate(SINCE_EVENT, {asked: event}, moment)
    assert evaluation.complete_until == front.replace(tzinfo=zone).astimezone(UTC)


def test_an_event_time_without_a_zone_is_of_the_zone_that_the_dataset_names() -> None:
    (asked,) = asks_of_expression(SINCE_EVENT)
    now, event = datetime(2026, 11, 17, 6, 30, tzinfo=UTC), datetime(2026, 11, 15, 20)
    evaluation = evaluate(SINCE_EVENT, {asked: event}, EvaluationContext(now, Grain.DAY, KOLKATA, event_zone=UTC_ZONE))
    assert evaluation.complete_until == datetime(2026, 11, 17, tzinfo=KOLKATA)


CALENDARS = ["0 6 * * mon-fri", "0 8-16 * * *", "0 6 * * sun", "*/30 * 1-15 * *"]


@given(
    grains,
    st.lists(counts, min_size=1, max_size=130),
    st.lists(counts, min_size=1, max_size=130),
    moments,
    st.sampled_from(CALENDARS),
)
def test_a_bucket_that_is_not_produced_counts_as_complete(
    grain: Grain, ours: list[int], upstream: list[int], now: datetime, calendar: str
) -> None:
    """The slow model fills the buckets that are not expected, and asks again without a calendar."""
    produced = parse_calendar(calendar, "2026-11-02", NEW_YORK)
    have, want = _by_bucket(ours, grain), _by_bucket(upstream, grain)
    with_calendar = complete_until(have, want, grain=grain, zone=NEW_YORK, since=START, now=now, produced=produced)
    filled = {
        start: have.get(start, 0) if produced.expects(partition_at(start, grain, NEW_YORK)) else rows
        for start, rows in want.items()
    }
    assert with_calendar == complete_until(filled, want, grain=grain, zone=NEW_YORK, since=START, now=now)


@given(grains, moments, moments, st.sampled_from(CALENDARS))
def test_with_a_calendar_the_latest_event_stands_for_what_follows_until_something_is_produced(
    grain: Grain, latest: datetime, now: datetime, calendar: str
) -> None:
    produced = parse_calendar(calendar, "", NEW_YORK)
    c = complete_until_latest(latest, grain=grain, zone=NEW_YORK, now=now, produced=produced)
    plain = complete_until_latest(latest, grain=grain, zone=NEW_YORK, now=now)
    assert plain == min(partition_at(latest, grain, NEW_YORK).end, floor_to_bucket(now, grain, NEW_YORK))
    assert plain <= c <= floor_to_bucket(now, grain, NEW_YORK)
    passed = partitions_within(Interval(plain, c), grain, NEW_YORK) if plain < c else []
    assert not any(produced.expects(bucket) for bucket in passed)
    following = partition_at(c, grain, NEW_YORK)
    assert following.end > now or produced.expects(following)


def test_a_table_is_late_from_the_time_on_at_which_it_should_have_come() -> None:
    """Written on Friday at noon, expected on workdays at six: late from Monday at six on."""
    friday, monday = (datetime(2026, 11, day, hour, tzinfo=NEW_YORK) for day, hour in ((13, 12), (16, 6)))
    produced = parse_calendar("0 6 * * mon-fri", "", NEW_YORK)
    for minutes, late in ((-1, 0), (0, 0), (90, 90)):
        late_by = lateness(
            friday, grain=Grain.NONE, zone=NEW_YORK, now=monday + timedelta(minutes=minutes), produced=produced
        )
        assert late_by == timedelta(minutes=late)


def test_no_one_is_alarmed_on_a_weekend() -> None:
    """30 October 2026 is a Friday; the calendar is part of the test."""
    expression = parse("freshness(this, upstream) < 2h with calendar='0 6 * * mon-fri', holidays='2026-11-02'")
    answers = dict(
        zip(asks_of_expression(expression), ({"2026-10-30": 5}, {"2026-10-30": 5, "2026-10-31": 3}, None), strict=True)
    )
    tuesday = datetime(2026, 11, 3, tzinfo=NEW_YORK)
    for now, outcome in ((tuesday + timedelta(hours=3), Outcome.PASS), (tuesday + timedelta(hours=27), Outcome.PASS)):
        evaluation = evaluate(expression, answers, EvaluationContext(now, Grain.DAY, NEW_YORK, START))
        assert evaluation.outcome is outcome
    plain, sunday = parse("freshness(this, upstream) < 2h"), datetime(2026, 11, 1, 3, tzinfo=NEW_YORK)
    for fresh_test, outcome in ((plain, Outcome.FAIL), (expression, Outcome.PASS)):
        evaluation = evaluate(fresh_test, answers, EvaluationContext(sunday, Grain.DAY, NEW_YORK, START))
        assert evaluation.outcome is outcome


def test_an_empty_copy_fails_and_an_empty_upstream_is_no_data() -> None:
    now = datetime(2026, 11, 2, 12, tzinfo=UTC)
    assert fresh({}, FULL, now=now).outcome is Outcome.FAIL
    assert fresh(FULL, {}, now=now).outcome is Outcome.NO_DATA


def test_without_partitions_a_table_that_has_the_rows_of_upstream_is_fresh() -> None:
    now = datetime(2026, 11, 2, 12, tzinfo=UTC)
    old = now - timedelta(days=9)
    assert fresh({"": 999}, {"": 1000}, now=now, grain=Grain.NONE, committed=old).outcome is Outcome.PASS
    late = fresh({"": 998}, {"": 1000}, now=now, grain=Grain.NONE, committed=old)
    assert (late.outcome, late.complete_until) == (Outcome.FAIL, old)


def test_values_that_are_no_day_are_left_out_and_all_other_days_go_on() -> None:
    now = START + timedelta(days=3)
    odd = {"16/11/2026": 5, "__HIVE_DEFAULT_PARTITION__": 7, None: 1, "2031-11-16": 2}
    for own, upstream in (({**FULL, **odd}, FULL), (FULL, {**FULL, **odd})):
        assert fresh(own, upstream, now=now) == fresh(FULL, FULL, now=now)


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-01T12:00:00",
        "2026-11-01 12:00:00",
        datetime(2026, 11, 1, 12),
        datetime(2026, 11, 1, 7, tzinfo=NEW_YORK),
    ],
)
def test_the_event_time_rule_reads_times_of_all_forms(written: Answer) -> None:
    expression = parse("freshness(this.at) <= 1h")
    (ask,) = asks_of_expression(expression)
    evaluation = evaluate(expression, {ask: written}, EvaluationContext(datetime(2026, 11, 1, 12, 30, tzinfo=UTC)))
    assert (evaluation.outcome, evaluation.observed_text) == (Outcome.PASS, "30 min")
