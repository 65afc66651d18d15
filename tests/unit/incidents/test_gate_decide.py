"""The gate against the rules read aloud, partition by partition and hour by hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.gate.copy_state import (
    CopyState,
    FindingTest,
    FreshnessTest,
    GatingTest,
    PartitionTest,
    ReportFacts,
    UnitState,
    WholeTest,
)
from incidents.domain.gate.decide import DEFAULT_RETRY_AFTER, GateDecision, Policy, evaluate
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.kernel.outcome import Verdict, worst_verdict
from lakehub.kernel.partitions import Grain, partitions_within
from quality.domain.timeliness.production_calendar import parse_calendar

ZONE = ZoneInfo("UTC")
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 8
HOUR = timedelta(hours=1)
POLICY = Policy()


def at(days: float) -> datetime:
    return FIRST + timedelta(days=days)


def between(start: float, end: float) -> Interval:
    return Interval(at(start), at(end))


verdicts = st.sampled_from(Verdict)
whole_days = st.integers(0, DAYS)


@st.composite
def unit_states(draw: st.DrawFn, data: Interval) -> UnitState:
    verdict = draw(verdicts)
    streak = verdict in (Verdict.FAIL, Verdict.WARN)
    is_judged = verdict is not Verdict.UNKNOWN or draw(st.booleans())
    return UnitState(data, verdict, f"because {verdict}", is_failing=streak, has_verdict=is_judged)


@st.composite
def partition_tests(draw: st.DrawFn) -> PartitionTest:
    days = sorted(draw(st.sets(st.integers(0, DAYS - 1))))
    units = tuple(draw(unit_states(between(day, day + 1))) for day in days)
    since = draw(st.sampled_from([BEGINNING, BEGINNING, at(2), at(5)]))
    added = draw(st.sampled_from([BEGINNING, BEGINNING, at(3.5), at(6)]))
    return PartitionTest(
        draw(st.sampled_from("ab")), "duplicates", draw(st.integers(0, 30)) * HOUR, units, since, added
    )


@st.composite
def freshness_tests(draw: st.DrawFn) -> FreshnessTest:
    unit = draw(st.none() | unit_states(EVERYTHING))
    complete_to = draw(st.none() | whole_days.map(at))
    return FreshnessTest("f", draw(st.integers(0, 30)) * HOUR, unit, complete_to)


whole_tests = st.builds(WholeTest, st.just("w"), st.just("others"), st.none() | unit_states(EVERYTHING), st.booleans())
ranges = st.tuples(st.integers(0, DAYS * 24 - 1), st.integers(1, 40)).map(
    lambda pair: between(pair[0] / 24, (pair[0] + pair[1]) / 24)
)
reports = st.builds(ReportFacts, st.integers(1, 3), ranges, st.booleans())
copies = st.builds(
    CopyState,
    st.sampled_from([Grain.DAY, Grain.DAY, Grain.NONE]),
    st.just(ZONE),
    st.none() | whole_days.map(at),
    st.lists(partition_tests() | freshness_tests() | whole_tests, max_size=3).map(tuple),
    st.lists(reports, max_size=2).map(tuple),
    st.none(),
    st.sampled_from([None, parse_calendar("0 6 * * mon-fri", "2026-11-03", ZONE)]),
    st.just(FOREVER) | whole_days.map(at),
)
nows = st.integers(0, DAYS * 24).map(lambda hours: at(hours / 24))


def by_the_book(asked: Interval, copy: CopyState, now: datetime) -> Verdict:
    return worst_verdict([*_of_tests(asked, copy, now), *_of_reports(asked, copy)])


def _of_reports(asked: Interval, copy: CopyState) -> Iterator[Verdict]:
    for report in copy.reports:
        if report.data.overlaps(asked):
            yield Verdict.FAIL if report.acknowledged else Verdict.WARN


def _of_tests(asked: Interval, copy: CopyState, now: datetime) -> Iterator[Verdict]:
    if any(not any(_covers(test, hour, copy) for test in copy.tests) for hour in _hours(asked)):
        yield Verdict.UNKNOWN
    for test in copy.tests:
        if isinstance(test, WholeTest):
            if not test.is_added or (test.unit and test.unit.has_verdict):
                yield test.unit.verdict if test.unit else Verdict.UNKNOWN
            continue
        for partition in partitions_within(asked, copy.grain, ZONE):
            if isinstance(test, PartitionTest):
                unit = next((unit for unit in test.units if unit.data == partition), None)
                if copy.grain is Grain.NONE:
                    counted = [unit for unit in test.units if unit.has_verdict or test.added_at == BEGINNING]
                    yield from (unit.verdict for unit in counted if unit.data.overlaps(asked))
                    yield from _of_gaps(test, asked)
                    continue
                if verdict := _of_partition(unit, partition, copy, test, now):
                    yield verdict
            else:
                assert isinstance(test, FreshnessTest)
                yield from _of_freshness(test, partition, asked, copy, now)


def _hours(asked: Interval) -> Iterator[datetime]:
    hour = asked.start
    while hour < asked.end:
        yield hour
        hour += HOUR


def _covers(test: GatingTest, hour: datetime, copy: CopyState) -> bool:
    """The test speaks of the partition that holds the hour, whatever it says."""
    if isinstance(test, WholeTest):
        return not test.is_added or bool(test.unit and test.unit.has_verdict)
    if not isinstance(test, PartitionTest):
        return isinstance(test, FreshnessTest)
    if hour < test.covers_from:
        return False
    unit = next((unit for unit in test.units if unit.data.contains(hour)), None)
    return not _is_older(hour, test, copy) or bool(unit and unit.has_verdict)


def _is_older(hour: datetime, test: PartitionTest, copy: CopyState) -> bool:
    """The partition that holds the hour was over when the test was added."""
    if test.added_at == BEGINNING:
        return False
    return copy.grain is Grain.NONE or hour.replace(hour=0) + timedelta(days=1) <= test.added_at


def _of_gaps(test: PartitionTest, asked: Interval) -> Iterator[Verdict]:
    for hour in _hours(asked):
        is_silent = hour < test.covers_from or test.added_at != BEGINNING
        if not is_silent and not any(unit.data.contains(hour) for unit in test.units):
            yield Verdict.UNKNOWN


def _of_partition(
    unit: UnitState | None, partition: Interval, copy: CopyState, test: PartitionTest, now: datetime
) -> Verdict | None:
    if copy.monitored_from is None or partition.end <= copy.monitored_from:
        return Verdict.UNKNOWN
    if now < partition.end + test.due_after and not (unit and unit.is_failing):
        return Verdict.UNKNOWN
    if _is_older(partition.start, test, copy) and not (unit and unit.has_verdict):
        return None
    if unit is None and partition.start < test.covers_from:
        return None
    is_seen = partition.end <= copy.partitions_seen_at
    if (
        unit is None
        and is_seen
        and copy.production_calendar is not None
        and not copy.production_calendar.expects(partition)
    ):
        return Verdict.PASS
    return unit.verdict if unit else Verdict.UNKNOWN


def _of_freshness(
    test: FreshnessTest, partition: Interval, asked: Interval, copy: CopyState, now: datetime
) -> Iterator[Verdict]:
    if copy.grain is Grain.DAY:
        if copy.monitored_from is None or partition.end <= copy.monitored_from:
            yield Verdict.UNKNOWN
        if now < partition.end + test.due_after and not (test.unit and test.unit.is_failing):
            yield Verdict.UNKNOWN
            return
    part = partition.clip(asked)
    if part is not None and test.complete_to is not None and part.end <= test.complete_to:
        yield Verdict.PASS
    else:
        yield test.unit.verdict if test.unit else Verdict.UNKNOWN


@given(ranges, copies, nows)
def test_the_verdict_is_the_worst_over_the_tests_and_partitions(
    asked: Interval, copy: CopyState, now: datetime
) -> None:
    assert evaluate(asked, copy, POLICY, now=now).verdict is by_the_book(asked, copy, now)


@given(ranges, st.sets(st.integers(0, DAYS - 1)), st.sets(st.integers(0, DAYS - 1)), whole_days)
def test_a_test_that_was_added_later_speaks_of_what_it_judged_and_what_is_younger(
    asked: Interval, judged: set[int], waiting: set[int], added: int
) -> None:
    now = at(DAYS + 3)
    unjudged = [
        UnitState(between(day, day + 1), Verdict.UNKNOWN, "never_passed", has_verdict=False) for day in waiting - judged
    ]
    new = PartitionTest("new", "others", timedelta(), (*map(passing, judged), *unjudged), added_at=at(added))
    copy = CopyState(Grain.DAY, ZONE, at(0), (new,))
    assert evaluate(asked, copy, POLICY, now=now).verdict is by_the_book(asked, copy, now)
    beside = replace(copy, tests=(new, FreshnessTest("f", timedelta(), None, now)))
    assert evaluate(asked, beside, POLICY, now=now).verdict is by_the_book(asked, beside, now)


@given(ranges, st.integers(0, 30), st.integers(0, 30), copies, nows)
def test_a_wider_range_never_gets_a_better_verdict(
    asked: Interval, before: int, after: int, copy: CopyState, now: datetime
) -> None:
    wider = Interval(asked.start - before * HOUR, asked.end + after * HOUR)
    narrow, wide = (evaluate(question, copy, POLICY, now=now) for question in (asked, wider))
    assert worst_verdict([narrow.verdict, wide.verdict]) is wide.verdict
    assert narrow.allowed or not wide.allowed


@given(ranges, st.integers(1, 39), copies, nows)
def test_the_verdict_of_a_union_is_the_worst_of_its_parts(
    asked: Interval, hours: int, copy: CopyState, now: datetime
) -> None:
    middle = asked.start + hours * HOUR
    if middle >= asked.end:
        return
    parts = (Interval(asked.start, middle), Interval(middle, asked.end))
    answers = [evaluate(part, copy, POLICY, now=now) for part in parts]
    whole = evaluate(asked, copy, POLICY, now=now)
    assert whole.verdict is worst_verdict(answer.verdict for answer in answers)
    assert whole.allowed == all(answer.allowed for answer in answers)


@given(ranges, copies, nows)
def test_it_says_when_to_ask_again_exactly_where_it_blocks(asked: Interval, copy: CopyState, now: datetime) -> None:
    answer = evaluate(asked, copy, POLICY, now=now)
    wait = answer.retry_after(now=now)
    assert (wait is None) == answer.allowed
    assert wait is None or wait >= timedelta(seconds=1)


# The answers of a day: tests are due six hours after midnight; it is noon of day 5


NOON = at(5.5)
SIX_HOURS = timedelta(hours=6)


def passing(day: int) -> UnitState:
    return UnitState(between(day, day + 1), Verdict.PASS, "passing")


def failing(day: int, next_run: datetime | None = None, eta: datetime | None = None) -> UnitState:
    data = between(day, day + 1)
    return UnitState(data, Verdict.FAIL, "sustained", is_failing=True, next_run_at=next_run, incident=214, eta=eta)


def copy_with(*units: UnitState) -> CopyState:
    test = PartitionTest("rows", "consistency", SIX_HOURS, units)
    return CopyState(Grain.DAY, ZONE, monitored_from=at(1), tests=(test,))


def asked_for(copy: CopyState, start: float, end: float, policy: Policy = POLICY) -> GateDecision:
    return evaluate(between(start, end), copy, policy, now=NOON)


def reasons(answer: GateDecision) -> list[tuple[str, str]]:
    return [(cause.verdict.value, cause.reason) for cause in answer.causes]


FLIGHTS = copy_with(passing(1), passing(2), failing(3), passing(4))


def test_a_bad_day_fails_and_the_day_before_passes() -> None:
    assert reasons(asked_for(FLIGHTS, 3, 4)) == [("fail", "sustained")]
    assert asked_for(FLIGHTS, 3, 4).causes[0].incident == 214
    assert reasons(asked_for(FLIGHTS, 2, 3)) == [("pass", "passing")]


def test_tomorrow_is_not_due_and_says_from_when_on_it_is() -> None:
    answer = asked_for(FLIGHTS, 6, 7)
    assert reasons(answer) == [("unknown", "not_due")]
    assert answer.retry_after(now=NOON) == at(7) + SIX_HOURS - NOON


def test_what_was_before_monitoring_is_unmonitored() -> None:
    assert reasons(asked_for(FLIGHTS, 0, 1)) == [("unknown", "unmonitored")]
    never = asked_for(replace(FLIGHTS, monitored_from=None), 3, 9)
    assert [(cause.reason, cause.ranges) for cause in never.causes] == [("unmonitored", (between(3, 9),))]


def test_what_a_test_saw_before_monitoring_began_does_not_count() -> None:
    assert reasons(asked_for(copy_with(failing(0), failing(1)), 0, 1)) == [("unknown", "unmonitored")]
    assert reasons(asked_for(copy_with(failing(0), failing(1)), 1, 2)) == [("fail", "sustained")]


def test_a_day_that_passed_before_it_is_due_is_not_due() -> None:
    assert reasons(asked_for(copy_with(passing(4), passing(5)), 5, 6)) == [("unknown", "not_due")]
    assert reasons(evaluate(between(4, 5), copy_with(passing(4)), POLICY, now=at(5) + SIX_HOURS)) == [
        ("pass", "passing")
    ]


def test_a_day_that_is_due_and_was_never_tested_is_unknown() -> None:
    answer = asked_for(copy_with(passing(1), passing(4)), 1, 5)
    assert [(cause.reason, cause.ranges) for cause in answer.causes] == [
        ("never_tested", (between(2, 4),)),
        ("passing", (between(1, 2), between(4, 5))),
    ]
    assert answer.retry_at == NOON + DEFAULT_RETRY_AFTER


def test_a_test_that_looks_back_says_nothing_of_the_days_before_it_can() -> None:
    week = PartitionTest("volume", "others", SIX_HOURS, (passing(4),), covers_from=at(4))
    alone = replace(FLIGHTS, tests=(week,))
    assert reasons(asked_for(replace(FLIGHTS, tests=(*FLIGHTS.tests, week)), 1, 3)) == [("pass", "passing")]
    assert reasons(asked_for(alone, 2, 3)) == [("unknown", "no_tests")]
    assert reasons(asked_for(alone, 2, 5)) == [("unknown", "no_tests"), ("pass", "passing")]


def test_a_test_that_was_added_later_gates_what_it_judged_and_what_is_younger() -> None:
    waiting = UnitState(between(3, 4), Verdict.UNKNOWN, "never_passed", has_verdict=False)
    old = PartitionTest("old", "consistency", SIX_HOURS, tuple(map(passing, range(1, 5))))
    new = PartitionTest("new", "others", SIX_HOURS, (failing(2), waiting), added_at=at(4.5))
    copy = replace(FLIGHTS, tests=(old, new))
    assert [asked_for(copy, day, day + 1).verdict.value for day in range(1, 5)] == ["pass", "fail", "pass", "unknown"]
    alone = asked_for(replace(FLIGHTS, tests=(new,)), 1, 4)
    assert reasons(alone) == [("fail", "sustained"), ("unknown", "no_tests")]
    assert alone.causes[1].ranges == (between(1, 2), between(3, 4))
    assert asked_for(replace(FLIGHTS, tests=(WholeTest("new", "others", None, is_added=True), old)), 1, 2).allowed


def test_a_day_that_is_not_produced_is_no_gap_unless_something_is_written_there() -> None:
    """1 November 2026 is a Sunday."""
    workdays = replace(
        copy_with(passing(1), passing(2)),
        monitored_from=at(0),
        production_calendar=parse_calendar("0 6 * * mon-fri", "", ZONE),
    )
    assert reasons(asked_for(workdays, 0, 2)) == [("pass", "not_expected"), ("pass", "passing")]
    assert reasons(asked_for(workdays, 3, 4)) == [("unknown", "never_tested")]
    assert reasons(evaluate(between(6, 7), workdays, POLICY, now=at(7) + HOUR)) == [("unknown", "not_due")]
    written = replace(workdays, tests=(replace(workdays.tests[0], units=(failing(0),)),))  # type: ignore[arg-type]  # a PartitionTest
    assert reasons(asked_for(written, 0, 1)) == [("fail", "sustained")]


def test_a_day_that_fails_before_it_is_due_fails() -> None:
    assert reasons(asked_for(copy_with(failing(5)), 5, 6)) == [("fail", "sustained")]


def test_a_dataset_without_gating_tests_is_unknown() -> None:
    assert reasons(asked_for(CopyState(Grain.DAY, ZONE, at(1)), 2, 3)) == [("unknown", "no_tests")]


def test_a_table_without_partitions_is_as_good_as_its_last_test() -> None:
    unit = UnitState(EVERYTHING, Verdict.PASS, "passing")
    copy = CopyState(
        Grain.NONE, ZONE, at(5), (WholeTest("duplicates", "duplicates", unit), FreshnessTest("fresh", HOUR, unit))
    )
    assert asked_for(copy, 0, 9).verdict is Verdict.PASS


def test_stale_data_fails_only_from_its_boundary_on() -> None:
    stale = FreshnessTest("fresh", SIX_HOURS, failing(0)._replace(data=EVERYTHING), complete_to=at(4))
    copy = CopyState(Grain.DAY, ZONE, at(1), (stale,))
    assert asked_for(copy, 3, 4).verdict is Verdict.PASS
    assert asked_for(copy, 3, 4.1).verdict is Verdict.FAIL
    assert asked_for(copy, 7, 8).verdict is Verdict.FAIL


def test_a_finding_counts_where_it_is_and_nowhere_else() -> None:
    copy = replace(FLIGHTS, tests=(*FLIGHTS.tests, FindingTest("lost rows", "ingestion", (failing(2),))))
    assert asked_for(copy, 2, 3).verdict is Verdict.FAIL
    assert asked_for(copy, 4, 5).verdict is Verdict.PASS
    only = replace(copy, tests=copy.tests[1:])
    assert reasons(asked_for(only, 4, 5)) == [("unknown", "no_tests")]


def test_a_report_warns_until_it_is_acknowledged() -> None:
    report = ReportFacts(9, between(2, 3), acknowledged=False)
    assert asked_for(replace(FLIGHTS, reports=(report,)), 2, 3).verdict is Verdict.WARN
    assert asked_for(replace(FLIGHTS, reports=(replace(report, acknowledged=True),)), 2, 3).verdict is Verdict.FAIL
    assert asked_for(replace(FLIGHTS, reports=(report,)), 4, 5).verdict is Verdict.PASS


def test_grace_is_a_reason_and_does_not_block_unless_it_is_named() -> None:
    copy = replace(FLIGHTS, grace_until=at(9))
    answer = asked_for(copy, 3, 4)
    assert (reasons(answer), answer.allowed) == ([("fail", "in_grace")], True)
    assert not asked_for(copy, 3, 4, Policy("strict", frozenset({"fail:in_grace"}))).allowed


def test_a_policy_decides_by_verdict_or_by_reason() -> None:
    assert not asked_for(FLIGHTS, 6, 7).allowed
    lenient = Policy("lenient", frozenset({"fail", "unknown:unmonitored"}))
    assert asked_for(FLIGHTS, 6, 7, lenient).allowed
    assert not asked_for(FLIGHTS, 0, 1, lenient).allowed


def test_it_asks_again_at_the_earliest_of_recovery_and_rerun() -> None:
    rerun, recovery = NOON + HOUR, NOON + 2 * HOUR
    assert asked_for(copy_with(failing(3, rerun, recovery)), 3, 4).retry_at == rerun
    assert asked_for(copy_with(failing(3, None, recovery)), 3, 4).retry_at == recovery


def test_a_rerun_or_recovery_of_the_past_says_nothing() -> None:
    for rerun, recovery in ((NOON - HOUR, None), (None, NOON - HOUR), (NOON, NOON)):
        assert asked_for(copy_with(failing(3, rerun, recovery)), 3, 4).retry_at == NOON + DEFAULT_RETRY_AFTER
    assert asked_for(copy_with(failing(3, NOON - HOUR, NOON + HOUR)), 3, 4).retry_at == NOON + HOUR


def test_it_is_asked_again_after_a_second_at_the_earliest() -> None:
    soon = NOON + timedelta(milliseconds=1)
    assert asked_for(copy_with(failing(3, soon)), 3, 4).retry_after(now=NOON) == timedelta(seconds=1)


def test_a_range_without_end_is_answered_without_counting_its_partitions() -> None:
    answer = evaluate(EVERYTHING, FLIGHTS, POLICY, now=NOON)
    assert reasons(answer) == [
        ("fail", "sustained"),
        ("unknown", "unmonitored"),
        ("unknown", "not_due"),
        ("pass", "passing"),
    ]
