"""The book, third part: what the gate must answer, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from tests.web.incidents.quarter.model_incidents import ModelIncident, ModelReport
from tests.web.incidents.quarter.model_units import ModelUnit
from tests.web.incidents.quarter.results import Reply
from tests.web.incidents.quarter.scenario import EVER, MINUTE, Act, DatasetPlan, Key, Range, TestPlan, meet

WORST_FIRST = ("fail", "unknown", "warn", "pass")
BLOCKING = ("fail", "unknown")
NOTHING_KNOWN = 5 * MINUTE


class ExpectedCause(NamedTuple):
    """One test says this of one partition; it may change at `change`."""

    verdict: str
    change: datetime | None = None
    case: ModelIncident | None = None
    eta: datetime | None = None
    excused: bool = False
    """In grace: it does not block."""


class ExpectedAnswer(NamedTuple):
    at: datetime
    dataset: str
    verdict: str
    allowed: bool
    cases: list[ModelIncident]
    retry_at: datetime | None

    def reply(self) -> Reply:
        names = {case.name for case in self.cases}
        return Reply(self.at, self.dataset, self.verdict, self.allowed, tuple(sorted(names)), self.retry_at)


def answer(
    plan: DatasetPlan, act: Act, units: Mapping[Key, ModelUnit], cases: list[ModelIncident], now: datetime
) -> ExpectedAnswer:
    causes = list(all_said(plan, act.details["center"], act.details["data"], units, cases, now))
    grace = now < plan.begins + plan.grace
    causes = [excuse(cause, plan) if grace and cause.verdict in ("fail", "warn") else cause for cause in causes]
    blockers = [cause for cause in causes if cause.verdict in BLOCKING and not cause.excused]
    worst = min((cause.verdict for cause in causes), key=WORST_FIRST.index)
    named = [cause.case for cause in causes if cause.case is not None]
    changes = [at for cause in blockers for at in (cause.change, cause.eta) if at and at > now]
    retry = min(changes, default=now + NOTHING_KNOWN) if blockers else None
    return ExpectedAnswer(now, plan.name, worst, not blockers, named, retry)


def excuse(cause: ExpectedCause, plan: DatasetPlan) -> ExpectedCause:
    return cause if isinstance(cause.case, ModelReport) else cause._replace(excused=True)


def all_said(
    plan: DatasetPlan,
    center: str,
    asked: Range,
    units: Mapping[Key, ModelUnit],
    cases: list[ModelIncident],
    now: datetime,
) -> Iterator[ExpectedCause]:
    tests = [test for test in plan.tests if center in plan.centers_of(test)]
    for test in tests:
        yield from of_test(plan, test, center, asked, units, cases, now)
    for unit in units.values():
        is_finding = unit.key[0] == plan.name and unit.key.center == center and unit.test.category == "ingestion"
        if is_finding and meet((unit.key.start, unit.key.end), asked):
            yield of_unit(unit, cases, now)
    for case in cases:
        if isinstance(case, ModelReport) and case.name.dataset == plan.name and meet(case.data, asked):
            yield from of_report(case, center)


def of_report(reported: ModelReport, center: str) -> Iterator[ExpectedCause]:
    if reported.center in (None, center) and reported.state in ("reported", "waiting", "acknowledged"):
        yield ExpectedCause("fail" if reported.state == "acknowledged" else "warn", None, reported, reported.eta)


def of_test(
    plan: DatasetPlan,
    test: TestPlan,
    center: str,
    asked: Range,
    units: Mapping[Key, ModelUnit],
    cases: list[ModelIncident],
    now: datetime,
) -> Iterator[ExpectedCause]:
    whole = units.get(Key(plan.name, test.key, center, *EVER))
    if test.whole and test.key != "freshness":
        yield of_unit(whole, cases, now) if whole else ExpectedCause("unknown")
        return
    first_waiting = True
    for start, end in plan.partitions(*asked):
        unit = units.get(Key(plan.name, test.key, center, start, end))
        due = end + plan.promise.due_after
        if test.key == "freshness":
            late = whole is not None and streak(whole)
            fresh = whole is not None and whole.boundary is not None and max(start, asked[0]) < whole.boundary
            if fresh:
                yield ExpectedCause("pass")
            beyond = whole is None or whole.boundary is None or min(end, asked[1]) > whole.boundary
        if end <= plan.monitored_from:
            yield ExpectedCause("unknown")
            if test.key == "freshness" and late and beyond:  # [c, infinity) counts wherever it begins
                yield of_unit(whole, cases, now)  # type: ignore[arg-type]
        elif test.key == "freshness":
            if late:
                if beyond:
                    yield of_unit(whole, cases, now)  # type: ignore[arg-type]
            elif now < due:
                yield ExpectedCause("unknown", due if first_waiting else None)
                first_waiting = False
            elif beyond:
                yield of_unit(whole, cases, now) if whole else ExpectedCause("unknown")
        elif unit is not None and streak(unit):
            yield of_unit(unit, cases, now)
        elif now < due:
            yield ExpectedCause("unknown", due if first_waiting else None)
            first_waiting = False
        else:
            yield of_unit(unit, cases, now) if unit else ExpectedCause("unknown")


def streak(unit: ModelUnit) -> bool:
    return unit.failing() and not unit.waiver


def of_unit(unit: ModelUnit, cases: list[ModelIncident], now: datetime) -> ExpectedCause:
    verdict = unit.verdict(now)
    held = next((case for case in cases if any(span.unit is unit for span in case.active())), None)
    return ExpectedCause(verdict, unit.due if verdict != "pass" else None, held, held.eta if held else None)
