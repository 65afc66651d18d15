"""The weekly report goes out: one letter a team and week, written once and sent until it arrives or is given up.

The row is the claim: two tasks at once write one letter. A sender that is killed before it sends loses nothing; killed
between sending and noting it, the mail comes twice with the same Message-ID.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, time, timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from incidents.channels import DeliveryError, Notification
from incidents.models import NOT_LEASED, MessageState, WeeklyReportMail
from incidents.notifications.periodic import weekly_report_text
from incidents.notifications.sender import deliver
from lakehub.accounts.models import Team
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.errors import Refused
from quality.generation.weekly_report import WeeklyReport, week_of, weekly_report

logger = logging.getLogger(__name__)
SEND_AT = time(8, tzinfo=UTC)
"""Of Monday, when people read their mail."""
LEASE = timedelta(seconds=60)
RETRIES = Backoff(base=timedelta(minutes=1), cap=timedelta(hours=2))
MAX_ATTEMPTS = 12


def write_due_reports(*, now: datetime) -> int:
    """Writes this week's letters to the teams that have none yet. The number written."""
    week = week_of(now)
    if now < datetime.combine(week, SEND_AT):
        return 0
    written = 0
    owning = Team.objects.filter(Q(datasets__offboarded_at=None) | Q(datasets__missing_since__isnull=False))
    for team in owning.filter(datasets__isnull=False).exclude(weekly_letters__week=week).distinct():
        with log_and_continue(f"The weekly report to {team}"):
            written += _write_report(team, weekly_report(team, now=now), now=now)
    return written


def _write_report(team: Team, report: WeeklyReport, *, now: datetime) -> int:
    """Who cannot be written to, or is asked nothing, gets no mail; the row says so."""
    must_send = bool(report.addresses) and not report.is_clean
    letter, is_new = WeeklyReportMail.objects.get_or_create(
        team=team,
        week=report.week,
        defaults={
            "address": ", ".join(report.addresses),
            "subject": weekly_report_text.weekly_subject(report)[:300],
            "body": weekly_report_text.weekly_body(report),
            "state": MessageState.PENDING if must_send else MessageState.DROPPED,
            "created_at": now,
            "due_at": now,
        },
    )
    if is_new and not report.addresses:
        logger.warning("%s was not mailed: name an address with `manage.py add_team %s --email ...`", letter, team)
    return int(is_new)


def send_due_reports(*, now: datetime, limit: int = 20) -> int:
    """Sends the letters that are due. The number that went out."""
    numbers = list(_due_reports(now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
    return sum(_send_report(number, now=now) for number in numbers)


def _due_reports(now: datetime) -> QuerySet[WeeklyReportMail]:
    return WeeklyReportMail.objects.filter(NOT_LEASED, state=MessageState.PENDING, due_at__lte=now)


def _send_report(number: int, *, now: datetime) -> bool:
    if _due_reports(now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    letter = WeeklyReportMail.objects.select_related("team").get(pk=number)
    note = Notification(letter.pk, "weekly", letter.subject, letter.body, {}, kind="letter")
    pending_mails = WeeklyReportMail.objects.filter(pk=number, state=MessageState.PENDING)
    try:
        deliver(note, "email", letter.address, team=letter.team, now=now)
    except (DeliveryError, Refused) as error:
        attempt = letter.attempt + 1
        is_permanent = isinstance(error, Refused) or error.is_permanent or attempt >= MAX_ATTEMPTS
        logger.warning("%s was not sent: %s", letter, error)
        state = MessageState.FAILED if is_permanent else MessageState.PENDING
        due_at = now + RETRIES.delay(attempt - 1, 0.0)
        pending_mails.update(state=state, attempt=attempt, error=str(error), due_at=due_at, leased_until=None)
        return False
    pending_mails.update(state=MessageState.SENT, sent_at=now, attempt=letter.attempt + 1, error="", leased_until=None)
    return True
