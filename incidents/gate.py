"""The query gate on the rows that there are: may this consumer read this copy over this range now?

Seven queries, whatever the size of the dataset. Verdicts are judged from the facts at the moment of the question, so a
change of state, also one that only time made, shows in the next answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import uuid4

from django.db.models import Q

from incidents.domain import gate
from incidents.domain.gate import Answer, CopyState, GatingTest, Policy, Report, UnitState
from incidents.models import GatePolicy, GateQuestion, Incident, Span, State, UserReport
from ingestion.ports import InputAnswer
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.calendar import Grain
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.suggest import did_you_mean
from quality.described import produced
from quality.domain.definitions import runs_in
from quality.domain.expression import parse
from quality.domain.production import Production
from quality.domain.tiers import BadOverride
from quality.facts import FIELDS, facts_of, judge_now
from quality.models import Category, Test, Unit, Watch
from quality.units import first_tested


@dataclass(frozen=True)
class Question:
    """Who asks what. `data_center` empty: the only copy that there is. A question of one request is counted once."""

    dataset: str
    wanted: Interval
    consumer: str
    data_center: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class Reply:
    """The answer, with what it was about."""

    question: Question
    copy: DatasetCopy
    answer: Answer
    policy: Policy
    at: datetime


def ask(question: Question, *, now: datetime, record: bool = True, copy: DatasetCopy | None = None) -> Reply:
    """Answers and, unless told otherwise, keeps the question for the query-level score. Raises NotFound, Refused.

    `copy` saves looking it up again.
    """
    copy = copy or find_copy(question.dataset, question.data_center)
    policy = policy_of(question.consumer, copy.dataset.tier)
    answer = gate.ask(question.wanted, state_of(copy, question.wanted, now=now), policy, now=now)
    reply = Reply(question, copy, answer, policy, now)
    if record:
        _record(reply)
    return reply


def input_gate(*, dataset: str, data_center: str, wanted: Interval, consumer: str, now: datetime) -> InputAnswer:
    """The port by which jobs ask about their inputs. Raises NotFound, Refused."""
    reply = ask(Question(dataset, wanted, consumer, data_center), now=now)
    answer = reply.answer
    if answer.allowed:
        return InputAnswer(True, answer.verdict.value)
    reasons = ", ".join(dict.fromkeys(f"{cause.verdict}: {cause.reason}" for cause in answer.blockers))
    return InputAnswer(
        False, f"{dataset} in {reply.copy.data_center} over the range wanted is {reasons}", answer.retry_at
    )


def find_copy(dataset: str, data_center: str = "") -> DatasetCopy:
    """The copy that is asked about. Raises NotFound with the nearest name, Refused where a data center must be said."""
    copies = DatasetCopy.objects.select_related("dataset__team", "data_center", "watch")
    found = list(copies.filter(dataset__name=dataset, dataset__offboarded_at=None))
    if not found:
        known = Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)
        raise NotFound(f"There is no dataset `{dataset}`.{did_you_mean(dataset, known[:1000])}")
    names = [copy.data_center.name for copy in found]
    if not data_center and len(found) > 1:
        raise Refused.because(
            {"dc": f"`{dataset}` has copies in {', '.join(names)}: say which one, as in `dc={names[0]}`."}
        )
    for copy in found:
        if data_center in ("", copy.data_center.name):
            return copy
    raise NotFound(f"`{dataset}` has no copy in `{data_center}`.{did_you_mean(data_center, names)}")


def policy_of(consumer: str, tier: int) -> Policy:
    """The consumer's policy for the tier; where there is none, fail and unknown block."""
    row = GatePolicy.objects.filter(consumer=consumer, tier=tier).first()
    return Policy() if row is None else Policy(f"{consumer}, tier {tier}", frozenset(row.blocks))


# What is known of the copy


def state_of(copy: DatasetCopy, wanted: Interval, *, now: datetime) -> CopyState:
    """The gating tests of the copy with the units that meet `wanted`, and the reports about it."""
    dataset = copy.dataset
    tests = {test.pk: test for test in _gating_tests(copy)}
    units = _units_of(copy, tests, wanted, now)
    return CopyState(
        grain=dataset.partition_grain,
        zone=dataset.zone,
        monitored_from=copy.monitored_from,
        tests=tuple(_gating(test, copy, units[test.pk]) for test in tests.values()),
        reports=tuple(_reports(copy, wanted)),
        grace_until=dataset.grace_until,
        produced=_produced(dataset),
        looked_at=_looked_at(copy),
    )


def _produced(dataset: Dataset) -> Production | None:
    """A calendar that cannot be read excuses nothing."""
    try:
        return produced(dataset)
    except BadOverride:
        return None


def _looked_at(copy: DatasetCopy) -> datetime:
    """What is ingested says itself what it writes; what is only watched is not known before the first look."""
    if copy.dataset.ingested:
        return FOREVER
    watch: Watch | None = getattr(copy, "watch", None)
    return BEGINNING if watch is None or watch.looked_at is None else watch.looked_at


def _gating_tests(copy: DatasetCopy) -> Iterator[Test]:
    live = Test.objects.filter(dataset=copy.dataset, gating=True, retired_at=None, version__isnull=False)
    for test in live.select_related("version", "dataset").order_by("pk"):
        if test.version is not None and _concerns(test.version.flattened, copy.data_center.name):
            yield test


@lru_cache(maxsize=4096)
def _concerns(flattened: str, data_center: str) -> bool:
    """A comparison with a data center says nothing about that one's own copy."""
    return runs_in(parse(flattened), data_center)


def _units_of(
    copy: DatasetCopy, tests: Mapping[int, Test], wanted: Interval, now: datetime
) -> Mapping[int, list[_Judged]]:
    active = Span.objects.filter(copy=copy, ended_at=None, unit__test__in=tests)
    incidents = {unit: (number, eta) for unit, number, eta in active.values_list("unit", "incident", "incident__eta")}
    units: defaultdict[int, list[_Judged]] = defaultdict(list)
    meeting = Unit.objects.filter(copy=copy, test__in=tests, start__lt=wanted.end, end__gt=wanted.start)
    for unit in meeting.only("test_id", "start", "end", "affected_from", "due_at", *FIELDS).order_by("start"):
        unit.test = tests[unit.test_id]
        units[unit.test_id].append(_judged(unit, *incidents.get(unit.pk, (None, None)), now=now))
    return units


@dataclass(frozen=True)
class _Judged:
    state: UnitState
    complete_to: datetime | None


def _judged(unit: Unit, incident: int | None, eta: datetime | None, *, now: datetime) -> _Judged:
    judged, facts = judge_now(unit, now=now), facts_of(unit)
    state = UnitState(
        data=Interval(unit.start, unit.end),
        verdict=judged.verdict,
        reason=judged.reason.value,
        streak=facts.is_failing and facts.waiver is None,
        next_run_at=unit.due_at if judged.verdict is not Verdict.PASS else None,
        incident=incident,
        eta=eta,
    )
    return _Judged(state, unit.affected_from)


def _gating(test: Test, copy: DatasetCopy, units: list[_Judged]) -> GatingTest:
    version, label = test.version, test.title
    assert version is not None  # `_gating_tests` leaves out those without
    whole = next((unit for unit in units if unit.state.data == EVERYTHING), None)
    if test.category == Category.FRESHNESS:
        unit, complete_to = (whole.state, whole.complete_to) if whole else (None, None)
        return gate.FreshnessTest(label, version.due_after, unit, complete_to)
    states = tuple(unit.state for unit in units)
    if test.check_name == "finding":
        return gate.FindingTest(label, test.category, states)
    if version.cadence is not None or whole or test.dataset.partition_grain is Grain.NONE:
        return gate.WholeTest(label, test.category, whole.state if whole else None)
    since = first_tested(test, copy)
    since = since if since > (copy.monitored_from or BEGINNING) else BEGINNING
    return gate.PartitionTest(label, test.category, version.due_after, states, since)


def _reports(copy: DatasetCopy, wanted: Interval) -> Iterator[Report]:
    live = UserReport.objects.filter(
        Q(copy=copy) | Q(copy=None),
        incident__dataset=copy.dataset,
        incident__state__in=(State.REPORTED, State.WAITING, State.ACKNOWLEDGED),
        start__lt=wanted.end,
        end__gt=wanted.start,
    )
    for report in live.select_related("incident"):
        incident: Incident = report.incident
        acknowledged = incident.state == State.ACKNOWLEDGED
        yield Report(incident.pk, Interval(report.start, report.end), acknowledged, incident.eta)


def _record(reply: Reply) -> None:
    """Once for each request: the first answer stays."""
    question = reply.question
    row = GateQuestion(
        at=reply.at,
        consumer=question.consumer,
        request_id=question.request_id or uuid4().hex,
        copy=reply.copy,
        start=question.wanted.start,
        end=question.wanted.end,
        verdict=reply.answer.verdict,
        allowed=reply.answer.allowed,
    )
    GateQuestion.objects.bulk_create([row], ignore_conflicts=True)
