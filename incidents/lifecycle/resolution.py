"""Resolving by a person's word, taking that back, and what becomes of incidents of datasets that are let go."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from incidents.domain.incident.resolution import FORCED_RESOLUTIONS, FalsePositive, Resolution
from incidents.domain.incident.state_machine import IncidentState, Transition
from incidents.lifecycle import user_reports
from incidents.models import Incident, Span
from incidents.notifications import outbox
from incidents.notifications.retract import retract
from incidents.record import evidence, transitions
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.suggest import did_you_mean
from quality.domain.verdicts.unit_verdict import Waiver
from quality.models import Flip
from quality.state import waivers

REOPENED_FIELDS: dict[str, object] = {
    "resolved_at": None,
    "resolution": "",
    "false_positive": "",
    "resolved_why": "",
    "acknowledged_at": None,
}


def resolve_by_force(
    number: int,
    *,
    resolution: str,
    actor: str,
    now: datetime,
    why: str = "",
    false_positive: str = "",
    expected_revision: int | None = None,
) -> Incident:
    """Resolves a failing incident by force: as a false positive of a kind, or as accepted: true, and stays as it is.

    Its units are waived until they pass or their test gets a new version. Raises Refused, NotFound, Conflict.
    """
    how, kind = _checked_resolution(resolution, false_positive, why)
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        if incident.reported:
            raise Refused(f"#{number} is a user's report: it is declared fixed, or rejected.")
        fields = {"resolved_at": now, "resolution": how.value, "resolved_why": why, "false_positive": kind}
        text = f"{how.value.replace('_', ' ')}{': ' + kind.replace('_', ' ') if kind else ''}. {why}".strip()
        detail = {"resolution": how.value, "false_positive": kind}
        transitions.apply_transition(
            incident,
            Transition.RESOLVE,
            fields,
            now=now,
            actor=actor,
            text=text,
            expected_revision=expected_revision,
            **detail,
        )
        units = _end_spans(incident, now)
        waivers.waive_units(units, Waiver(how.value), now=now)
        outbox.enqueue(incident, "resolved", now=now, actor=actor, text=text)
        user_reports.resolve_matched_reports(incident, now=now)
    return incident


def undo_resolution(
    number: int, *, actor: str, now: datetime, why: str = "", expected_revision: int | None = None
) -> Incident:
    """Takes a forced resolution back: the waivers are lifted, and what fails is open again. Raises Conflict."""
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        reopen_incident(incident, REOPENED_FIELDS, actor=actor, now=now, why=why, expected_revision=expected_revision)
        notify_reopened(incident, actor=actor, now=now, why=why)
    return incident


def notify_reopened(incident: Incident, *, actor: str, now: datetime, why: str) -> None:
    """Who was told that it is resolved is told that it is not; who was not hears nothing of either."""
    if retract(incident, "resolved", why=f"reopened by {actor}"):
        outbox.enqueue(incident, "reopened", now=now, actor=actor, text=why)


def reopen_incident(
    incident: Incident,
    sets: dict[str, object],
    *,
    actor: str,
    now: datetime,
    why: str,
    expected_revision: int | None = None,
) -> None:
    """The move to open, which writes `sets`, and what goes with it: waivers, spans, reports. Raises Conflict."""
    if incident.resolution not in FORCED_RESOLUTIONS:
        raise Conflict(
            f"#{incident.pk} was not resolved by force, so there is nothing to take back. Failures reopen it."
        )
    transitions.apply_transition(
        incident, Transition.REOPEN, sets, now=now, actor=actor, text=why, expected_revision=expected_revision
    )
    unit_ids = list(Span.objects.filter(incident=incident).values_list("unit_id", flat=True).distinct())
    failing = [unit.pk for unit in waivers.lift_waivers(unit_ids, now=now) if unit.verdict == Verdict.FAIL]
    if not _resume_spans(incident, failing):
        raise Conflict(f"Nothing of #{incident.pk} fails any more, so it stays resolved. Nothing was changed.")
    _discard_flips(failing, now)
    user_reports.reopen_matched_reports(incident, now=now)


def close_offboarded(*, now: datetime) -> int:
    """Resolves what is open of datasets that were off-boarded; their history stays."""
    left = Incident.objects.filter(resolved_at=None, dataset__offboarded_at__isnull=False)
    for number in left.values_list("pk", flat=True):
        _close_offboarded(number, now)
    return len(left)


def _close_offboarded(number: int, now: datetime) -> None:
    with transaction.atomic():
        incident = transitions.locked_incident(number)
        if incident.state == IncidentState.RESOLVED:
            return
        _end_spans(incident, now)
        ends = {"state": IncidentState.RESOLVED.value, "resolved_at": now, "resolution": Resolution.OFFBOARDED.value}
        was = incident.state
        transitions.update_incident(incident, {**transitions.NOT_SNOOZED, **ends})
        text = "The dataset was off-boarded."
        transitions.add_event(incident, "resolved", now=now, text=text, was=was, becomes=IncidentState.RESOLVED)
        outbox.enqueue_to(incident, "resolved", user_reports.waiting_recipients(incident), now=now, text=text)


def close_removed_copies(*, now: datetime) -> int:
    """Ends what is open on copies that were removed, or that another took the place of; their history stays."""
    left = Span.objects.filter(ended_at=None, copy__removed_at__isnull=False)
    numbers = list(left.values_list("incident", flat=True).distinct())
    for number in numbers:
        _close_removed_copies(number, now)
    return len(numbers)


def _close_removed_copies(number: int, now: datetime) -> None:
    with transaction.atomic():
        incident = transitions.locked_incident(number)
        active = Span.objects.filter(incident=incident, ended_at=None)
        gone = active.filter(copy__removed_at__isnull=False)
        centers = ", ".join(sorted(set(gone.values_list("copy__data_center__name", flat=True))))
        gone.update(ended_at=Greatest(F("began_at"), now))
        text = f"The copy in {centers} that failed was removed, or rebuilt elsewhere."
        if active.exists() or incident.state == IncidentState.RESOLVED:
            transitions.add_event(incident, "span_closed", now=now, text=text)
            return
        resolution = Resolution.COPY_REMOVED.value
        ends = {"state": IncidentState.RESOLVED.value, "resolved_at": now, "resolution": resolution}
        was = incident.state
        transitions.update_incident(incident, {**transitions.NOT_SNOOZED, **ends})
        transitions.add_event(incident, "resolved", now=now, text=text, was=was, becomes=IncidentState.RESOLVED)
        outbox.enqueue_to(incident, "resolved", user_reports.waiting_recipients(incident), now=now, text=text)


def _checked_resolution(resolution: str, false_positive: str, why: str) -> tuple[Resolution, str]:
    problems = {}
    allowed_resolutions = sorted(FORCED_RESOLUTIONS)
    if resolution not in allowed_resolutions:
        problems["resolution"] = (
            f"An incident cannot be resolved as `{resolution}`.{did_you_mean(resolution, allowed_resolutions)}"
        )
    kinds = [kind.value for kind in FalsePositive]
    if resolution == Resolution.FALSE_POSITIVE and false_positive not in kinds:
        problem = (
            f"`{false_positive}` is no kind of false positive."
            if false_positive
            else "Say which kind of false positive."
        )
        problems["false_positive"] = f"{problem}{did_you_mean(false_positive, kinds)}"
    if resolution != Resolution.FALSE_POSITIVE and false_positive:
        problems["false_positive"] = "Only a false positive has a kind: leave it out, or resolve as `false_positive`."
    if not why.strip():
        problems["why"] = "Say why: whoever looks at the scores will ask."
    if problems:
        raise Refused.for_fields(problems)
    return Resolution(resolution), false_positive


def _end_spans(incident: Incident, now: datetime) -> list[int]:
    """Ends what is active, and keeps what it failed for; the units."""
    active = Span.objects.filter(incident=incident, ended_at=None)
    ended = list(active)
    units = [span.unit_id for span in ended]
    evidence.keep_evidence(ended)
    active.update(ended_at=Greatest(F("began_at"), now))
    return units


def _resume_spans(incident: Incident, units: list[int]) -> int:
    """The latest span of each unit goes on as if it had not been ended."""
    by_age = Span.objects.filter(incident=incident, unit__in=units).order_by("began_at")
    latest = dict(by_age.values_list("unit_id", "pk"))
    return Span.objects.filter(pk__in=latest.values()).update(ended_at=None)


def _discard_flips(units: list[int], now: datetime) -> None:
    """Spans and verdicts of these units agree by what was just done: flips that tell of it have nothing left to tell."""
    Flip.objects.filter(unit__in=units, claimed_at=None).update(claimed_at=now)
