"""The gate's answer as a page shows it: in words, in order, on a time line, with a narrower question that passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from frontend.ui import svg, words
from frontend.ui.states import STATES
from incidents.domain.gate.causes import Cause
from incidents.domain.gate.sql_reads import TableReads
from incidents.gate import overrides
from incidents.gate import rate_limit as gate_rate
from incidents.gate.answer import CopyQuestion, GateReply, answer_questions, ask_gate
from incidents.gate.from_sql import questions_of_query
from incidents.models import GateOverride, GatePolicy, GateQuestion
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import teams_where
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval, subtract
from lakehub.kernel.partitions import Grain, partition_at, partitions_within
from quality.models import Category

MAX_RECENT = 8
_MOST_TICKS = 32
_REASON_TEXTS = {
    "unmonitored": "lies before Lakehub began to watch this copy",
    "not_due": "is not due yet",
    "never_tested": "was never tested",
    "not_expected": "is not produced, by its calendar, and nothing was written",
    "no_tests": "has no test that counts",
    "in_grace": "is in grace: measured, nobody is paged",
    "reported": "was reported as wrong, and its owner agreed",
    "report_waits": "was reported as wrong; its owner has not answered yet",
    "passing": "passes",
    "changed": "passed; it was changed since and is not tested again yet",
    "in_sustain": "fails, within the sustain period",
    "sustained": "fails",
    "not_rerun": "fails, and no rerun passed in time",
    "never_passed": "never passed yet",
    "error": "could not be checked: the last run ended in an error",
    "no_data": "could not be checked: no data was found",
    "stale": "was not checked for two cadences",
    "retest_overdue": "changed since its last check, and the retest is overdue",
    "period_too_long": "cannot be judged: the test's sustain period or cadence is longer than 366 days",
    "false_positive": "was resolved as a false positive",
    "accepted": "is known to be wrong and was accepted as it is",
}
_SHADES = {"fail": "fail", "warn": "warn", "unknown": "unknown"}


@dataclass(frozen=True)
class ReasonLine:
    state: str
    ranges: str
    text: str
    test: str
    category: str
    incident: int | None
    eta: datetime | None
    changes_at: datetime | None
    changed_at: datetime | None
    retest_due_at: datetime | None


@dataclass(frozen=True)
class OverrideLine:
    ranges: str
    by: str
    reason: str
    consumer: str
    expires_at: datetime


@dataclass(frozen=True)
class ShownAnswer:
    """One copy's answer."""

    reply: GateReply
    reasons: list[ReasonLine]
    drawings: list[svg.Lanes]
    allowed_range: Interval | None
    """The longest part of the question that would be allowed."""
    overrides: tuple[OverrideLine, ...] = ()
    address: str = ""
    """Where the narrower question is asked."""
    may_override: bool = False
    table_read: TableReads | None = None
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
    def range_text(self) -> str:
        return _range_text(self.reply.question.wanted, self.reply.copy.dataset)

    @property
    def allowed_range_text(self) -> str:
        return _range_text(self.allowed_range, self.reply.copy.dataset) if self.allowed_range else ""


def answers_by_data_center(
    dataset: Dataset, data_range: Interval, data_centers: Sequence[str], consumer: str, *, now: datetime
) -> list[ShownAnswer]:
    """The answer for each data center named. It is not kept: looking is no question of a job."""
    replies = [
        ask_gate(CopyQuestion(dataset.name, data_range, consumer, name), now=now, record=False) for name in data_centers
    ]
    return [_shown_answer(reply) for reply in replies]


def answers_to_sql(values: Mapping[str, str], person: User, *, now: datetime) -> list[ShownAnswer]:
    """The answers about all that a query reads. It is not kept either. Raises RateLimitExceeded, Refused, NotFound."""
    gate_rate.charge_questions(person, 1, now=now)
    gate_rate.charge_sql(person, values["sql"], now=now)
    derived = questions_of_query(
        values["sql"], dialect=values["dialect"], consumer=person.get_username(), now=now, data_center=values["dc"]
    )
    gate_rate.charge_questions(person, len(derived.asked) - 1, now=now)
    reads_by_dataset = {read.dataset: read for read in derived.reads}
    replies = answer_questions(derived.asked, now=now)
    return [replace(_shown_answer(reply), table_read=reads_by_dataset[reply.copy.dataset.name]) for reply in replies]


def _shown_answer(reply: GateReply) -> ShownAnswer:
    dataset = reply.copy.dataset
    reasons = [_reason_line(cause, dataset) for cause in reply.answer.causes]
    blocked = [piece for cause in reply.answer.blockers for piece in cause.ranges]
    free = subtract([reply.question.wanted], blocked) if blocked else ()
    longest = max(free, key=lambda piece: piece.length, default=None)
    overrides = tuple(
        OverrideLine(
            _range_text(override.data, dataset), override.by, override.reason, override.consumer, override.expires_at
        )
        for override in reply.answer.overrides
    )
    return ShownAnswer(reply, reasons, _timeline_drawings(reply), longest, overrides)


def _reason_line(cause: Cause, dataset: Dataset) -> ReasonLine:
    ranges = ", ".join(_range_text(piece, dataset) for piece in cause.ranges)
    category = Category(cause.category).label.capitalize() if cause.category in Category.values else cause.category
    state = "grace" if cause.reason == "in_grace" else cause.verdict.value
    reason_text = _REASON_TEXTS.get(cause.reason, cause.reason.replace("_", " "))
    return ReasonLine(
        state,
        ranges,
        reason_text,
        cause.test,
        category,
        cause.incident,
        cause.eta,
        cause.changes_at,
        cause.changed_at,
        cause.retest_due_at,
    )


def _range_text(span: Interval, dataset: Dataset) -> str:
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is not Grain.NONE and not span.is_everything and partition_at(span.start, grain, zone) == span:
        return words.partition(span, grain, zone)
    return words.data_range(span, grain, zone)


def _timeline_drawings(reply: GateReply) -> list[svg.Lanes]:
    """The question and what is wrong on one time line, once narrow and once wide; only where partitions can be told apart."""
    dataset, data_range = reply.copy.dataset, reply.question.wanted
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE or data_range.length > grain.width * _MOST_TICKS:
        return []
    window = Interval(data_range.start - grain.width, data_range.end + grain.width)
    ticks = [
        (partition.start, words.partition(partition, grain, zone))
        for partition in partitions_within(window, grain, zone)
    ]
    bars = [svg.Bar(data_range, "running", "Your question")]
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


def recent_questions() -> list[GateQuestion]:
    """What jobs and tools asked last."""
    return list(GateQuestion.objects.select_related("copy__dataset", "copy__data_center").order_by("-at")[:MAX_RECENT])


def listed_policies() -> list[GatePolicy]:
    policies = list(GatePolicy.objects.order_by("consumer", "tier")[:50])
    for policy in policies:
        policy.blocking = sorted(policy.blocking_verdicts)  # type: ignore[attr-defined]  # for the template
    return policies


def overrides_in_force(person: User, *, now: datetime) -> list[GateOverride]:
    """The newest, with whether the person may end each."""
    active_overrides = list(overrides.list_overrides(now=now)[:MAX_RECENT])
    team_ids = (
        set(Team.objects.filter(teams_where(person, "override")).values_list("pk", flat=True))
        if active_overrides
        else set()
    )
    for override in active_overrides:
        override.may_end = override.dataset.team_id in team_ids  # type: ignore[attr-defined]  # for the template
    return active_overrides
