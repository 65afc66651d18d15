"""What users report that no test saw: matched with an incident that explains it, or put to the producer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from incidents import moves, outbox
from incidents.domain.lifecycle import Move, State
from incidents.domain.resolution import Resolution
from incidents.models import Incident, Span, UserReport
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category

TITLE_WORDS = 200


def report(
    dataset: Dataset,
    category: str,
    wrong: Interval,
    *,
    text: str,
    reporter: User,
    now: datetime,
    copy: DatasetCopy | None = None,
    occurred_at: datetime | None = None,
) -> Incident:
    """Takes a report in. Where a detected incident explains it the two are matched; else the owners are asked."""
    _check(category, text, occurred_at, now)
    with transaction.atomic():
        incident = Incident.objects.create(
            dataset=dataset,
            category=category,
            state=State.REPORTED.value,
            title=f"{dataset.name}: {text.strip().splitlines()[0]}"[:TITLE_WORDS],
            opened_at=now,
            reported=True,
        )
        told = UserReport.objects.create(
            incident=incident,
            reporter=reporter,
            copy=copy,
            start=wrong.start,
            end=wrong.end,
            text=text.strip(),
            occurred_at=occurred_at or now,
        )
        moves.note(incident, "reported", now=now, actor=reporter.get_username(), text=text, becomes=State.REPORTED)
        _match_or_ask(incident, told, now)
    return incident


def reject(number: int, *, why: str, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """The producer says that nothing is wrong. The reporter may dispute it."""
    if not why.strip():
        raise Refused.because({"why": "Say why nothing is wrong: the reporter reads it."})
    return _move(number, Move.REJECT, actor, now, seen, why, resolved_why=why)


def dispute(number: int, *, why: str, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """Somebody insists: the producer is asked again."""
    return _move(number, Move.DISPUTE, actor, now, seen, why, resolved_why="")


def declare_fixed(number: int, *, why: str, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """The end of an acknowledged report, or of a rejected one that nobody disputes."""
    with transaction.atomic():
        incident = moves.find(number)
        if not incident.reported:
            raise Refused(f"Tests found #{number}: a pass resolves it. Only a user's report is declared fixed.")
        how = Resolution.REJECTED if incident.state == State.REJECTED else Resolution.DECLARED_FIXED
        return _end(incident, how, actor.get_username(), now, seen, why)


def follow(incident: Incident, *, now: datetime) -> None:
    """The incident that explained reports was resolved: so are they; unless it was a false positive: then it did not."""
    for told in UserReport.objects.filter(matched=incident, incident__state=State.MATCHED).select_related("incident"):
        text = f"#{incident.pk} was resolved"
        if incident.resolution == Resolution.FALSE_POSITIVE:
            UserReport.objects.filter(pk=told.pk).update(matched=None)
            moves.make(told.incident, Move.UNMATCH, now=now, text=f"{text} as a false positive")
        else:
            _end(told.incident, Resolution(incident.resolution), "", now, None, text)


def _end(incident: Incident, how: Resolution, actor: str, now: datetime, seen: int | None, why: str) -> Incident:
    sets = {"resolved_at": now, "resolution": how.value, "resolved_why": why}
    moves.make(incident, Move.RESOLVE, sets, now=now, actor=actor, text=why, seen=seen)
    UserReport.objects.filter(pk=incident.pk).update(fixed_at=now)
    return incident


def _move(number: int, move: Move, actor: User, now: datetime, seen: int | None, text: str, **sets: object) -> Incident:
    with transaction.atomic():
        incident = moves.find(number)
        return moves.make(incident, move, sets, now=now, actor=actor.get_username(), text=text, seen=seen)


def _match_or_ask(incident: Incident, told: UserReport, now: datetime) -> None:
    explains = _that_explains(incident.dataset, told)
    if explains is not None:
        told.matched = explains
        told.save(update_fields=["matched"])
        moves.make(incident, Move.MATCH, now=now, text=f"explained by #{explains.pk}")
        return
    moves.make(incident, Move.ASK_PRODUCER, now=now, text=f"team {incident.dataset.team.name}")
    outbox.enqueue(incident, "reported", (), now=now, text=told.text)


def _that_explains(dataset: Dataset, told: UserReport) -> Incident | None:
    """The earliest open incident that tests found and that affects some of the range now."""
    active = Span.objects.filter(ended_at=None, incident__dataset=dataset, start__lt=told.end, end__gt=told.start)
    here = active if told.copy_id is None else active.filter(copy=told.copy_id)
    first = here.filter(incident__resolved_at=None).order_by("incident__opened_at").select_related("incident").first()
    return first.incident if first else None


def _check(category: str, text: str, occurred_at: datetime | None, now: datetime) -> None:
    problems = {}
    known: Iterable[str] = Category.values
    if category not in known:
        problems["category"] = f"There is no category `{category}`.{did_you_mean(category, known)}"
    if not text.strip():
        problems["text"] = "Say what is wrong: the owners read it."
    if occurred_at is not None and occurred_at > now:
        problems["occurred_at"] = f"{occurred_at:%Y-%m-%d %H:%M} UTC has not come yet."
    if problems:
        raise Refused.because(problems)
