"""Who heard of an incident hears where it goes on: merged, split, released, let go; and no alert stays behind."""

from __future__ import annotations

import pytest

from incidents.lifecycle import actions, merge_split, resolution, user_reports
from incidents.lifecycle.bulk.apply import BulkRequest, apply_to_many
from incidents.lifecycle.bulk.undo import undo_bulk_action
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, Message
from incidents.notifications.sender import send_due_messages
from lakehub.accounts.models import Team, User
from lakehub.catalog.models import Dataset
from quality.models import Unit
from tests import factories
from tests.factories import HOUR, MINUTE, NOW, day
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset, on_call_user

pytestmark = pytest.mark.django_db
FAR = day("2026-11-02")
OPS, ANALYSTS = "ops@example.org", "analysts@example.org"


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset.by_mail(OPS)


@pytest.fixture
def ana() -> User:
    return on_call_user("ana")


@pytest.fixture
def incident(stage: FailingDataset) -> Incident:
    """Of two days, and told."""
    stage.fails(DAY_BEFORE)
    made = stage.opened()
    send_due_messages(now=NOW)
    return made


def told(incident: Incident, address: str = OPS) -> list[tuple[str, str]]:
    rows = Message.objects.filter(incident=incident).order_by("pk")
    return [(row.occasion, row.state) for row in rows if row.address == address]


def reach_analysts(stage: FailingDataset, where: str) -> None:
    """A team downstream, in one data center."""
    team = factories.team("analysts")
    Team.objects.filter(pk=team.pk).update(email=ANALYSTS)
    factories.edge(stage.dataset, factories.dataset("hourly", team=team, copies=(where,)))


# Merged


def test_of_a_merge_the_one_ends_and_the_other_is_worse(stage: FailingDataset) -> None:
    into, other = stage.opened(), stage.opened(FAR)
    send_due_messages(now=NOW)
    merge_split.merge_incidents(into.pk, other.pk, actor="ana", now=NOW + HOUR)
    send_due_messages(now=NOW + HOUR)
    assert told(other) == [("opened", "sent"), ("resolved", "sent")]
    assert told(into) == [("opened", "sent"), ("worse", "sent")]
    end, news = Message.objects.order_by("pk")[2:]
    assert (f"Why: merged into #{into.pk}" in end.body, "a pass resolves it" in end.body) == (True, False)
    assert end.facts["state"] == "resolved"
    assert f"Why: #{other.pk} was merged into it: dc2: 2026-11-02" in news.body


def test_who_heard_of_the_merged_one_alone_hears_of_the_other_and_of_its_end(stage: FailingDataset) -> None:
    reach_analysts(stage, "dc1")
    into, other = stage.opened(), stage.opened(FAR, "dc1")
    send_due_messages(now=NOW)
    assert (told(into, ANALYSTS), told(other, ANALYSTS)) == ([], [("opened", "sent")])
    merge_split.merge_incidents(into.pk, other.pk, actor="ana", now=NOW + HOUR)
    for unit in Unit.objects.filter(verdict="fail"):
        stage.passes(unit, at=NOW + 2 * HOUR)
    process_flips(now=NOW + 2 * HOUR)
    send_due_messages(now=NOW + 2 * HOUR)
    assert told(other, ANALYSTS) == [("opened", "sent"), ("resolved", "sent")]
    assert [occasion for occasion, _ in told(into, ANALYSTS)] == ["worse", "resolved"]


def test_of_the_same_data_nothing_is_worse(stage: FailingDataset) -> None:
    into = stage.opened()
    other = Incident.objects.create(dataset=stage.dataset, category=into.category, opened_at=NOW)
    second = factories.unit(factories.test(stage.dataset, into.category, key="second"), into.spans.get().copy, BAD_DAY)
    factories.span(other, second)
    merge_split.merge_incidents(into.pk, other.pk, actor="ana", now=NOW)
    assert [occasion for occasion, _ in told(into)] == ["opened"]


def test_nobody_hears_of_the_end_of_what_was_merged_before_it_was_told(stage: FailingDataset) -> None:
    into, other = stage.opened(), stage.opened(FAR)
    merge_split.merge_incidents(into.pk, other.pk, actor="ana", now=NOW)
    for at in (NOW, NOW + HOUR):
        send_due_messages(now=at)
    assert told(other) == [("opened", "dropped"), ("resolved", "dropped")]
    assert told(into) == [("opened", "sent")]
    assert "2026-11-02" in Message.objects.get(incident=into).body


# Split


def test_what_is_split_off_is_told_to_who_heard_of_the_whole_and_has_an_end_of_its_own(
    stage: FailingDataset, incident: Incident
) -> None:
    unit = Unit.objects.get(start=DAY_BEFORE.start)
    Team.objects.update(email="days@example.org")
    made = merge_split.split_incident(incident.pk, [unit.pk], actor="ana", now=NOW + HOUR)
    stage.passes(unit, at=NOW + 2 * HOUR)
    process_flips(now=NOW + 2 * HOUR)
    assert [occasion for occasion, _ in told(made)] == ["opened", "resolved"]
    assert [occasion for occasion, _ in told(incident)] == ["opened"]


def test_what_somebody_has_is_split_into_two_that_they_have(incident: Incident, ana: User) -> None:
    actions.acknowledge(incident.pk, actor=ana, now=NOW)
    made = merge_split.split_incident(
        incident.pk, [Unit.objects.get(start=DAY_BEFORE.start).pk], actor="ana", now=NOW + HOUR
    )
    send_due_messages(now=NOW + HOUR)
    assert told(made) == [("opened", "sent"), ("acknowledged", "sent")]


def test_what_is_split_off_from_what_is_snoozed_is_too(incident: Incident, ana: User) -> None:
    actions.snooze(incident.pk, NOW + 2 * HOUR, actor=ana, now=NOW)
    made = merge_split.split_incident(
        incident.pk, [Unit.objects.get(start=DAY_BEFORE.start).pk], actor="ana", now=NOW + HOUR
    )
    send_due_messages(now=NOW + HOUR)
    assert told(made) == [("opened", "held")]
    send_due_messages(now=NOW + 2 * HOUR)
    assert told(made) == [("opened", "sent")]


# Released


def test_who_was_told_that_somebody_has_it_is_told_that_nobody_has(incident: Incident, ana: User) -> None:
    actions.acknowledge(incident.pk, actor=ana, now=NOW)
    send_due_messages(now=NOW)
    Team.objects.update(email="days@example.org")
    actions.release(incident.pk, actor=ana, now=NOW + HOUR)
    send_due_messages(now=NOW + HOUR)
    assert told(incident) == [("opened", "sent"), ("acknowledged", "sent"), ("released", "sent")]


def test_nobody_hears_of_a_release_who_did_not_hear_that_somebody_had_it(incident: Incident, ana: User) -> None:
    actions.acknowledge(incident.pk, actor=ana, now=NOW)
    actions.release(incident.pk, actor=ana, now=NOW + MINUTE)
    assert told(incident) == [("opened", "sent"), ("acknowledged", "dropped")]


def test_an_undone_acknowledgement_that_was_told_is_told_as_a_release(incident: Incident, ana: User) -> None:
    report = apply_to_many([incident.pk], BulkRequest("acknowledge"), actor=ana, now=NOW)
    send_due_messages(now=NOW)
    assert report.bulk is not None
    undo_bulk_action(report.bulk.pk, actor=ana, now=NOW + MINUTE)
    send_due_messages(now=NOW + MINUTE)
    assert told(incident)[1:] == [("acknowledged", "sent"), ("released", "sent")]


# Let go, and reports


def test_who_heard_of_it_hears_that_its_dataset_was_let_go(stage: FailingDataset, incident: Incident) -> None:
    Team.objects.update(email="others@example.org")
    Dataset.objects.update(offboarded_at=NOW + HOUR)
    resolution.close_offboarded(now=NOW + HOUR)
    send_due_messages(now=NOW + HOUR)
    assert told(incident) == [("opened", "sent"), ("resolved", "sent")]
    assert told(incident, "others@example.org") == []


def test_who_was_asked_about_a_report_hears_that_it_was_rejected_let_go_or_explained(
    stage: FailingDataset, ana: User
) -> None:
    rejected, left, explained = (
        user_reports.file_report(stage.dataset, category, BAD_DAY, text="Odd.", reporter=ana, now=NOW)
        for category in ("others", "duplicates", "consistency")
    )
    user_reports.reject_report(rejected.pk, why="As designed.", actor=ana, now=NOW)
    unit = stage.fails()
    process_flips(now=NOW + MINUTE)
    stage.passes(unit, at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    Dataset.objects.update(offboarded_at=NOW + HOUR)
    resolution.close_offboarded(now=NOW + HOUR)
    assert [occasion for occasion, _ in told(rejected)] == ["reported", "rejected", "resolved"]
    for reported in (left, explained):
        assert [occasion for occasion, _ in told(reported)] == ["reported", "resolved"]
        assert [occasion for occasion, _ in told(reported, "ana@example.org")] == ["resolved"]
