"""The weekly report goes out: one letter a team and week, written once and sent until it arrives or is given up.

The row is the claim: two tasks at once write one letter. A sender that is killed before it sends loses nothing; killed
between sending and noting it, the mail comes twice with the same Message-ID.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, time, timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from incidents.channels import CannotSend, Note
from incidents.messages import letters
from incidents.messages.delivering import deliver
from incidents.models import FREE, MessageState, WeeklyLetter
from lakehub.accounts.models import Team
from lakehub.kernel.apart import apart
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.errors import Refused
from quality.reports import WeeklyReport, monday, weekly

log = logging.getLogger(__name__)
HOUR = time(8, tzinfo=UTC)
"""Of Monday, when people read their mail."""
LEASE = timedelta(seconds=60)
RETRIES = Backoff(base=timedelta(minutes=1), cap=timedelta(hours=2))
ATTEMPTS = 12


def write_due(*, now: datetime) -> int:
    """Writes this week's letters to the teams that have none yet. The number written."""
    week = monday(now)
    if now < datetime.combine(week, HOUR):
        return 0
    written = 0
    owning = Team.objects.filter(Q(datasets__offboarded_at=None) | Q(datasets__missing_since__isnull=False))
    for team in owning.filter(datasets__isnull=False).exclude(weekly_letters__week=week).distinct():
        with apart(f"The weekly report to {team}"):
            written += _write(team, weekly(team, now=now), now=now)
    return written


def _write(team: Team, report: WeeklyReport, *, now: datetime) -> int:
    """Who cannot be written to, or is asked nothing, gets no mail; the row says so."""
    wanted = bool(report.addresses) and not report.is_clean
    letter, is_new = WeeklyLetter.objects.get_or_create(
        team=team,
        week=report.week,
        defaults={
            "address": ", ".join(report.addresses),
            "subject": letters.subject(report)[:300],
            "body": letters.body(report),
            "state": MessageState.PENDING if wanted else MessageState.DROPPED,
            "created_at": now,
            "due_at": now,
        },
    )
    if is_new and not report.addresses:
        log.warning("%s was not mailed: name an address with `manage.py add_team %s --email ...`", letter, team)
    return int(is_new)


def send_due(*, now: datetime, limit: int = 20) -> int:
    """Sends the letters that are due. The number that went out."""
    numbers = list(_due(now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
    return sum(_send(number, now=now) for number in numbers)


def _due(now: datetime) -> QuerySet[WeeklyLetter]:
    return WeeklyLetter.objects.filter(FREE, state=MessageState.PENDING, due_at__lte=now)


def _send(number: int, *, now: datetime) -> bool:
    if _due(now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    letter = WeeklyLetter.objects.select_related("team").get(pk=number)
    note = Note(letter.pk, "weekly", letter.subject, letter.body, {}, kind="letter")
    ours = WeeklyLetter.objects.filter(pk=number, state=MessageState.PENDING)
    try:
        deliver(note, "email", letter.address, team=letter.team, now=now)
    except (CannotSend, Refused) as error:
        attempt = letter.attempt + 1
        for_good = isinstance(error, Refused) or error.for_good or attempt >= ATTEMPTS
        log.warning("%s was not sent: %s", letter, error)
        state = MessageState.FAILED if for_good else MessageState.PENDING
        due_at = now + RETRIES.delay(attempt - 1, 0.0)
        ours.update(state=state, attempt=attempt, error=str(error), due_at=due_at, leased_until=None)
        return False
    ours.update(state=MessageState.SENT, sent_at=now, attempt=letter.attempt + 1, error="", leased_until=None)
    return True
