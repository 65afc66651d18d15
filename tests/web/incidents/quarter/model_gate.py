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
    said = list(all_said(plan, act.said["center"], act.said["data"], units, cases, now))
    grace = now < plan.begins + plan.grace
    said = [excuse(one, plan) if grace and one.verdict in ("fail", "warn") else one for one in said]
    blockers = [one for one in said if one.verdict in BLOCKING and not one.excused]
    worst = min((one.verdict for one in said), key=WORST_FIRST.index)
    named = [one.case for one in said if one.case is not None]
    changes = [at for one in blockers for at in (one.change, one.eta if one.eta and one.eta > now else None) if at]
    retry = min(changes, default=now + NOTHING_KNOWN) if blockers else None
    return ExpectedAnswer(now, plan.name, worst, not blockers, named, retry)


def excuse(one: ExpectedCause, plan: DatasetPlan) -> ExpectedCause:
    return one if isinstance(one.case, ModelReport) else one._replace(excused=True)


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
    for told in cases:
        if isinstance(told, ModelReport) and told.name.dataset == plan.name and meet(told.data, asked):
            yield from of_report(told, center)


def of_report(told: ModelReport, center: str) -> Iterator[ExpectedCause]:
    if told.center in (None, center) and told.state in ("reported", "waiting", "acknowledged"):
        yield ExpectedCause("fail" if told.state == "acknowledged" else "warn", None, told, told.eta)


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
