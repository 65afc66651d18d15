"""What users report that no test saw: matched with an incident that explains it, or put to the producer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from incidents.domain.alerting.routing import Recipient
from incidents.domain.incident.resolution import Resolution
from incidents.domain.incident.state_machine import IncidentState, Transition
from incidents.models import Incident, Span, UserReport
from incidents.notifications import outbox, recipients, reminders
from incidents.notifications.recipients import reporter_recipients
from incidents.record import transitions
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category

MAX_TITLE_LENGTH = 200
REPORTS_A_DAY = 50
"""Of one person, in any 24 hours: each is an incident in the inbox of a team, and messages to its owners."""
_DAY = timedelta(days=1)


def file_report(
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
    """Takes a report in. Where a detected incident explains it the two are matched; else the owners must answer.

    Raises Refused for what cannot be reported, and where `reporter` has reported REPORTS_A_DAY times in the last 24 hours.
    """
    _check_report(category, text, occurred_at, now)
    _check_daily_limit(reporter, now)  # without a transaction, which on SQLite holds up everybody who writes
    with transaction.atomic():
        # As intake does: a report and the incident that explains it must not miss each other.
        Dataset.objects.select_for_update(of=("self",)).get(pk=dataset.pk)
        _check_daily_limit(reporter, now)  # of many at the same time only so many are taken
        incident = Incident.objects.create(
            dataset=dataset,
            category=category,
            state=IncidentState.REPORTED.value,
            title=f"{dataset.name}: {text.strip().splitlines()[0]}"[:MAX_TITLE_LENGTH],
            opened_at=now,
            reported=True,
        )
        report = UserReport.objects.create(
            incident=incident,
            reporter=reporter,
            copy=copy,
            start=wrong.start,
            end=wrong.end,
            text=text.strip(),
            occurred_at=occurred_at or now,
        )
        transitions.add_event(
            incident, "reported", now=now, actor=reporter.get_username(), text=text, becomes=IncidentState.REPORTED
        )
        _match_or_ask_producer(incident, report, now)
    return incident


def reject_report(
    number: int, *, why: str, actor: User, now: datetime, expected_revision: int | None = None
) -> Incident:
    """The producer says that nothing is wrong. The reporter may dispute it."""
    if not why.strip():
        raise Refused.for_fields({"why": "Say why nothing is wrong: the reporter reads it."})
    with transaction.atomic():
        incident, name = transitions.incident_by_number(number), actor.get_username()
        transitions.apply_transition(
            incident,
            Transition.REJECT,
            {"resolved_why": why},
            now=now,
            actor=name,
            text=why,
            expected_revision=expected_revision,
        )
        outbox.enqueue_to(incident, "rejected", waiting_recipients(incident), now=now, actor=name, text=why)
    return incident


def dispute_report(
    number: int, *, why: str, actor: User, now: datetime, expected_revision: int | None = None
) -> Incident:
    """Somebody insists, after a rejection or after what was said to be its end: the producer is asked again."""
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        over = incident.state == IncidentState.RESOLVED and incident.reported
        sets = {
            "resolved_why": "",
            **({"resolved_at": None, "resolution": "", "acknowledged_at": None} if over else {}),
        }
        move = Transition.REOPEN if over else Transition.DISPUTE
        transitions.apply_transition(
            incident, move, sets, now=now, actor=actor.get_username(), text=why, expected_revision=expected_revision
        )
        UserReport.objects.filter(pk=number).update(fixed_at=None, matched_incident=None)
        _ask_producer(incident, now, text=why)
    return incident


def declare_fixed(
    number: int, *, why: str, actor: User, now: datetime, expected_revision: int | None = None
) -> Incident:
    """The end of an acknowledged report, or of a rejected one that nobody disputes."""
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        if not incident.reported:
            raise Refused(f"Tests found #{number}: a pass resolves it. Only a user's report is declared fixed.")
        how = Resolution.REJECTED if incident.state == IncidentState.REJECTED else Resolution.DECLARED_FIXED
        return _close_report(incident, how, actor.get_username(), now, expected_revision, why)


# When the incident that explains a report changes


def match_waiting_reports(incident: Incident, *, now: datetime) -> None:
    """Tests found something: reports that wait for the producer, and that it explains, wait no more."""
    waiting = UserReport.objects.filter(
        incident__dataset=incident.dataset_id,
        incident__category=incident.category,
        incident__state=IncidentState.WAITING,
    )
    for report in waiting.select_related("incident__dataset__team"):
        _match(report, now)


def resolve_matched_reports(incident: Incident, *, now: datetime) -> None:
    """The incident that explained reports was resolved: so are they; unless it was a false positive: then it did not."""
    for report in _matched_reports(incident, IncidentState.MATCHED):
        text = f"#{incident.pk} was resolved"
        if incident.resolution == Resolution.FALSE_POSITIVE:
            UserReport.objects.filter(pk=report.pk).update(matched_incident=None)
            transitions.apply_transition(
                report.incident, Transition.UNMATCH, now=now, text=f"{text} as a false positive"
            )
            if not _match(report, now):
                _ask_producer(report.incident, now, text=report.text)
        else:
            _close_report(report.incident, Resolution(incident.resolution), "", now, None, text)


def reopen_matched_reports(incident: Incident, *, now: datetime) -> None:
    """A forced resolution was taken back: the reports that ended with it are explained by it again."""
    for report in _matched_reports(incident, IncidentState.RESOLVED):
        sets = {"resolved_at": None, "resolution": "", "resolved_why": ""}
        transitions.apply_transition(
            report.incident, Transition.REOPEN, sets, now=now, text=f"#{incident.pk} is open again"
        )
        UserReport.objects.filter(pk=report.pk).update(fixed_at=None)
        transitions.apply_transition(report.incident, Transition.MATCH, now=now, text=f"explained by #{incident.pk}")
    match_waiting_reports(incident, now=now)


def rematch_after_split(incident: Incident, *, now: datetime) -> None:
    """Spans went elsewhere: reports that they explained go with them."""
    for report in _matched_reports(incident, IncidentState.MATCHED):
        explains = explaining_incident(report, now=now)
        if explains is not None and explains.pk != incident.pk:
            UserReport.objects.filter(pk=report.pk).update(matched_incident=explains)
            transitions.add_event(
                report.incident, "matched", now=now, text=f"explained by #{explains.pk} since the split"
            )


def explaining_incident(report: UserReport, *, now: datetime) -> Incident | None:
    """What tests found in the dataset and category of the report, over some of its data, while it was wrong.

    The earliest that is open, else the latest that is over. A false positive explains nothing.
    """
    dataset, category = report.incident.dataset_id, report.incident.category
    spans = Span.objects.filter(_overlaps_report(report, now), incident__dataset=dataset, incident__category=category)
    here = spans if report.copy_id is None else spans.filter(copy=report.copy_id)
    matching = here.exclude(incident__resolution=Resolution.FALSE_POSITIVE).select_related("incident")
    first = matching.filter(incident__resolved_at=None).order_by("incident__opened_at", "incident").first()
    first = first or matching.order_by("-incident__resolved_at", "-incident").first()
    return first.incident if first else None


def _overlaps_report(report: UserReport, now: datetime) -> Q:
    """Spans whose data overlaps the report's, and whose life overlaps the time for which it says that the data is wrong."""
    alive = Q(began_at__lte=now) & (Q(ended_at=None) | Q(ended_at__gt=report.occurred_at))
    return alive & Q(start__lt=report.end, end__gt=report.start)


def _matched_reports(incident: Incident, state: IncidentState) -> QuerySet[UserReport]:
    reports = UserReport.objects.filter(matched_incident=incident, incident__state=state)
    return reports.select_related("incident__dataset__team")


def _match_or_ask_producer(incident: Incident, report: UserReport, now: datetime) -> None:
    if not _match(report, now):
        transitions.apply_transition(
            incident, Transition.ASK_PRODUCER, now=now, text=f"team {incident.dataset.team.name}"
        )
        _ask_producer(incident, now, text=report.text)


def _match(report: UserReport, now: datetime) -> bool:
    """Whether something explains it. What is over already ends the report with it."""
    explains = explaining_incident(report, now=now)
    if explains is None:
        return False
    report.matched_incident = explains
    report.save(update_fields=["matched_incident"])
    transitions.apply_transition(report.incident, Transition.MATCH, now=now, text=f"explained by #{explains.pk}")
    if explains.resolved_at is not None:
        text = f"#{explains.pk} was resolved"
        _close_report(
            report.incident, Resolution(explains.resolution), "", now, None, text, fixed_at=explains.resolved_at
        )
    return True


def _ask_producer(incident: Incident, now: datetime, *, text: str) -> None:
    """The producers are told, and reminded until they acknowledge or reject."""
    reminders.start_reminders(incident, now=now)
    outbox.enqueue(incident, "reported", (), now=now, text=text)


def _close_report(
    incident: Incident,
    how: Resolution,
    actor: str,
    now: datetime,
    expected_revision: int | None,
    why: str,
    *,
    fixed_at: datetime | None = None,
) -> Incident:
    was = incident.state
    sets = {"resolved_at": now, "resolution": how.value, "resolved_why": why}
    transitions.apply_transition(
        incident, Transition.RESOLVE, sets, now=now, actor=actor, text=why, expected_revision=expected_revision
    )
    UserReport.objects.filter(pk=incident.pk).update(fixed_at=fixed_at or now)
    if was == IncidentState.ACKNOWLEDGED:
        outbox.enqueue(incident, "resolved", (), now=now, actor=actor, text=why)
    else:  # whoever was asked has heard of a rejection already
        notified = reporter_recipients(incident) if was == IncidentState.REJECTED else waiting_recipients(incident)
        outbox.enqueue_to(incident, "resolved", notified, now=now, actor=actor, text=why)
    return incident


def waiting_recipients(incident: Incident) -> list[Recipient]:
    """For word of its end: who heard that it began, and who reported it."""
    return [*(reporter_recipients(incident) if incident.reported else ()), *recipients.earlier_recipients(incident)]


def _check_daily_limit(reporter: User, now: datetime) -> None:
    mine = UserReport.objects.filter(reporter=reporter, incident__opened_at__gt=now - _DAY)
    last = list(mine.order_by("-incident__opened_at").values_list("incident__opened_at", flat=True)[:REPORTS_A_DAY])
    if len(last) == REPORTS_A_DAY:
        raise Refused.for_fields(
            {
                "text": f"You have reported {REPORTS_A_DAY} times in 24 hours, and nobody may more often. The next report can be made "
                f"at {last[-1] + _DAY:%Y-%m-%d %H:%M:%S} UTC."
            }
        )


def _check_report(category: str, text: str, occurred_at: datetime | None, now: datetime) -> None:
    problems = {}
    categories: Iterable[str] = Category.values
    if category not in categories:
        problems["category"] = f"There is no category `{category}`.{did_you_mean(category, categories)}"
    if not text.strip():
        problems["text"] = "Say what is wrong: the owners read it."
    if occurred_at is not None and occurred_at > now:
        problems["occurred_at"] = f"{occurred_at:%Y-%m-%d %H:%M} UTC has not come yet."
    if problems:
        raise Refused.for_fields(problems)
