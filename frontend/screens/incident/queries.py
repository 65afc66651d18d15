"""One incident: its spans, what was observed, everything that happened, what it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from frontend.components.incident_headline import incident_headline
from frontend.components.incident_rows import affected_ranges, ranges_text, shown_state
from frontend.results.history_plot import Plot, ShadedPeriod, plot_of_results
from frontend.results.measurements import counts_text, observed_text, threshold_text
from frontend.results.reasons import partition_label_of
from frontend.results.result_details import RecordCounts, ResultDetails, result_details
from incidents.models import SUPPRESSED, Incident, IncidentState, Message, Resolution, Span
from incidents.record.downstream_impact import downstream_datasets
from incidents.record.evidence import Evidence, evidence_of
from incidents.record.health import health_of
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import BEGINNING
from quality.execution.row_rights import RowRights
from quality.models import Result, Unit

MAX_RUNS = 60
_QUARTER = timedelta(days=90)


@dataclass(frozen=True)
class LifecycleStep:
    """One of the four steps of a life; `at` None: not yet."""

    state: str
    word: str
    at: datetime | None
    note: str = ""


@dataclass(frozen=True)
class EvidenceRow:
    evidence: Evidence
    seen: ResultDetails

    @property
    def observed(self) -> str:
        return result_line(self.evidence.as_result)

    @property
    def title(self) -> str:
        return unit_label(self.evidence.span.unit)


@dataclass(frozen=True)
class IncidentDetail:
    incident: Incident
    state: str
    spans: list[Span]
    ranges: tuple[tuple[str, str], ...]
    main_unit: Unit | None
    """The unit that the plot and the sentence are about: the active one that fails longest."""
    next_at: datetime | None
    suppressed_by: Incident | None
    evidence: list[Evidence]

    @property
    def matched(self) -> int | None:
        """The incident that explains this report."""
        return self.incident.report.matched_incident_id if self.incident.reported else None

    @property
    def ranges_text(self) -> str:
        return ranges_text(self.ranges)

    @property
    def headline(self) -> str:
        return incident_headline(self.incident, self.spans)

    @property
    def forced(self) -> bool:
        """A person resolved it against its tests; that can be taken back."""
        return self.incident.resolution in (Resolution.FALSE_POSITIVE, Resolution.ACCEPTED)

    @property
    def blocks_gate(self) -> bool:
        """The gate counts at least one of the tests that fail."""
        return any(span.unit.test.gating for span in self.spans if span.ended_at is None)

    @property
    def partitioned(self) -> bool:
        """Its data range has a first day to ask about."""
        return self.main_unit is not None and self.main_unit.start > BEGINNING

    @property
    def evidence_row(self) -> EvidenceRow | None:
        """What the failing run of the unit that the page is about saw; where nothing of it is known, of another."""
        about = self.main_unit.pk if self.main_unit else None
        row = next((row for row in self.evidence if row.span.unit_id == about), next(iter(self.evidence), None))
        return EvidenceRow(row, result_details(row.as_result)) if row else None

    @property
    def result_details(self) -> ResultDetails | None:
        return result_details(self.main_unit) if self.main_unit else None


def incident_by_pk(pk: int) -> Incident | None:
    return (
        Incident.objects.filter(pk=pk)
        .select_related("dataset__team", "dataset__feed", "assignee", "backfill_run", "report__copy__data_center")
        .first()
    )


def incident_detail(incident: Incident, *, now: datetime) -> IncidentDetail:
    """Seven queries at most."""
    spans = list(
        Span.objects.filter(incident=incident)
        .select_related("copy__data_center", "unit__test__dataset", "unit__test__version", "unit__copy__data_center")
        .order_by("ended_at", "began_at")
    )
    active = [span for span in spans if span.ended_at is None]
    about = min(active or spans, key=lambda span: span.began_at, default=None)
    suppressed_message = (
        Message.objects.filter(SUPPRESSED, incident=incident).select_related("held_by").order_by("-created_at").first()
    )
    incident.held = suppressed_message is not None  # type: ignore[attr-defined]  # what open_incidents() annotates
    due = [span.unit.due_at for span in active if span.unit.due_at is not None]
    return IncidentDetail(
        incident,
        shown_state(incident, now=now),
        spans,
        affected_ranges(incident, spans),
        about.unit if about else None,
        min(due, default=None),
        suppressed_message.held_by if suppressed_message else None,
        evidence_of(incident),
    )


def visible_records(detail: IncidentDetail, viewer: User) -> RecordCounts:
    """Named over all its ranges, and the viewer's to see."""
    rights = RowRights(viewer)
    named = [result_details(row.seen_by(rights).as_result).named for row in detail.evidence]
    return RecordCounts(sum(counts.missing for counts in named), sum(counts.differences for counts in named))


def lifecycle_steps(detail: IncidentDetail) -> list[LifecycleStep]:
    """Failing, open, acknowledged, resolved; the last ones may lie ahead. A report is reported and put to the owner instead."""
    incident = detail.incident
    taken = LifecycleStep("running", "Acknowledged", incident.acknowledged_at, _acknowledged_by(incident))
    return [*_opening_steps(detail), taken, _resolution_step(incident)]


def _opening_steps(detail: IncidentDetail) -> list[LifecycleStep]:
    incident = detail.incident
    if incident.reported:
        answer = "another incident explains it" if incident.state == IncidentState.MATCHED else "the owner is asked"
        reported = LifecycleStep("reported", "Reported", incident.opened_at, "by a reader")
        return [reported, LifecycleStep("reported", "Answered", _answered_at(incident), answer)]
    first = min((span.began_at for span in detail.spans), default=incident.opened_at)
    return [
        LifecycleStep("warn", "Failing", first, "the sustain period began"),
        LifecycleStep("fail", "Open", incident.opened_at, "the sustain period ended with no pass"),
    ]


def _answered_at(incident: Incident) -> datetime | None:
    return incident.acknowledged_at or incident.resolved_at


def _acknowledged_by(incident: Incident) -> str:
    if incident.acknowledged_at is None:
        return "nobody has it yet" if incident.resolved_at is None else "nobody had to"
    return f"by {incident.assignee.get_full_name() or incident.assignee.username}" if incident.assignee else ""


def _resolution_step(incident: Incident) -> LifecycleStep:
    if incident.resolved_at is None:
        return LifecycleStep(
            "pass", "Resolved", None, "when it is declared fixed" if incident.reported else "a pass resolves it"
        )
    forced = shown_state(incident, now=incident.resolved_at) == "none"
    return LifecycleStep(
        "none" if forced else "pass", "Resolved", incident.resolved_at, incident.get_resolution_display()
    )


def incident_results(detail: IncidentDetail) -> list[Result]:
    """The runs of its units since shortly before the first failure, newest first."""
    units = [span.unit_id for span in detail.spans]
    by_pk = {span.unit_id: span.unit for span in detail.spans}
    began = min((span.began_at for span in detail.spans), default=detail.incident.opened_at)
    until = detail.incident.resolved_at
    window = Q(read_at__gte=began - timedelta(days=1)) & (
        Q(read_at__lte=until + timedelta(minutes=1)) if until else Q()
    )
    results = list(Result.objects.filter(window, unit__in=units).order_by("-read_at")[:MAX_RUNS])
    for result in results:
        result.unit = by_pk[result.unit_id]
    return results


def incident_plot(detail: IncidentDetail, runs: Sequence[Result], *, now: datetime) -> Plot:
    """The runs of the unit that the page is about, the warn and the fail phase shaded."""
    if detail.main_unit is None:
        return Plot([])
    own = [run for run in reversed(runs) if run.unit_id == detail.main_unit.pk and run.observed is not None]
    first = min(
        (span.began_at for span in detail.spans if span.unit_id == detail.main_unit.pk),
        default=detail.incident.opened_at,
    )
    shades = []
    if first < detail.incident.opened_at:
        shades.append(ShadedPeriod(first, detail.incident.opened_at, "warn", "Warn"))
    shades.append(
        ShadedPeriod(
            max(first, detail.incident.opened_at), detail.incident.resolved_at or now, "fail", "Fail, incident open"
        )
    )
    is_open = detail.incident.resolved_at is None
    return plot_of_results(
        own, tuple(shades), now=now if is_open else None, next_at=detail.next_at if is_open else None
    )


def result_line(result: Result) -> str:
    """`98.98% (975 of 985), needs > 99.9%`."""
    if result.observed is None:
        return str((result.detail or {}).get("cause", "")) if isinstance(result.detail, dict) else ""
    return f"{observed_text(result)}{counts_text(result)}, needs {threshold_text(result)}"


def unit_label(unit: Unit) -> str:
    return f"{unit.test.title}, {partition_label_of(unit)} in {unit.copy.data_center.name}"


@dataclass(frozen=True)
class DownstreamDataset:
    """A dataset downstream that it may reach, how far away, and how that does now."""

    dataset: Dataset
    steps: int
    via: Dataset
    state: str


def reached_datasets(detail: IncidentDetail, *, now: datetime) -> list[DownstreamDataset]:
    """Datasets made from this one where it fails, nearest first. Seven queries at most."""
    downstream = downstream_datasets(detail.incident, detail.spans)
    states = health_of([row.dataset for row in downstream], now=now)
    return [DownstreamDataset(row.dataset, row.steps, row.via, states[row.dataset.pk].state) for row in downstream]


def similar_incidents(incident: Incident, *, now: datetime) -> QuerySet[Incident]:
    """The last ones of the same dataset and category."""
    others = Incident.objects.filter(
        dataset=incident.dataset_id, category=incident.category, resolved_at__gte=now - _QUARTER
    )
    return others.exclude(pk=incident.pk).order_by("-resolved_at")[:3]
