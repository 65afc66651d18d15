"""One incident: its spans, what was observed, everything that happened, what it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from frontend.headline import headline
from frontend.observed import behind, needs, observed
from frontend.queries.history import Plot, Shade, of_results
from frontend.queries.incidents import affected, in_words, shown_state
from frontend.queries.reasons import partition_of
from frontend.seen import Seen, seen
from incidents.impact import downstream
from incidents.models import SUPPRESSED, Incident, Message, Resolution, Span, State
from incidents.rollup import health_of
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import BEGINNING
from quality.models import Result, Unit

RUNS = 60
_QUARTER = timedelta(days=90)


@dataclass(frozen=True)
class Step:
    """One of the four steps of a life; `at` None: not yet."""

    state: str
    word: str
    at: datetime | None
    said: str = ""


@dataclass(frozen=True)
class Story:
    incident: Incident
    state: str
    spans: list[Span]
    ranges: tuple[tuple[str, str], ...]
    worst: Unit | None
    """The unit that the plot and the sentence are about: the active one that fails longest."""
    next_at: datetime | None
    held_by: Incident | None

    @property
    def matched(self) -> int | None:
        """The incident that explains this report."""
        return self.incident.report.matched_id if self.incident.reported else None

    @property
    def where(self) -> str:
        return in_words(self.ranges)

    @property
    def headline(self) -> str:
        return headline(self.incident, self.spans)

    @property
    def forced(self) -> bool:
        """A person resolved it against its tests; that can be taken back."""
        return self.incident.resolution in (Resolution.FALSE_POSITIVE, Resolution.ACCEPTED)

    @property
    def gates(self) -> bool:
        """The gate counts at least one of the tests that fail."""
        return any(span.unit.test.gating for span in self.spans if span.ended_at is None)

    @property
    def partitioned(self) -> bool:
        """Its data range has a first day to ask about."""
        return self.worst is not None and self.worst.start > BEGINNING

    @property
    def seen(self) -> Seen | None:
        return seen(self.worst) if self.worst else None


def incident_with(pk: int) -> Incident | None:
    return (
        Incident.objects.filter(pk=pk)
        .select_related("dataset__team", "assignee", "backfill_run", "report__copy__data_center")
        .first()
    )


def story(incident: Incident, *, now: datetime) -> Story:
    """Two queries."""
    spans = list(
        Span.objects.filter(incident=incident)
        .select_related("copy__data_center", "unit__test__dataset", "unit__test__version", "unit__copy__data_center")
        .order_by("ended_at", "began_at")
    )
    active = [span for span in spans if span.ended_at is None]
    about = min(active or spans, key=lambda span: span.began_at, default=None)
    held = (
        Message.objects.filter(SUPPRESSED, incident=incident).select_related("held_by").order_by("-created_at").first()
    )
    incident.held = held is not None  # type: ignore[attr-defined]  # what open_incidents() annotates
    due = [span.unit.due_at for span in active if span.unit.due_at is not None]
    return Story(
        incident,
        shown_state(incident, now=now),
        spans,
        affected(incident, spans),
        about.unit if about else None,
        min(due, default=None),
        held.held_by if held else None,
    )


def life(told: Story) -> list[Step]:
    """Failing, open, acknowledged, resolved; the last ones may lie ahead. A report is reported and put to the owner instead."""
    incident = told.incident
    taken = Step("running", "Acknowledged", incident.acknowledged_at, _who(incident))
    return [*_beginning(told), taken, _ending(incident)]


def _beginning(told: Story) -> list[Step]:
    incident = told.incident
    if incident.reported:
        answer = "another incident explains it" if incident.state == State.MATCHED else "the owner is asked"
        said = Step("reported", "Reported", incident.opened_at, "by a reader")
        return [said, Step("reported", "Answered", _answered_at(incident), answer)]
    first = min((span.began_at for span in told.spans), default=incident.opened_at)
    return [
        Step("warn", "Failing", first, "the sustain period began"),
        Step("fail", "Open", incident.opened_at, "the sustain period ended with no pass"),
    ]


def _answered_at(incident: Incident) -> datetime | None:
    return incident.acknowledged_at or incident.resolved_at


def _who(incident: Incident) -> str:
    if incident.acknowledged_at is None:
        return "nobody has it yet" if incident.resolved_at is None else "nobody had to"
    return f"by {incident.assignee.get_full_name() or incident.assignee.username}" if incident.assignee else ""


def _ending(incident: Incident) -> Step:
    if incident.resolved_at is None:
        return Step(
            "pass", "Resolved", None, "when it is declared fixed" if incident.reported else "a pass resolves it"
        )
    forced = shown_state(incident, now=incident.resolved_at) == "none"
    return Step("none" if forced else "pass", "Resolved", incident.resolved_at, incident.get_resolution_display())


def results(told: Story) -> list[Result]:
    """The runs of its units since shortly before the first failure, newest first."""
    units = [span.unit_id for span in told.spans]
    by_pk = {span.unit_id: span.unit for span in told.spans}
    began = min((span.began_at for span in told.spans), default=told.incident.opened_at)
    until = told.incident.resolved_at
    window = Q(read_at__gte=began - timedelta(days=1)) & (
        Q(read_at__lte=until + timedelta(minutes=1)) if until else Q()
    )
    found = list(Result.objects.filter(window, unit__in=units).order_by("-read_at")[:RUNS])
    for result in found:
        result.unit = by_pk[result.unit_id]
    return found


def plot(told: Story, runs: Sequence[Result], *, now: datetime) -> Plot:
    """The runs of the unit that the page is about, the warn and the fail phase shaded."""
    if told.worst is None:
        return Plot([])
    own = [run for run in reversed(runs) if run.unit_id == told.worst.pk and run.observed is not None]
    first = min(
        (span.began_at for span in told.spans if span.unit_id == told.worst.pk), default=told.incident.opened_at
    )
    shades = []
    if first < told.incident.opened_at:
        shades.append(Shade(first, told.incident.opened_at, "warn", "Warn"))
    shades.append(
        Shade(max(first, told.incident.opened_at), told.incident.resolved_at or now, "fail", "Fail, incident open")
    )
    is_open = told.incident.resolved_at is None
    return of_results(own, tuple(shades), now=now if is_open else None, next_at=told.next_at if is_open else None)


def run_line(result: Result) -> str:
    """`98.98% (975 of 985), needs > 99.9%`."""
    if result.observed is None:
        return str((result.detail or {}).get("cause", "")) if isinstance(result.detail, dict) else ""
    return f"{observed(result)}{behind(result)}, needs {needs(result)}"


def unit_name(unit: Unit) -> str:
    return f"{unit.test.title}, {partition_of(unit)} in {unit.copy.data_center.name}"


@dataclass(frozen=True)
class Reached:
    """A dataset downstream that it may reach, how far away, and how that does now."""

    dataset: Dataset
    steps: int
    via: Dataset
    state: str


def reached(told: Story, *, now: datetime) -> list[Reached]:
    """Datasets made from this one where it fails, nearest first. Seven queries at most."""
    found = downstream(told.incident, told.spans)
    states = health_of([one.dataset for one in found], now=now)
    return [Reached(one.dataset, one.steps, one.via, states[one.dataset.pk].state) for one in found]


def similar(incident: Incident, *, now: datetime) -> QuerySet[Incident]:
    """The last ones of the same dataset and category."""
    others = Incident.objects.filter(
        dataset=incident.dataset_id, category=incident.category, resolved_at__gte=now - _QUARTER
    )
    return others.exclude(pk=incident.pk).order_by("-resolved_at")[:3]
