"""Lakehub under a scenario: onboarding, planning, running, findings, incidents, messages and the gate, as the tasks call them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from django.db import IntegrityError

from incidents.gate.answer import CopyQuestion, ask_gate
from incidents.lifecycle import intake
from incidents.models import Incident, Message, Span
from incidents.notifications.sender import send_due_messages
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from quality.execution import ingestion_findings, worker
from quality.generation import generate
from quality.models import Unit
from quality.planning import baseline, change_polling, touched_partitions
from quality.state import reevaluation
from tests import factories
from tests.contracts.planted.calendar import Period
from tests.contracts.planted.model import FailingUnit
from tests.contracts.planted.scenario import Phase, Place, Scenario, Signal, TablePlan

OWNERS = "owners@example.org"


@dataclass
class SystemUnderTest:
    scenario: Scenario
    folder: Path

    def set_the_scene(self) -> None:
        """The tables as they are in the first phase, onboarded; what is wrong with the requests is refused before."""
        team = factories.team()
        team.email = OWNERS
        team.save()
        first = self.scenario.phases[0]
        self._write(first)
        for table in self.scenario.tables:
            for place in table.places:
                factories.data_center(place.center)
                plugin, url, _ = self._address(table, place)
                factories.connection(_connection(place), url=url, plugin=plugin)
            onboard_dataset(self.request(table), actor="ann", now=first.now)
        self._remove(first)

    def refusal(self, field: str) -> str:
        """What is said to a request for the last table that is wrong in a field; nothing, where it is accepted."""
        request = replace(self.request(self.scenario.tables[-1]), name="refused")
        wrong = replace(request, copies=()) if field == "copies" else replace(request, partition_form="YYYYMMDD")
        try:
            onboard_dataset(wrong, actor="ann", now=self.scenario.phases[0].now)
        except Refused as refused:
            return refused.fields.get(field, "")
        except IntegrityError as error:
            return f"{error}"
        return ""

    def request(self, table: TablePlan) -> OnboardingRequest:
        first, *others = table.places
        return OnboardingRequest(
            name=table.name,
            team="flight-ops",
            tier=table.tier,
            connection=_connection(first),
            table=self._address(table, first)[2],
            data_centers=tuple(table.kinds),
            copies=[CopyRequest(place.center, _connection(place), self._address(table, place)[2]) for place in others],
            kind="append-only",
            primary_key=table.layout.key_columns,
            partition_column=", ".join(column.name for column in table.layout.columns),
            partition_form=table.layout.form.text,
            grain=table.grain,
            partition_tz=table.zone,
            event_time="happened_at" if table.by_event_time else "",
            upstream=[UpstreamRequest(table.upstream.name, one_to_one=True)] if table.upstream else [],
            ingested=False,
            overrides={"sustain": "0m", "event_time_zone": "UTC"},
        )

    def begin(self, phase: Phase) -> None:
        self._write(phase)
        self._remove(phase)
        wake_everything(phase.now)

    # Tables

    def _write(self, phase: Phase) -> None:
        for table in self.scenario.tables:
            for place in table.places:
                table.layout.write(phase.tables[place], table.kinds[place.center], self._folder(place))

    def _remove(self, phase: Phase) -> None:
        for place in phase.gone:
            for file in self._folder(place).iterdir():
                file.unlink()

    def _folder(self, place: Place) -> Path:
        return self.folder / place.dataset / place.center

    def _address(self, table: TablePlan, place: Place) -> tuple[str, str, str]:
        folder = self._folder(place)
        if table.kinds[place.center] == "sqlite":
            return "sql", f"sqlite:///{folder / 'ops.db'}", "events"
        return "files", folder.as_uri(), "events.parquet"


def wake_everything(now: datetime) -> None:
    """As Celery's beat does, until nothing is left to do."""
    generate.generate_outdated(now=now)
    baseline.start_missing_baselines(now=now)
    while change_polling.poll_due_copies(now=now):
        pass
    touched_partitions.claim_touched_partitions(now=now)
    ingestion_findings.observe_findings(now=now)
    while worker.run_due_units(now=now, worker="planted", most=100):
        pass
    reevaluation.reevaluate_due_units(now=now, limit=10_000)
    while intake.process_flips(now=now):
        pass
    intake.update_stale_ranges()
    send_due_messages(now=now, limit=10_000)


# What there is to see


def failing_units() -> frozenset[FailingUnit]:
    units = Unit.objects.filter(verdict="fail").select_related("test__dataset", "copy__data_center")
    return frozenset(
        FailingUnit(_place(unit), unit.test.key, None if unit.start == EVERYTHING.start else unit.start)
        for unit in units
    )


def signals() -> frozenset[Signal]:
    """What open incidents say is wrong."""
    spans = Span.objects.filter(ended_at=None, incident__resolved_at=None)
    related = spans.select_related("incident", "unit__test__dataset", "copy__data_center")
    return frozenset(
        Signal(_place(span.unit), span.incident.category, None if span.start == EVERYTHING.start else span.start)
        for span in related
    )


def gate_verdicts(asked: Mapping[tuple[Place, Period], object], now: datetime) -> dict[tuple[Place, Period], str]:
    """For the last minutes of each period. What is not allowed although it passed, or allowed although not, says so."""
    verdicts = {}
    for place, period in asked:
        question = CopyQuestion(
            place.dataset, Interval(period.end - (period.end - period.start) / 10, period.end), "etl", place.center
        )
        answer = ask_gate(question, now=now, record=False).answer
        verdict = str(answer.verdict)
        verdicts[place, period] = verdict if answer.allowed == (verdict == "pass") else f"{verdict}, {answer.allowed=}"
    return verdicts


@dataclass(frozen=True)
class Opened:
    """An incident that was opened at a time, and how its message went."""

    number: int
    dataset: str
    category: str
    copies: frozenset[Place]
    since: datetime
    state: str
    text: str


def opened_at(now: datetime) -> list[Opened]:
    incidents = Incident.objects.filter(opened_at=now, resolved_at=None).select_related("dataset")
    return [_opened(message) for message in Message.objects.filter(incident__in=incidents, occasion="opened")]


def _opened(message: Message) -> Opened:
    incident = message.incident
    active = incident.spans.filter(ended_at=None).select_related("unit__test__dataset", "copy__data_center")
    return Opened(
        incident.pk,
        incident.dataset.name,
        incident.category,
        frozenset(_place(span.unit) for span in active),
        min(span.start for span in active),
        message.state,
        f"{message.subject}\n{message.body}",
    )


def _place(unit: Unit) -> Place:
    return Place(unit.test.dataset.name, unit.copy.data_center.name)


def _connection(place: Place) -> str:
    return f"{place.dataset}_{place.center}"
