"""What users report that no test saw: matched with an incident that explains it, or put to the producer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from incidents import moves
from incidents.domain.lifecycle import Move, State
from incidents.domain.resolution import Resolution
from incidents.domain.routing import Recipient
from incidents.messages import outbox, reminding
from incidents.messages.subscriptions import reporter_of
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
    """Takes a report in. Where a detected incident explains it the two are matched; else the owners must answer."""
    _check(category, text, occurred_at, now)
    with transaction.atomic():
        # As intake does: a report and the incident that explains it must not miss each other.
        Dataset.objects.select_for_update(of=("self",)).get(pk=dataset.pk)
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
    with transaction.atomic():
        incident, name = moves.find(number), actor.get_username()
        moves.make(incident, Move.REJECT, {"resolved_why": why}, now=now, actor=name, text=why, seen=seen)
        outbox.tell(incident, "rejected", who_waits(incident), now=now, actor=name, text=why)
    return incident


def dispute(number: int, *, why: str, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """Somebody insists, after a rejection or after what was said to be its end: the producer is asked again."""
    with transaction.atomic():
        incident = moves.find(number)
        over = incident.state == State.RESOLVED and incident.reported
        sets = {
            "resolved_why": "",
            **({"resolved_at": None, "resolution": "", "acknowledged_at": None} if over else {}),
        }
        move = Move.REOPEN if over else Move.DISPUTE
        moves.make(incident, move, sets, now=now, actor=actor.get_username(), text=why, seen=seen)
        UserReport.objects.filter(pk=number).update(fixed_at=None, matched=None)
        _ask(incident, now, text=why)
    return incident


def declare_fixed(number: int, *, why: str, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """The end of an acknowledged report, or of a rejected one that nobody disputes."""
    with transaction.atomic():
        incident = moves.find(number)
        if not incident.reported:
            raise Refused(f"Tests found #{number}: a pass resolves it. Only a user's report is declared fixed.")
        how = Resolution.REJECTED if incident.state == State.REJECTED else Resolution.DECLARED_FIXED
        return _end(incident, how, actor.get_username(), now, seen, why)


# When the incident that explains a report changes


def match_waiting(incident: Incident, *, now: datetime) -> None:
    """Tests found something: reports that wait for the producer, and that it explains, wait no more."""
    waiting = UserReport.objects.filter(
        incident__dataset=incident.dataset_id, incident__category=incident.category, incident__state=State.WAITING
    )
    for told in waiting.select_related("incident__dataset__team"):
        _match(told, now)


def follow(incident: Incident, *, now: datetime) -> None:
    """The incident that explained reports was resolved: so are they; unless it was a false positive: then it did not."""
    for told in _matched(incident, State.MATCHED):
        text = f"#{incident.pk} was resolved"
        if incident.resolution == Resolution.FALSE_POSITIVE:
            UserReport.objects.filter(pk=told.pk).update(matched=None)
            moves.make(told.incident, Move.UNMATCH, now=now, text=f"{text} as a false positive")
            if not _match(told, now):
                _ask(told.incident, now, text=told.text)
        else:
            _end(told.incident, Resolution(incident.resolution), "", now, None, text)


def follow_back(incident: Incident, *, now: datetime) -> None:
    """A forced resolution was taken back: the reports that ended with it are explained by it again."""
    for told in _matched(incident, State.RESOLVED):
        sets = {"resolved_at": None, "resolution": "", "resolved_why": ""}
        moves.make(told.incident, Move.REOPEN, sets, now=now, text=f"#{incident.pk} is open again")
        UserReport.objects.filter(pk=told.pk).update(fixed_at=None)
        moves.make(told.incident, Move.MATCH, now=now, text=f"explained by #{incident.pk}")
    match_waiting(incident, now=now)


def follow_split(incident: Incident, *, now: datetime) -> None:
    """Spans went elsewhere: reports that they explained go with them."""
    for told in _matched(incident, State.MATCHED):
        explains = that_explains(told, now=now)
        if explains is not None and explains.pk != incident.pk:
            UserReport.objects.filter(pk=told.pk).update(matched=explains)
            moves.note(told.incident, "matched", now=now, text=f"explained by #{explains.pk} since the split")


def that_explains(told: UserReport, *, now: datetime) -> Incident | None:
    """What tests found in the dataset and category of the report, over some of its data, while it was wrong.

    The earliest that is open, else the latest that is over. A false positive explains nothing.
    """
    dataset, category = told.incident.dataset_id, told.incident.category
    spans = Span.objects.filter(_meets(told, now), incident__dataset=dataset, incident__category=category)
    here = spans if told.copy_id is None else spans.filter(copy=told.copy_id)
    found = here.exclude(incident__resolution=Resolution.FALSE_POSITIVE).select_related("incident")
    first = found.filter(incident__resolved_at=None).order_by("incident__opened_at", "incident").first()
    first = first or found.order_by("-incident__resolved_at", "-incident").first()
    return first.incident if first else None


def _meets(told: UserReport, now: datetime) -> Q:
    """Spans whose data overlaps the report's, and whose life overlaps the time for which it says that the data is wrong."""
    alive = Q(began_at__lte=now) & (Q(ended_at=None) | Q(ended_at__gt=told.occurred_at))
    return alive & Q(start__lt=told.end, end__gt=told.start)


def _matched(incident: Incident, state: State) -> QuerySet[UserReport]:
    found = UserReport.objects.filter(matched=incident, incident__state=state)
    return found.select_related("incident__dataset__team")


def _match_or_ask(incident: Incident, told: UserReport, now: datetime) -> None:
    if not _match(told, now):
        moves.make(incident, Move.ASK_PRODUCER, now=now, text=f"team {incident.dataset.team.name}")
        _ask(incident, now, text=told.text)


def _match(told: UserReport, now: datetime) -> bool:
    """Whether something explains it. What is over already ends the report with it."""
    explains = that_explains(told, now=now)
    if explains is None:
        return False
    told.matched = explains
    told.save(update_fields=["matched"])
    moves.make(told.incident, Move.MATCH, now=now, text=f"explained by #{explains.pk}")
    if explains.resolved_at is not None:
        text = f"#{explains.pk} was resolved"
        _end(told.incident, Resolution(explains.resolution), "", now, None, text, fixed_at=explains.resolved_at)
    return True


def _ask(incident: Incident, now: datetime, *, text: str) -> None:
    """The producers are told, and reminded until they acknowledge or reject."""
    reminding.begin(incident, now=now)
    outbox.enqueue(incident, "reported", (), now=now, text=text)


def _end(
    incident: Incident,
    how: Resolution,
    actor: str,
    now: datetime,
    seen: int | None,
    why: str,
    *,
    fixed_at: datetime | None = None,
) -> Incident:
    was = incident.state
    sets = {"resolved_at": now, "resolution": how.value, "resolved_why": why}
    moves.make(incident, Move.RESOLVE, sets, now=now, actor=actor, text=why, seen=seen)
    UserReport.objects.filter(pk=incident.pk).update(fixed_at=fixed_at or now)
    if was == State.ACKNOWLEDGED:
        outbox.enqueue(incident, "resolved", (), now=now, actor=actor, text=why)
    else:  # whoever was asked has heard of a rejection already
        told = reporter_of(incident) if was == State.REJECTED else who_waits(incident)
        outbox.tell(incident, "resolved", told, now=now, actor=actor, text=why)
    return incident


def who_waits(incident: Incident) -> list[Recipient]:
    """For word of its end: who heard that it began, and who reported it."""
    return [*(reporter_of(incident) if incident.reported else ()), *outbox.heard(incident)]


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
