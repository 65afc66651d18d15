"""Resolving by a person's word, taking that back, and what becomes of incidents of datasets that are let go."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from incidents import moves, reports
from incidents.domain.lifecycle import Move, State
from incidents.domain.resolution import FORCED, FalsePositive, Resolution
from incidents.messages import outbox
from incidents.messages.recalling import recall
from incidents.models import Incident, Span
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.suggest import did_you_mean
from quality import waivers
from quality.domain.verdicts import Waiver
from quality.models import Flip

AS_OPEN: dict[str, object] = {
    "resolved_at": None,
    "resolution": "",
    "false_positive": "",
    "resolved_why": "",
    "acknowledged_at": None,
}


def resolve(
    number: int,
    *,
    resolution: str,
    actor: str,
    now: datetime,
    why: str = "",
    false_positive: str = "",
    seen: int | None = None,
) -> Incident:
    """Resolves a failing incident by force: as a false positive of a kind, or as accepted: true, and stays as it is.

    Its units are waived until they pass or their test gets a new version. Raises Refused, NotFound, Conflict.
    """
    how, kind = _checked(resolution, false_positive, why)
    with transaction.atomic():
        incident = moves.find(number)
        if incident.reported:
            raise Refused(f"#{number} is a user's report: it is declared fixed, or rejected.")
        fields = {"resolved_at": now, "resolution": how.value, "resolved_why": why, "false_positive": kind}
        said = f"{how.value.replace('_', ' ')}{': ' + kind.replace('_', ' ') if kind else ''}. {why}".strip()
        detail = {"resolution": how.value, "false_positive": kind}
        moves.make(incident, Move.RESOLVE, fields, now=now, actor=actor, text=said, seen=seen, **detail)
        units = _end_spans(incident, now)
        waivers.waive(units, Waiver(how.value), now=now)
        outbox.enqueue(incident, "resolved", outbox.spans_to_tell(incident), now=now, actor=actor, text=said)
        reports.follow(incident, now=now)
    return incident


def reopen(number: int, *, actor: str, now: datetime, why: str = "", seen: int | None = None) -> Incident:
    """Takes a forced resolution back: the waivers are lifted, and what fails is open again. Raises Conflict."""
    with transaction.atomic():
        incident = moves.find(number)
        take_back(incident, AS_OPEN, actor=actor, now=now, why=why, seen=seen)
        tell_reopened(incident, actor=actor, now=now, why=why)
    return incident


def tell_reopened(incident: Incident, *, actor: str, now: datetime, why: str) -> None:
    """Who was told that it is resolved is told that it is not; who was not hears nothing of either."""
    if recall(incident, "resolved", why=f"reopened by {actor}"):
        outbox.enqueue(incident, "reopened", outbox.spans_to_tell(incident), now=now, actor=actor, text=why)


def take_back(
    incident: Incident, sets: dict[str, object], *, actor: str, now: datetime, why: str, seen: int | None = None
) -> None:
    """The move to open, which writes `sets`, and what goes with it: waivers, spans, reports. Raises Conflict."""
    if incident.resolution not in FORCED:
        raise Conflict(
            f"#{incident.pk} was not resolved by force, so there is nothing to take back. Failures reopen it."
        )
    moves.make(incident, Move.REOPEN, sets, now=now, actor=actor, text=why, seen=seen)
    held = list(Span.objects.filter(incident=incident).values_list("unit_id", flat=True).distinct())
    failing = [unit.pk for unit in waivers.lift(held, now=now) if unit.verdict == Verdict.FAIL]
    if not _begin_again(incident, failing):
        raise Conflict(f"Nothing of #{incident.pk} fails any more, so it stays resolved. Nothing was changed.")
    _agreed(failing, now)
    reports.follow_back(incident, now=now)


def close_offboarded(*, now: datetime) -> int:
    """Resolves what is open of datasets that were off-boarded; their history stays."""
    left = Incident.objects.filter(resolved_at=None, dataset__offboarded_at__isnull=False)
    for number in left.values_list("pk", flat=True):
        _close_offboarded(number, now)
    return len(left)


def _close_offboarded(number: int, now: datetime) -> None:
    with transaction.atomic():
        incident = moves.locked(number)
        if incident.state == State.RESOLVED:
            return
        _end_spans(incident, now)
        ends = {"state": State.RESOLVED.value, "resolved_at": now, "resolution": Resolution.OFFBOARDED.value}
        was = incident.state
        moves.update(incident, {**moves.AWAKE, **ends})
        text = "The dataset was off-boarded."
        moves.note(incident, "resolved", now=now, text=text, was=was, becomes=State.RESOLVED)
        outbox.tell(incident, "resolved", reports.who_waits(incident), now=now, text=text)


def _checked(resolution: str, false_positive: str, why: str) -> tuple[Resolution, str]:
    problems = {}
    known = sorted(FORCED)
    if resolution not in known:
        problems["resolution"] = f"An incident cannot be resolved as `{resolution}`.{did_you_mean(resolution, known)}"
    kinds = [kind.value for kind in FalsePositive]
    if resolution == Resolution.FALSE_POSITIVE and false_positive not in kinds:
        said = (
            f"`{false_positive}` is no kind of false positive."
            if false_positive
            else "Say which kind of false positive."
        )
        problems["false_positive"] = f"{said}{did_you_mean(false_positive, kinds)}"
    if resolution != Resolution.FALSE_POSITIVE and false_positive:
        problems["false_positive"] = "Only a false positive has a kind: leave it out, or resolve as `false_positive`."
    if not why.strip():
        problems["why"] = "Say why: whoever looks at the scores will ask."
    if problems:
        raise Refused.because(problems)
    return Resolution(resolution), false_positive


def _end_spans(incident: Incident, now: datetime) -> list[int]:
    """Ends what is active; the units."""
    active = Span.objects.filter(incident=incident, ended_at=None)
    units = list(active.values_list("unit_id", flat=True))
    active.update(ended_at=Greatest(F("began_at"), now))
    return units


def _begin_again(incident: Incident, units: list[int]) -> int:
    """The latest span of each unit goes on as if it had not been ended."""
    by_age = Span.objects.filter(incident=incident, unit__in=units).order_by("began_at")
    latest = dict(by_age.values_list("unit_id", "pk"))
    return Span.objects.filter(pk__in=latest.values()).update(ended_at=None)


def _agreed(units: list[int], now: datetime) -> None:
    """Spans and verdicts of these units agree by what was just done: flips that tell of it have nothing left to tell."""
    Flip.objects.filter(unit__in=units, claimed_at=None).update(claimed_at=now)
