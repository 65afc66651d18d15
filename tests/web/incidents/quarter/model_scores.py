"""The book, fourth part: precision, recall and shares, counted in single minutes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

from tests.web.incidents.quarter.model_incidents import ModelIncident, ModelReport
from tests.web.incidents.quarter.results import Score
from tests.web.incidents.quarter.scenario import DAY, MINUTE, START, Act, DatasetPlan, Scenario, meet

Minutes = set[int]


def windows(story: Scenario) -> list[tuple[datetime, datetime]]:
    """The quarter, its months side by side, a week, and some hours in the middle."""
    month = story.days // 3 * DAY
    cuts = [START + part * month for part in range(3)] + [story.end]
    middle = START + story.days // 2 * DAY
    months = [(start, end) for start, end in pairwise(cuts) if start < end]
    week = (middle, min(middle + 7 * DAY, story.end))
    return [(START, story.end), *months, week, (middle + 611 * MINUTE, middle + 2222 * MINUTE)]


def score(
    story: Scenario, cases: list[ModelIncident], asked: list[tuple[Act, datetime]], start: datetime, end: datetime
) -> Score:
    window = span(start, end)
    tp = fp = fn = wrong_in_all = monitored_in_all = 0
    shares = []
    for plan in sorted(story.fleet.values(), key=lambda plan: plan.name):
        wrong: Minutes = set()
        for category in {case.name.category for case in cases if case.name.dataset == plan.name}:
            mine = [case for case in cases if case.name[:2] == (plan.name, category)]
            true, false, missed = tally(mine, [case for case in cases if case.name.dataset == plan.name], story, plan)
            tp, fp, fn = tp + len(true & window), fp + len(false & window), fn + len(missed & window)
            wrong |= true | missed
        monitored = span(max(start, plan.monitored_from), end) - span(plan.begins, plan.begins + plan.grace)
        shares.append((plan.name, len(wrong & monitored) / len(monitored) if monitored else None))
        wrong_in_all, monitored_in_all = wrong_in_all + len(wrong & monitored), monitored_in_all + len(monitored)
    share = wrong_in_all / monitored_in_all if monitored_in_all else None
    counted, failed = questions(cases, asked, start, end)
    return Score(start, end, tp, fp, fn, share, counted, failed, tuple(shares))


def tally(
    mine: list[ModelIncident], all_of_dataset: list[ModelIncident], story: Scenario, plan: DatasetPlan
) -> tuple[Minutes, Minutes, Minutes]:
    """TP, FP and FN of one dataset and category, without the grace period."""
    true = lives((case for case in mine if is_true(case)), story.end)
    false = (
        lives((case for case in mine if case.how == "false_positive" and case.name.kind == "detected"), story.end)
        - true
    )
    missed: Minutes = set()
    for reported in mine:
        if isinstance(reported, ModelReport) and counts(reported):
            seen = (
                case
                for case in all_of_dataset
                if is_true(case) and any(meet(span_of_case.data, reported.data) for span_of_case in case.spans)
            )
            missed |= told_life(reported, story.end) - lives(seen, story.end)
    grace = span(plan.begins, plan.begins + plan.grace)
    return true - grace, false - grace, missed - grace


def questions(
    cases: list[ModelIncident], asked: list[tuple[Act, datetime]], start: datetime, end: datetime
) -> tuple[int, int]:
    """Each once a request, at the first time in the window that it was asked."""
    first: dict[tuple[object, ...], tuple[Act, datetime]] = {}
    for act, at in asked:
        if not start <= at < end:
            continue
        fields = act.details
        first.setdefault(
            (fields["consumer"], fields["request"], act.dataset, fields["center"], fields["data"]), (act, at)
        )
    counted = first.values()
    failed = sum(any(met(case, act, at) for case in cases if case.name.dataset == act.dataset) for act, at in counted)
    return len(counted), failed


def met(case: ModelIncident, act: Act, at: datetime) -> bool:
    if isinstance(case, ModelReport):
        alive = case.since <= at and (case.fixed_at is None or at < case.fixed_at)
        return (
            counts(case)
            and alive
            and case.center in (None, act.details["center"])
            and meet(case.data, act.details["data"])
        )
    return is_true(case) and any(
        span_of_case.alive(at)
        and span_of_case.unit.key.center == act.details["center"]
        and meet(span_of_case.data, act.details["data"])
        for span_of_case in case.spans
    )


def is_true(case: ModelIncident) -> bool:
    return not isinstance(case, ModelReport) and case.how != "false_positive"


def counts(reported: ModelReport) -> bool:
    """A report that the producer acknowledged."""
    return reported.acknowledged and reported.how != "rejected"


def lives(cases: Iterable[ModelIncident], now: datetime) -> Minutes:
    return {
        minute
        for case in cases
        for span_of_case in case.spans
        for minute in span(span_of_case.began_at, span_of_case.ended_at or now)
    }


def told_life(reported: ModelReport, now: datetime) -> Minutes:
    return span(reported.since, reported.fixed_at or now)


def span(start: datetime, end: datetime) -> Minutes:
    """The minutes of [start, end), numbered."""
    return set(range((start - START) // MINUTE, (end - START) // MINUTE))
