"""The weekly report is mailed once a team and week, whatever runs twice or is killed."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from django.core import mail

from incidents import tasks
from incidents.models import WeeklyReportMail
from incidents.notifications.periodic import letters, weekly_report
from lakehub.accounts.models import Team
from lakehub.kernel.outcome import Outcome, Verdict
from quality.generation import generate
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.mail_server import mail_server

pytestmark = pytest.mark.django_db
MONDAY = NOW.replace(day=16, hour=8, minute=0)


@pytest.fixture
def team() -> Team:
    """Owns a table without a primary key, one whose test is in error, and one that is gone."""
    owners = factories.team()
    owners.email = "ops@example.org"
    owners.save()
    weather = factories.dataset("weather", ingested=False, by_day=False, primary_key=[], tier=1)
    factories.feed(weather)
    generate.generate_outdated(now=NOW)
    planes = factories.dataset("planes", missing_since=NOW - DAY)
    factories.unit(
        factories.test(planes, title="Primary key"),
        verdict=Verdict.UNKNOWN,
        latest_outcome=Outcome.ERROR,
        last_pass_at=NOW - 9 * DAY,
        detail={"cause": "the table\nis gone"},
    )
    return owners


def test_one_letter_a_week_however_often_the_task_runs(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    for _ in range(3):
        tasks.send_weekly_reports()
    assert [message.to for message in mail.outbox] == [["ops@example.org"]]
    letter = WeeklyReportMail.objects.get()
    assert (letter.week, letter.state, letter.sent_at, letter.attempt) == (date(2026, 11, 16), "sent", NOW, 1)
    weekly_report.write_due_reports(now=NOW + 6 * DAY)
    assert WeeklyReportMail.objects.count() == 2


def test_it_says_what_is_missing_silent_and_gone(team: Team) -> None:
    weekly_report.write_due_reports(now=NOW)
    letters.send_due_letters(now=NOW)
    (message,) = mail.outbox
    assert message.subject == "[weekly report] flight-ops: 50% of 2 datasets covered, 1 silent, 1 gone"
    body = message.body
    assert "1 of 2 are tested as their metadata allows." in body
    assert "- planes (tier 2): its tests are not made yet" in body
    assert "- no duplicates test: no primary key: weather" in body
    assert "- planes: Primary key in dc1: in error, said something last on 2026-11-08: the table is gone" in body
    assert "- planes: since 2026-11-16 19:32 UTC; off-boarded on 2026-11-30 unless it comes back" in body
    assert body.endswith("http://127.0.0.1:8000/coverage?team=flight-ops")


def test_it_waits_for_monday_morning(team: Team) -> None:
    assert weekly_report.write_due_reports(now=MONDAY - MINUTE) == 0
    assert weekly_report.write_due_reports(now=MONDAY) == 1


def test_two_that_write_at_once_write_one(team: Team) -> None:
    report = weekly_report.weekly_report(team, now=NOW)
    assert [weekly_report._write_report(team, report, now=NOW) for _ in range(2)] == [1, 0]


def test_who_cannot_be_written_to_is_not_but_the_report_is_kept(team: Team, caplog: pytest.LogCaptureFixture) -> None:
    Team.objects.update(email="")
    weekly_report.write_due_reports(now=NOW)
    letters.send_due_letters(now=NOW)
    letter = WeeklyReportMail.objects.get()
    assert (letter.state, letter.address, mail.outbox) == ("dropped", "", [])
    assert "Datasets whose owners nobody can write to (2):" in letter.body
    assert "manage.py add_team flight-ops --email" in caplog.text


def test_owners_who_are_asked_nothing_are_left_alone() -> None:
    owners = factories.team()
    Team.objects.update(email="ops@example.org")
    factories.feed(factories.dataset("planes", team=owners, ingested=False, by_day=False))
    generate.generate_outdated(now=NOW)
    owners.datasets.get().skipped_checks.all().delete()
    weekly_report.write_due_reports(now=NOW)
    assert (letters.send_due_letters(now=NOW), WeeklyReportMail.objects.get().state) == (0, "dropped")


def test_it_can_be_turned_off(team: Team, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    settings.LAKEHUB_WEEKLY_REPORT = False
    tasks.send_weekly_reports()
    assert not WeeklyReportMail.objects.exists()


def over_smtp(settings: Any, port: int) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port


def test_it_arrives_over_smtp_at_all_addresses(team: Team, settings: Any) -> None:
    Team.objects.update(email="")
    for name in ("ann", "ines"):
        factories.member(factories.user(name, email=f"{name}@example.org"), team, factories.Role.OWNER)
    weekly_report.write_due_reports(now=NOW)
    with mail_server() as mailbox:
        over_smtp(settings, mailbox.port)
        assert letters.send_due_letters(now=NOW) == 1
    ((recipients, message),) = mailbox.got
    assert recipients == ["ann@example.org", "ines@example.org"]
    assert message["Message-ID"].startswith("<lakehub-letter-")
    assert "no duplicates test: no primary key" in message.get_content()


def test_a_server_that_is_down_is_tried_again_and_one_that_refuses_is_not(team: Team, settings: Any) -> None:
    weekly_report.write_due_reports(now=NOW)
    over_smtp(settings, 1)
    assert letters.send_due_letters(now=NOW) == 0
    letter = WeeklyReportMail.objects.get()
    assert (letter.state, letter.due_at, letter.attempt) == ("pending", NOW + MINUTE, 1)
    with mail_server("ops@example.org") as mailbox:
        over_smtp(settings, mailbox.port)
        letters.send_due_letters(now=NOW + HOUR)
    letter.refresh_from_db()
    assert (letter.state, mailbox.got, letter.attempt) == ("failed", [], 2)
    assert "nobody here by that name" in letter.error


def test_a_sender_that_died_keeps_a_letter_for_its_lease_only(team: Team) -> None:
    weekly_report.write_due_reports(now=NOW)
    far = NOW.replace(year=2100)
    WeeklyReportMail.objects.update(leased_until=far)
    assert letters.send_due_letters(now=NOW) == 0
    WeeklyReportMail.objects.update(leased_until=NOW - timedelta(days=3650))
    assert letters.send_due_letters(now=NOW) == 1
