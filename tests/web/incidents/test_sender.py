from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core import mail
from django.db.models.functions import Now

from incidents.channels import DeliveryError, Notification
from incidents.channels.email import Email
from incidents.lifecycle import actions
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, IncidentEvent, Message
from incidents.notifications import sender
from incidents.notifications.sender import MAX_ATTEMPTS, send_due_messages
from lakehub.accounts.models import Team
from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.outcome import Outcome
from quality.models import Category, Lane, Unit
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.web.incidents.failing_dataset import BAD_DAY, FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage() -> FailingDataset:
    made = FailingDataset()
    Team.objects.update(email="ops@example.org")
    return made


def state() -> tuple[str, str]:
    message = Message.objects.earliest("pk")
    return message.state, message.why


def subjects() -> list[str]:
    return [message.subject.split("]")[0] + "]" for message in mail.outbox]


def tell(at: datetime) -> None:
    process_flips(now=at)
    send_due_messages(now=at)


def test_a_message_goes_to_the_team_and_says_what_since_when_and_where_to_look(stage: FailingDataset) -> None:
    stage.fails(observed=0.9898, threshold="> 99.9%", detail={"observed": "98.98%"}, due_at=NOW + 5 * MINUTE)
    tell(NOW)
    (message,) = mail.outbox
    incident = Incident.objects.get()
    assert message.to == ["ops@example.org"]
    for text in (
        "98.98%, needs > 99.9%",
        "Data: dc2: 2026-11-16",
        "Since: 2026-11-17 19:32 UTC",
        "Next rerun: 2026-11-17 19:37 UTC",
        f"/incidents/{incident.pk}",
    ):
        assert text in message.body
    assert state() == ("sent", "")


def test_it_is_sent_once(stage: FailingDataset) -> None:
    stage.fails()
    for _ in range(3):
        tell(NOW)
    assert len(mail.outbox) == 1


def test_who_was_told_that_it_began_is_told_how_it_went_on(stage: FailingDataset) -> None:
    unit = stage.fails()
    tell(NOW)
    person = factories.user("ana")
    actions.acknowledge(Incident.objects.get().pk, actor=person, now=NOW)
    stage.passes(unit, at=NOW + HOUR)
    tell(NOW + HOUR)
    assert subjects() == ["[opened]", "[acknowledged]", "[resolved]"]
    assert "By: ana" in mail.outbox[1].body


def test_nobody_hears_of_what_healed_before_the_message_went_out(stage: FailingDataset) -> None:
    unit = stage.fails()
    process_flips(now=NOW)
    stage.passes(unit, at=NOW + MINUTE)
    tell(NOW + MINUTE)
    assert mail.outbox == []
    assert state() == ("dropped", "resolved before it was sent")
    assert Message.objects.latest("pk").why == "nobody was told that it began"


def test_a_message_is_held_while_stale_data_explains_it(stage: FailingDataset) -> None:
    stage.stale(BAD_DAY.start)
    process_flips(now=NOW)
    stage.fails()
    tell(NOW)
    freshness = Incident.objects.get(category=Category.FRESHNESS)
    assert subjects() == ["[opened]"]
    held = Message.objects.get(incident__category=Category.CONSISTENCY)
    assert (held.state, held.held_by, held.why) == ("held", freshness, f"flights@dc2 is stale: #{freshness.pk}")


def test_stale_data_that_is_not_sustained_yet_holds_too() -> None:
    stage = FailingDataset(sustain=2 * HOUR)
    stage.stale(BAD_DAY.start)
    unit = stage.fails()
    Unit.objects.filter(pk=unit.pk).update(sustain=timedelta())
    stage.sustain = timedelta()
    stage.see(unit, Outcome.FAIL)
    tell(NOW)
    assert state() == ("held", "flights@dc2 is stale")


def test_when_the_data_is_fresh_again_the_units_are_rerun_and_it_goes_out_if_they_still_fail(
    stage: FailingDataset,
) -> None:
    late, failing = stage.stale(BAD_DAY.start), stage.fails()
    tell(NOW)
    stage.passes(late, at=NOW + HOUR)
    tell(NOW + HOUR)
    message = Message.objects.get(incident__category=Category.CONSISTENCY)
    assert (message.state, message.why) == ("held", "waits for the rerun")
    again = Unit.objects.get(pk=failing.pk)
    assert (again.due_at, again.lane) == (NOW + HOUR, Lane.DUE)
    text = IncidentEvent.objects.get(kind="message_released").text
    assert (
        f"held by #{late.spans.get().incident_id} from 2026-11-17 19:32 to 2026-11-17 20:32 UTC because flights@dc2 is stale"
        in text
    )
    stage.see(failing, Outcome.FAIL, at=NOW + HOUR + MINUTE)
    tell(NOW + HOUR + 2 * MINUTE)
    message.refresh_from_db()
    assert message.state == "sent"


def test_a_rerun_that_passed_a_moment_ago_is_not_told_as_a_failure(stage: FailingDataset) -> None:
    late, failing = stage.stale(BAD_DAY.start), stage.fails()
    tell(NOW)
    stage.passes(late, at=NOW + HOUR)
    tell(NOW + HOUR)
    stage.passes(failing, at=NOW + HOUR + MINUTE)
    send_due_messages(now=NOW + HOUR + 2 * MINUTE)
    assert Message.objects.get(incident__category=Category.CONSISTENCY).state == "dropped"


def test_it_is_dropped_if_the_rerun_passes(stage: FailingDataset) -> None:
    late, failing = stage.stale(BAD_DAY.start), stage.fails()
    tell(NOW)
    stage.passes(late, at=NOW + HOUR)
    tell(NOW + HOUR)
    stage.passes(failing, at=NOW + HOUR + MINUTE)
    tell(NOW + HOUR + 2 * MINUTE)
    message = Message.objects.filter(incident__category=Category.CONSISTENCY).earliest("pk")
    assert message.state == "dropped"
    assert message.why.startswith("resolved while it was held, held by #")


def test_stale_data_of_the_other_data_center_holds_a_comparison_only(stage: FailingDataset) -> None:
    stage.unit(EVERYTHING, "dc1", Category.FRESHNESS)
    stage.stale(BAD_DAY.start, "dc1")
    stage.fails()
    stage.fails(category=Category.DUPLICATES)
    tell(NOW)
    states = dict(Message.objects.values_list("incident__category", "state"))
    assert (states["consistency"], states["duplicates"]) == ("held", "sent")


def test_a_grace_period_holds_messages_until_it_ends(stage: FailingDataset) -> None:
    stage.dataset.grace_until = NOW + DAY
    stage.dataset.save()
    stage.fails()
    tell(NOW)
    assert state() == ("held", "in grace")
    send_due_messages(now=NOW + DAY)
    assert state() == ("sent", "")


def test_a_snooze_holds_what_was_not_sent_yet(stage: FailingDataset) -> None:
    incident = stage.opened()
    actions.snooze(incident.pk, NOW + HOUR, actor=factories.user(), now=NOW)
    send_due_messages(now=NOW)
    assert state() == ("held", "snoozed")
    send_due_messages(now=NOW + HOUR)
    assert state() == ("sent", "")


def test_what_did_not_arrive_is_tried_again_with_longer_waits(
    stage: FailingDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.opened()
    monkeypatch.setattr(Email, "send", _down)
    send_due_messages(now=NOW)
    message = Message.objects.get()
    assert (message.state, message.attempt, message.error, message.due_at) == (
        "pending",
        1,
        "The mail server is down.",
        NOW + timedelta(seconds=10),
    )
    monkeypatch.undo()
    send_due_messages(now=NOW + timedelta(seconds=10))
    message.refresh_from_db()
    assert (message.state, message.error, message.attempt) == ("sent", "", 2)


def test_it_gives_up_in_the_end_and_says_so_on_the_timeline(
    stage: FailingDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.opened()
    monkeypatch.setattr(Email, "send", _down)
    for attempt in range(MAX_ATTEMPTS):
        send_due_messages(now=NOW + attempt * HOUR)
    assert state()[0] == "failed"
    assert "The mail server is down." in IncidentEvent.objects.get(kind="message_failed").text


def _down(*args: object, **kwargs: object) -> None:
    raise DeliveryError("The mail server is down.")


def test_a_message_that_another_sender_has_is_left_alone_until_its_lease_runs_out(stage: FailingDataset) -> None:
    stage.opened()
    Message.objects.update(leased_until=Now() + sender.LEASE)
    assert send_due_messages(now=NOW) == 0
    Message.objects.update(leased_until=Now() - timedelta(seconds=1))
    assert send_due_messages(now=NOW) == 1


def test_two_senders_at_once_send_one_message(stage: FailingDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.opened()
    sent: list[int] = []

    def send_while_the_other_one_looks(channel: Email, note: Notification, address: str, *, now: datetime) -> None:
        sent.append(note.id)
        if len(sent) == 1:
            send_due_messages(now=now)

    monkeypatch.setattr(Email, "send", send_while_the_other_one_looks)
    send_due_messages(now=NOW)
    assert len(sent) == 1


def test_a_team_without_addresses_reads_the_log(caplog: pytest.LogCaptureFixture) -> None:
    FailingDataset().opened()
    send_due_messages(now=NOW)
    assert "flight-ops: [opened] flights: Rows as in dc1" in caplog.text
