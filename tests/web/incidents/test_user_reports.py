"""What users report: matched by dataset, category, data and life; or put to the producers until they answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from incidents.lifecycle import actions, merge_split, resolution, user_reports
from incidents.lifecycle.intake import process_flips
from incidents.lifecycle.user_reports import REPORTS_A_DAY
from incidents.models import Incident, IncidentEvent, Message
from incidents.notifications import reminders
from lakehub.accounts.models import Role, User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.interval import Interval
from quality.models import Unit
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset()


@pytest.fixture
def rui() -> User:
    person = factories.user("rui")
    factories.member(person, factories.team(), Role.ON_CALL)
    return person


def report(
    stage: FailingDataset, by: User, over: Interval = BAD_DAY, *, now: datetime = NOW, **fields: object
) -> Incident:
    category = str(fields.pop("category", "consistency"))
    where = fields.pop("where", None)
    copy = factories.copy_of(stage.dataset, str(where)) if where else None
    return user_reports.file_report(
        stage.dataset,
        category,
        over,
        text="Odd.",
        reporter=by,
        now=now,
        copy=copy,
        **fields,  # type: ignore[arg-type]
    )


def seen(reported: Incident) -> tuple[str, int | None]:
    reported.refresh_from_db()
    reported.report.refresh_from_db()
    return reported.state, reported.report.matched_incident_id


# How many


def test_a_person_reports_so_often_a_day_and_no_more(stage: FailingDataset, rui: User) -> None:
    for index in range(REPORTS_A_DAY):
        report(stage, rui, now=NOW + index * MINUTE)
    later = NOW + HOUR
    with (
        CaptureQueriesContext(connection) as asked,
        pytest.raises(Refused, match=r"reported 50 times in 24 hours.*at 2026-11-18 19:32:00 UTC") as refused,
    ):
        report(stage, rui, now=later)
    assert list(refused.value.fields) == ["text"]
    assert all(query["sql"].startswith("SELECT") for query in asked)
    assert Incident.objects.filter(reported=True).count() == REPORTS_A_DAY
    report(stage, factories.user("olga"), now=later)
    with pytest.raises(Refused):
        report(stage, rui, now=NOW + DAY - MINUTE)
    report(stage, rui, now=NOW + DAY)
    with pytest.raises(Refused, match="at 2026-11-18 19:33:00 UTC"):
        report(stage, rui, now=NOW + DAY)


def test_of_many_at_the_same_time_only_so_many_are_taken(
    stage: FailingDataset, rui: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look is behind the lock: others may have reported since the first one."""
    monkeypatch.setattr(user_reports, "REPORTS_A_DAY", 1)
    select = Dataset.objects.select_for_update

    def after_another(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(Dataset.objects, "select_for_update", select)
        report(stage, rui)
        return select(*args, **options)

    monkeypatch.setattr(Dataset.objects, "select_for_update", after_another)
    with pytest.raises(Refused, match="reported 1 times"):
        report(stage, rui)


# Matching


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "matched"),
        ({"where": "dc2"}, "matched"),
        ({"where": "dc1"}, "waiting"),
        ({"category": "others"}, "waiting"),
        ({"over": DAY_BEFORE}, "waiting"),
        ({"over": Interval(DAY_BEFORE.start, BAD_DAY.start + HOUR)}, "matched"),
    ],
)
def test_it_is_explained_by_what_is_of_its_category_copy_and_data(
    stage: FailingDataset, rui: User, fields: dict[str, object], state: str
) -> None:
    stage.opened()
    assert seen(report(stage, rui, **fields))[0] == state  # type: ignore[arg-type]


def test_what_was_alive_when_it_was_seen_explains_it_and_ends_it(stage: FailingDataset, rui: User) -> None:
    incident = stage.opened()
    stage.passes(Unit.objects.get(), at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    reported = report(stage, rui, now=NOW + 3 * HOUR, occurred_at=NOW + 59 * MINUTE)
    assert seen(reported) == ("resolved", incident.pk)
    assert (reported.resolution, reported.report.fixed_at) == ("auto", NOW + HOUR)
    late = report(stage, rui, now=NOW + 3 * HOUR, occurred_at=NOW + HOUR)
    assert seen(late) == ("waiting", None)


def test_an_incident_that_opens_later_explains_it(stage: FailingDataset, rui: User) -> None:
    reported = report(stage, rui)
    other = report(stage, rui, DAY_BEFORE)
    incident = stage.opened(at=NOW + HOUR)
    assert seen(reported) == ("matched", incident.pk)
    assert seen(other) == ("waiting", None)
    stage.fails(DAY_BEFORE, at=NOW + 2 * HOUR)
    process_flips(now=NOW + 2 * HOUR)
    assert seen(other) == ("matched", incident.pk)


def test_a_false_positive_explains_nothing_and_the_producers_are_asked_then(stage: FailingDataset, rui: User) -> None:
    incident = stage.opened()
    reported = report(stage, rui)
    assert not Message.objects.filter(incident=reported).exists()
    resolution.resolve_by_force(
        incident.pk, resolution="false_positive", false_positive="wrong_sla", why="No harm.", actor="b", now=NOW + HOUR
    )
    assert seen(reported) == ("waiting", None)
    assert Message.objects.get(incident=reported).occasion == "reported"
    assert seen(report(stage, rui, now=NOW + HOUR, occurred_at=NOW))[0] == "waiting"


def test_what_is_reopened_explains_its_reports_again(stage: FailingDataset, rui: User) -> None:
    accepted, false = stage.opened(), stage.opened(day("2026-11-02"))
    ended, unmatched = report(stage, rui), report(stage, rui, day("2026-11-02"))
    resolution.resolve_by_force(accepted.pk, resolution="accepted", why="Lost.", actor="b", now=NOW + HOUR)
    resolution.resolve_by_force(
        false.pk, resolution="false_positive", false_positive="wrong_test", why="Odd.", actor="b", now=NOW + HOUR
    )
    assert (seen(ended)[0], seen(unmatched)[0]) == ("resolved", "waiting")
    for incident in (accepted, false):
        resolution.undo_resolution(incident.pk, actor="b", now=NOW + 2 * HOUR)
    assert seen(ended) == ("matched", accepted.pk)
    assert seen(unmatched) == ("matched", false.pk)
    assert ended.report.fixed_at is None


def test_reports_follow_the_spans_of_a_split_and_a_merge(stage: FailingDataset, rui: User) -> None:
    stage.fails(DAY_BEFORE)
    incident = stage.opened()
    reported = report(stage, rui, DAY_BEFORE)
    made = merge_split.split_incident(incident.pk, [Unit.objects.get(start=DAY_BEFORE.start).pk], actor="ana", now=NOW)
    assert seen(reported) == ("matched", made.pk)
    merge_split.merge_incidents(incident.pk, made.pk, actor="ana", now=NOW)
    assert seen(reported) == ("matched", incident.pk)


# The producers' answer


def test_an_acknowledged_report_ends_by_the_producers_word_only(stage: FailingDataset, rui: User) -> None:
    reported = report(stage, rui)
    actions.acknowledge(reported.pk, actor=rui, now=NOW)
    stage.opened(at=NOW + HOUR)
    assert seen(reported) == ("acknowledged", None)


def test_who_insists_after_the_end_asks_the_producers_again(stage: FailingDataset, rui: User) -> None:
    reported = report(stage, rui)
    actions.acknowledge(reported.pk, actor=rui, now=NOW)
    user_reports.declare_fixed(reported.pk, why="Backfilled.", actor=rui, now=NOW + HOUR)
    again = user_reports.dispute_report(reported.pk, why="It is still odd.", actor=rui, now=NOW + 2 * HOUR)
    assert (again.state, again.resolved_at, again.acknowledged_at) == ("waiting", None, None)
    assert seen(reported)[0] == "waiting"
    assert reported.report.fixed_at is None
    with pytest.raises(Conflict, match="cannot dispute"):
        user_reports.dispute_report(reported.pk, why="And again.", actor=rui, now=NOW + 2 * HOUR)


def test_producers_are_reminded_ever_more_seldom_until_they_answer(stage: FailingDataset, rui: User) -> None:
    reported = report(stage, rui)  # of tier 1: after 2 h, then 4, 8, ... 72 at most
    asked_at, at = [], NOW
    while at < NOW + 20 * DAY:
        at += HOUR
        if reminders.send_due_reminders(now=at):
            asked_at.append((at - NOW) // HOUR)
    assert asked_at[:5] == [2, 6, 14, 30, 62]
    assert {later - sooner for sooner, later in pairwise(asked_at[6:])} == {72}
    assert IncidentEvent.objects.filter(incident=reported, kind="reminded").count() == len(asked_at)
    assert "Reminder 1: nobody has" in Message.objects.filter(incident=reported)[1].body
    actions.acknowledge(reported.pk, actor=rui, now=at)
    assert reminders.send_due_reminders(now=at + 10 * DAY) == 0
    assert seen(reported)[0] == "acknowledged"
    assert reported.report.remind_at is None


def test_an_acknowledgement_that_is_taken_back_starts_the_reminders_again(stage: FailingDataset, rui: User) -> None:
    reported = report(stage, rui)
    actions.acknowledge(reported.pk, actor=rui, now=NOW)
    assert actions.release(reported.pk, actor=rui, now=NOW + HOUR).state == "waiting"
    assert reminders.send_due_reminders(now=NOW + HOUR + timedelta(minutes=119)) == 0
    assert reminders.send_due_reminders(now=NOW + 3 * HOUR) == 1


def test_two_workers_remind_once(stage: FailingDataset, rui: User, monkeypatch: pytest.MonkeyPatch) -> None:
    report(stage, rui)
    once = reminders._send_reminder

    def twice(number: int, now: datetime) -> bool:
        assert once(number, now)
        return once(number, now)

    monkeypatch.setattr(reminders, "_send_reminder", twice)
    reminders.send_due_reminders(now=NOW + 2 * HOUR)
    assert IncidentEvent.objects.filter(kind="reminded").count() == 1
