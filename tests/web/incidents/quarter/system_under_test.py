"""The real code under a story: rows, results, flips, incidents, messages, the gate; only what a scan finds is made up.

It wakes up on the whole minutes on which something is due by its own tables, and once an hour; the clock is the story's.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.db.models import Min

from incidents.domain.alerting.suppression import MAX_RERUN_WAIT
from incidents.gate import answer as gate
from incidents.lifecycle import actions, merge_split, resolution, user_reports
from incidents.lifecycle.intake import process_flips, update_stale_ranges
from incidents.models import Incident, IncidentState, Message, MessageState
from incidents.notifications.recipients import OPENING_OCCASIONS
from incidents.notifications.sender import send_due_messages
from ingestion.models import Finding, TouchedPartition
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel import error_isolation
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, partitions_within
from quality.domain.evaluation.evaluate import Evaluation
from quality.domain.generation.definitions import runs_in
from quality.domain.language import flattened, parse
from quality.execution import ingestion_findings, store, worker
from quality.execution.evaluate import Execution
from quality.models import Category, Lane, QualityTest, Unit
from quality.planning import retired_units, touched_partitions, units
from quality.state import reevaluation, waivers
from tests import factories
from tests.web.incidents.quarter.scenario import (
    FRESHNESS,
    MINUTE,
    START,
    Act,
    DatasetPlan,
    Key,
    Scenario,
    TestPlan,
    whole_minute,
)

OWNERS = "owners@example.org"
EXPRESSIONS = {
    "freshness": "freshness(this) < 1h",
    "row_count@dc1": "min(rows(this), rows(this@dc1)) / rows(this@dc1) > 99.9%",
}


class Answered(NamedTuple):
    """What the gate said to one question, with the numbers of incidents."""

    at: datetime
    dataset: str
    verdict: str
    allowed: bool
    incidents: frozenset[int]
    retry_at: datetime | None


@dataclass
class SystemUnderTest:
    story: Scenario
    patch: pytest.MonkeyPatch
    now: datetime = START
    order: defaultdict[datetime, list[Key]] = field(default_factory=lambda: defaultdict(list))
    """The units run at each minute, in the order in which their results were stored: the rules do not say who is first."""
    replies: list[Answered] = field(default_factory=list)
    wakes: int = 0

    def run(self) -> None:
        self.set_the_scene()
        while self.now <= self.story.end:
            self.wakes += 1
            self.live(self.now)
            self.now = self.next_minute()

    def set_the_scene(self) -> None:
        self.patch.setattr(worker, "measure_units", lambda *_, **__: {})
        self.patch.setattr(worker, "evaluate_units", self.look)
        self.patch.setattr(error_isolation.logger, "exception", give_up)
        self.patch.setattr(store, "random", SimpleNamespace(random=lambda: self.story.jitter(self.now)))
        team = factories.team("owners")
        team.email = OWNERS
        team.save()
        self.ana: User = factories.user("ana", is_superuser=True)
        for plan in self.story.fleet.values():
            onboard(plan)
        for plan in self.story.fleet.values():
            if plan.upstream:
                factories.edge(*(Dataset.objects.get(name=name) for name in (plan.upstream, plan.name)))
        self.keys: dict[int, Key] = {}

    # One minute

    def live(self, now: datetime) -> None:
        """What beat wakes up all the time; what has nothing to do by its own tables is not called."""
        for plan in self.story.fleet.values():
            if plan.begins == now:
                self.begin(plan, now)
        acts = self.story.acts.get(now, [])
        for act in acts:
            if act.what != "ask":
                self.do(act, now)
        if acts:
            touched_partitions.claim_touched_partitions(now=now)
            ingestion_findings.observe_findings(now=now)
        if not self.story.workers_are_down(now):
            self.run_due(now)
        if Unit.objects.filter(reevaluate_at__lte=now).exists():
            reevaluation.reevaluate_due_units(now=now, limit=10_000)
        process_flips(now=now)
        update_stale_ranges()
        send_due_messages(now=now, limit=10_000)
        for act in acts:
            if act.what == "ask":
                self.ask(act, now)

    def run_due(self, now: datetime) -> None:
        """As many claims as there are copies with something due, again while there are: no look that finds nothing."""
        while copies := Unit.objects.filter(due_at__lte=now).values("copy").distinct().count():
            worker.run_due_units(now=now, worker="quarter", most=copies)

    def next_minute(self) -> datetime:
        """When something is due next, by the tables or by the story. What is held is held until something happens."""
        opening = Message.objects.filter(occasion__in=OPENING_OCCASIONS)
        released = opening.filter(state=MessageState.HELD).aggregate(at=Min("released_at"))["at"]
        due = [
            None if self.story.workers_are_down(self.now + MINUTE) else Unit.objects.aggregate(at=Min("due_at"))["at"],
            Unit.objects.aggregate(at=Min("reevaluate_at"))["at"],
            opening.filter(state=MessageState.PENDING).aggregate(at=Min("due_at"))["at"],
            released and released + MAX_RERUN_WAIT,
        ]
        soon = self.now + MINUTE
        return min(max(whole_minute(at), soon) for at in (self.story.next_turn(self.now), *due) if at is not None)

    def begin(self, plan: DatasetPlan, now: datetime) -> None:
        """Every partition from where it is monitored holds rows."""
        copies = DatasetCopy.objects.filter(dataset__name=plan.name)
        copies.update(monitored_from=plan.monitored_from)
        for test in (
            QualityTest.objects.filter(dataset__name=plan.name).select_related("version", "dataset").order_by("pk")
        ):
            for copy in copies.select_related("dataset__feed__connection", "data_center"):
                assert test.version is not None
                if runs_in(parse(test.version.flattened), copy.data_center.name):
                    units.plan_units_on_copy(test, copy, now=now, history=_partitions_until(copy, now))

    # What a scan finds

    def look(self, claimed: Sequence[Unit], answers: object, *, now: datetime) -> list[Execution]:
        keys = [self.key(unit) for unit in claimed]
        self.order[now] += keys
        return [Execution(unit, self.found(key, now), "") for unit, key in zip(claimed, keys, strict=True)]

    def found(self, key: Key, now: datetime) -> Evaluation:
        outcome = Outcome(self.story.outcome(key, now).lower())
        sees = key.test == FRESHNESS.key and outcome in (Outcome.PASS, Outcome.FAIL)
        boundary = self.story.boundary(key.dataset, key.center, now) if sees else None
        return Evaluation(outcome, "", complete_until=boundary)

    def key(self, unit: Unit) -> Key:
        if unit.pk not in self.keys:
            self.keys[unit.pk] = key_of(unit)
        return self.keys[unit.pk]

    # What people and ingestion do

    def do(self, act: Act, now: datetime) -> None:
        with suppress(Conflict, Refused):  # what cannot be done now is not, and the book must think so too
            getattr(self, act.what)(act, now)

    def commit(self, act: Act, now: datetime) -> None:
        copy = self.copy(act)
        made = factories.commit(copy, now)
        for start, end in dict.fromkeys(act.details["touched"]):
            TouchedPartition.objects.create(commit=made, copy=copy, start=start, end=end, rows=1)

    def finding_raised(self, act: Act, now: datetime) -> None:
        start, end = act.details["data"]
        Finding.objects.create(copy=self.copy(act), kind=act.details["kind"], start=start, end=end, raised_at=now)

    def finding_cleared(self, act: Act, now: datetime) -> None:
        Finding.objects.filter(copy=self.copy(act), kind=act.details["kind"], cleared_at=None).update(cleared_at=now)

    def new_version(self, act: Act, now: datetime) -> None:
        test = QualityTest.objects.select_related("version", "dataset").get(
            dataset__name=act.dataset, key=act.details["test"]
        )
        version = test.version
        assert version is not None
        version.pk, version.number, version.created_at = None, version.number + 1, now
        version._state.adding = True
        version.save()
        QualityTest.objects.filter(pk=test.pk).update(version=version)
        retired_units.reset_units_for_new_version(test, now=now)

    def run_now(self, act: Act, now: datetime) -> None:
        mine = Unit.objects.filter(copy=self.copy(act), test__key=act.details["test"])
        waivers.request_rerun(list(mine.values_list("pk", flat=True)), now=now, lane=Lane.DUE)

    def resolve(self, act: Act, now: datetime) -> None:
        how = act.details["how"]
        kind = "wrong_test" if how == "false_positive" else ""
        for number in self.opened(act)[:1]:
            resolution.resolve_by_force(
                number, resolution=how, false_positive=kind, why="So it is.", actor="ana", now=now
            )

    def reopen(self, act: Act, now: datetime) -> None:
        forced = Incident.objects.filter(resolution__in=["false_positive", "accepted"], reported=False)
        for number in self.about(act, forced)[-1:]:
            resolution.undo_resolution(number, actor="ana", now=now)

    def merge(self, act: Act, now: datetime) -> None:
        first, second, *_ = [*self.opened(act), None, None]
        if first and second:
            merge_split.merge_incidents(first, second, actor="ana", now=now)

    def split(self, act: Act, now: datetime) -> None:
        for number in self.opened(act)[:1]:
            active = Incident.objects.get(pk=number).spans.filter(ended_at=None).select_related("unit")
            keys = sorted((key_of(span.unit), span.unit_id) for span in active)
            merge_split.split_incident(number, [pk for _, pk in keys[len(keys) // 2 :]], actor="ana", now=now)

    def acknowledge(self, act: Act, now: datetime) -> None:
        for number in self.opened(act)[:1]:
            actions.acknowledge(number, actor=self.ana, now=now)

    def release(self, act: Act, now: datetime) -> None:
        for number in self.opened(act)[:1]:
            actions.release(number, actor=self.ana, now=now)

    def snooze(self, act: Act, now: datetime) -> None:
        for number in self.opened(act)[:1]:
            actions.snooze(number, act.details["until"], actor=self.ana, now=now)

    def eta(self, act: Act, now: datetime) -> None:
        for number in self.opened(act)[:1]:
            actions.annotate(number, {"eta": act.details["until"]}, actor=self.ana, now=now)

    def comment(self, act: Act, now: datetime) -> None:
        for number in self.opened(act)[:1]:
            actions.comment(number, "We are on it.", actor=self.ana, now=now)

    def rerun(self, act: Act, now: datetime) -> None:
        for number in self.opened(act)[:1]:
            actions.rerun(number, actor=self.ana, now=now)

    def report(self, act: Act, now: datetime) -> None:
        dataset = Dataset.objects.get(name=act.dataset)
        user_reports.file_report(
            dataset,
            act.details["category"],
            Interval(*act.details["data"]),
            text="It looks wrong.",
            reporter=self.ana,
            now=now,
            copy=self.copy(act) if act.details["center"] else None,
            occurred_at=act.details["since"],
        )

    def acknowledge_report(self, act: Act, now: datetime) -> None:
        for number in self.reported(act, IncidentState.WAITING):
            actions.acknowledge(number, actor=self.ana, now=now)

    def reject_report(self, act: Act, now: datetime) -> None:
        for number in self.reported(act, IncidentState.WAITING):
            user_reports.reject_report(number, why="All is well.", actor=self.ana, now=now)

    def dispute_report(self, act: Act, now: datetime) -> None:
        for number in self.reported(act, IncidentState.REJECTED):
            user_reports.dispute_report(number, why="It is not.", actor=self.ana, now=now)

    def fixed_report(self, act: Act, now: datetime) -> None:
        for number in self.reported(act, IncidentState.ACKNOWLEDGED, IncidentState.REJECTED):
            user_reports.declare_fixed(number, why="Repaired.", actor=self.ana, now=now)

    def say_nothing(self, act: Act, now: datetime) -> None:
        """The producer does not answer."""

    def ask(self, act: Act, now: datetime) -> None:
        details = act.details
        question = gate.CopyQuestion(
            act.dataset, Interval(*details["data"]), details["consumer"], details["center"], details["request"]
        )
        answer = gate.ask_gate(question, now=now).answer
        numbers = frozenset(cause.incident for cause in answer.causes if cause.incident is not None)
        self.replies.append(Answered(now, act.dataset, answer.verdict.value, answer.allowed, numbers, answer.retry_at))

    # What acts are about

    def copy(self, act: Act) -> DatasetCopy:
        return DatasetCopy.objects.get(dataset__name=act.dataset, data_center__name=act.details["center"])

    def about(self, act: Act, among: Any) -> list[int]:
        mine = among.filter(dataset__name=act.dataset, category=act.details["category"])
        return list(mine.order_by("opened_at", "pk").values_list("pk", flat=True))

    def opened(self, act: Act) -> list[int]:
        return self.about(act, Incident.objects.filter(resolved_at=None, reported=False))

    def reported(self, act: Act, *states: IncidentState) -> list[int]:
        """The newest report, if it is in one of these states."""
        newest = self.about(act, Incident.objects.filter(reported=True))[-1:]
        return list(Incident.objects.filter(pk__in=newest, state__in=states).values_list("pk", flat=True))


def give_up(what: str, *args: object, **_: object) -> None:
    """What fails apart is tried again for ever in the real world; here it ends the quarter."""
    raise AssertionError(what % args) from sys.exception()


def onboard(plan: DatasetPlan) -> None:
    by_day = plan.grain != "none"
    fields: dict[str, Any] = {"grain": plan.grain, "partition_tz": plan.zone.key} if by_day else {}
    dataset = factories.dataset(
        plan.name,
        copies=plan.centers,
        team=factories.team("owners"),
        tier=plan.tier,
        onboarded_at=plan.begins,
        grace_until=plan.begins + plan.grace if plan.grace else None,
        by_day=by_day,
        **fields,
    )
    dataset.copies.update(monitored_from=None)
    for test in plan.tests:
        add_test(dataset, plan, test)


def add_test(dataset: Any, plan: DatasetPlan, test: TestPlan) -> None:
    promise = plan.promise
    factories.test(
        dataset,
        Category(test.category),
        key=test.key,
        title=test.key,
        expression=flattened(parse(EXPRESSIONS.get(test.key, "duplicates(this) < 0.1%"))),
        sustain=promise.sustain,
        cadence=promise.cadence if test.whole else None,
        due_after=promise.due_after,
        rerun_base=promise.base,
        rerun_cap=promise.cap,
    )


def key_of(unit: Unit) -> Key:
    return Key(unit.test.dataset.name, unit.test.key, unit.copy.data_center.name, unit.start, unit.end)


def _partitions_until(copy: DatasetCopy, now: datetime) -> list[Interval]:
    dataset = copy.dataset
    if dataset.partition_grain is Grain.NONE or copy.monitored_from is None or copy.monitored_from >= now:
        return []
    return list(partitions_within(Interval(copy.monitored_from, now), dataset.partition_grain, dataset.zone))
