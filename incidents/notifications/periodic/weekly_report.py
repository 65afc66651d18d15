"""The weekly report goes out: one letter a team and week, written once and sent until it arrives or is given up.

The row is the claim: two tasks at once write one letter.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, time

from django.db.models import Q

from incidents.models import MessageState, WeeklyReportMail
from incidents.notifications.periodic import weekly_report_text
from lakehub.accounts.models import Team
from lakehub.kernel.error_isolation import log_and_continue
from quality.generation.weekly_report import WeeklyReport, week_of, weekly_report

logger = logging.getLogger(__name__)
SEND_AT = time(8, tzinfo=UTC)
"""Of Monday, when people read their mail."""


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
