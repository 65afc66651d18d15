"""The gate's answer as a page shows it: in words, in order, on a time line, with a narrower question that passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from frontend import svg, words
from frontend.states import STATES
from incidents.domain.gate import Cause
from incidents.domain.sql_reads import Reads
from incidents.gate import overrides
from incidents.gate import rate as gate_rate
from incidents.gate.answers import Question, Reply, answered, ask
from incidents.gate.sql import derive
from incidents.models import GateOverride, GatePolicy, GateQuestion
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import teams_where
from lakehub.catalog.instants import instant
from lakehub.catalog.models import Dataset
from lakehub.kernel.calendar import Grain, partition_at, partitions_within
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval, subtract
from quality.models import Category

LAST = 8
_MOST_TICKS = 32
_REASONS = {
    "unmonitored": "lies before Lakehub began to watch this copy",
    "not_due": "is not due yet",
    "never_tested": "was never tested",
    "not_expected": "is not produced, by its calendar, and nothing was written",
    "no_tests": "has no test that counts",
    "in_grace": "is in grace: measured, nobody is paged",
    "reported": "was reported as wrong, and its owner agreed",
    "report_waits": "was reported as wrong; its owner has not answered yet",
    "passing": "passes",
    "in_sustain": "fails, within the sustain period",
    "sustained": "fails",
    "not_rerun": "fails, and no rerun passed in time",
    "never_passed": "never passed yet",
    "error": "could not be checked: the last run ended in an error",
    "no_data": "could not be checked: no data was found",
    "stale": "was not checked for two cadences",
    "retest_overdue": "changed since its last check, and the retest is overdue",
    "false_positive": "was resolved as a false positive",
    "accepted": "is known to be wrong and was accepted as it is",
}
_SHADES = {"fail": "fail", "warn": "warn", "unknown": "unknown"}


@dataclass(frozen=True)
class Reason:
    state: str
    ranges: str
    said: str
    test: str
    category: str
    incident: int | None
    eta: datetime | None
    changes_at: datetime | None


@dataclass(frozen=True)
class ShownOverride:
    ranges: str
    by: str
    reason: str
    consumer: str
    expires_at: datetime


@dataclass(frozen=True)
class Shown:
    """One copy's answer."""

    reply: Reply
    reasons: list[Reason]
    drawings: list[svg.Lanes]
    narrower: Interval | None
    """The longest part of the question that would be allowed."""
    overrides: tuple[ShownOverride, ...] = ()
    address: str = ""
    """Where the narrower question is asked."""
    may_override: bool = False
    found: Reads | None = None
    """How a query led to the question."""

    @property
    def state(self) -> str:
        return self.reply.answer.verdict.value

    @property
    def word(self) -> str:
        return STATES[self.state].word

    @property
    def data_center(self) -> str:
        return self.reply.copy.data_center.name

    @property
    def blocks(self) -> list[str]:
        return sorted(self.reply.policy.blocks)

    @property
    def wait(self) -> timedelta | None:
        return self.reply.answer.retry_after(now=self.reply.at)

    @property
    def wanted(self) -> str:
        return _range(self.reply.question.wanted, self.reply.copy.dataset)

    @property
    def narrower_range(self) -> str:
        return _range(self.narrower, self.reply.copy.dataset) if self.narrower else ""


def answers(
    dataset: Dataset, wanted: Interval, data_centers: Sequence[str], consumer: str, *, now: datetime
) -> list[Shown]:
    """The answer for each data center named. It is not kept: looking is no question of a job."""
    replies = [ask(Question(dataset.name, wanted, consumer, name), now=now, record=False) for name in data_centers]
    return [_shown(reply) for reply in replies]


def answers_to(said: Mapping[str, str], person: User, *, now: datetime) -> list[Shown]:
    """The answers about all that a query reads. It is not kept either. Raises TooOften, Refused, NotFound."""
    gate_rate.charge(person, 1, now=now)
    gate_rate.charge_reading(person, said["sql"], now=now)
    derived = derive(
        said["sql"], dialect=said["dialect"], consumer=person.get_username(), now=now, data_center=said["dc"]
    )
    gate_rate.charge(person, len(derived.asked) - 1, now=now)
    found = {one.dataset: one for one in derived.reads}
    replies = answered(derived.asked, now=now)
    return [replace(_shown(reply), found=found[reply.copy.dataset.name]) for reply in replies]


def _shown(reply: Reply) -> Shown:
    dataset = reply.copy.dataset
    reasons = [_reason(cause, dataset) for cause in reply.answer.causes]
    blocked = [piece for cause in reply.answer.blockers for piece in cause.ranges]
    free = subtract([reply.question.wanted], blocked) if blocked else ()
    longest = max(free, key=lambda piece: piece.length, default=None)
    overrides = tuple(
        ShownOverride(_range(one.data, dataset), one.by, one.reason, one.consumer, one.expires_at)
        for one in reply.answer.overrides
    )
    return Shown(reply, reasons, _drawings(reply), longest, overrides)


def _reason(cause: Cause, dataset: Dataset) -> Reason:
    ranges = ", ".join(_range(piece, dataset) for piece in cause.ranges)
    category = Category(cause.category).label.capitalize() if cause.category in Category.values else cause.category
    state = "grace" if cause.reason == "in_grace" else cause.verdict.value
    said = _REASONS.get(cause.reason, cause.reason.replace("_", " "))
    return Reason(state, ranges, said, cause.test, category, cause.incident, cause.eta, cause.changes_at)


def _range(span: Interval, dataset: Dataset) -> str:
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is not Grain.NONE and not span.is_everything and partition_at(span.start, grain, zone) == span:
        return words.partition(span, grain, zone)
    return words.data_range(span, grain, zone)


def _drawings(reply: Reply) -> list[svg.Lanes]:
    """The question and what is wrong on one time line, once narrow and once wide; only where partitions can be told apart."""
    dataset, wanted = reply.copy.dataset, reply.question.wanted
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE or wanted.length > grain.width * _MOST_TICKS:
        return []
    window = Interval(wanted.start - grain.width, wanted.end + grain.width)
    ticks = [(one.start, words.partition(one, grain, zone)) for one in partitions_within(window, grain, zone)]
    bars = [svg.Bar(wanted, "running", "Your question")]
    for cause in reply.answer.causes:
        label = (
            f"#{cause.incident} {cause.category}" if cause.incident else cause.test or cause.reason.replace("_", " ")
        )
        bars += [
            svg.Bar(piece, _SHADES[cause.verdict.value], label)
            for piece in cause.ranges
            if cause.verdict.value in _SHADES
        ]
    return [svg.lanes(window, ticks, bars[:8], width, name) for name, width in (("s", 320), ("m", 640))]


def parsed_range(start: str, end: str, dataset: Dataset, *, now: datetime) -> Interval:
    """What was typed: days (in the dataset's zone) or instants with an offset. An empty end: the day of the start.

    Raises Refused by field.
    """
    problems: dict[str, str] = {}
    days = partial(partition_at, grain=Grain.DAY, tz=dataset.zone)
    first = _instant("from", start, dataset.zone, problems) if start else days(now).start
    last = _instant("to", end, dataset.zone, problems) if end else None
    if problems or first is None:
        raise Refused.because(problems)
    try:
        return Interval(first, last or days(first).end)
    except ValueError as problem:
        raise Refused.because({"to": str(problem)}) from None


def _instant(name: str, text: str, zone: ZoneInfo, problems: dict[str, str]) -> datetime | None:
    try:
        return instant(text, name=name, zone=zone)
    except Refused as refused:
        problems |= refused.fields
        return None


def last_questions() -> list[GateQuestion]:
    """What jobs and tools asked last."""
    return list(GateQuestion.objects.select_related("copy__dataset", "copy__data_center").order_by("-at")[:LAST])


def policies() -> list[GatePolicy]:
    found = list(GatePolicy.objects.order_by("consumer", "tier")[:50])
    for one in found:
        one.blocking = sorted(one.words)  # type: ignore[attr-defined]  # for the template
    return found


def overrides_in_force(person: User, *, now: datetime) -> list[GateOverride]:
    """The newest, with whether the person may end each."""
    found = list(overrides.listed(now=now)[:LAST])
    mine = set(Team.objects.filter(teams_where(person, "override")).values_list("pk", flat=True)) if found else set()
    for one in found:
        one.may_end = one.dataset.team_id in mine  # type: ignore[attr-defined]  # for the template
    return found
