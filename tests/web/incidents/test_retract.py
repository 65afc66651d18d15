"""What is taken back: told to nobody where it was not told, else taken back by a message that comes after it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core import mail
from django.db.models.functions import Now

from incidents.channels import DeliveryError, Notification
from incidents.channels.email import Email
from incidents.lifecycle import resolution
from incidents.models import Digest, Incident, Message
from incidents.notifications import routes, sender
from incidents.notifications.periodic import digests
from incidents.notifications.sender import send_due_messages
from tests.factories import HOUR, MINUTE, NOW
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db
LATER = NOW + MINUTE


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset.by_mail()


@pytest.fixture
def told_incident(stage: FailingDataset) -> Incident:
    """An incident that the team was told of, and which a person has resolved just now."""
    incident = stage.opened()
    send_due_messages(now=NOW)
    resolve(incident)
    return incident


def resolve(incident: Incident) -> None:
    resolution.resolve_by_force(incident.pk, resolution="accepted", why="We know.", actor="ana", now=LATER)


def reopen(incident: Incident) -> None:
    resolution.undo_resolution(incident.pk, actor="ana", why="We do not.", now=LATER + MINUTE)


def send(at: datetime = LATER + 2 * MINUTE) -> None:
    send_due_messages(now=at)


def subjects() -> list[str]:
    return [message.subject.split("]")[0] + "]" for message in mail.outbox]


def states() -> list[tuple[str, str]]:
    return list(Message.objects.order_by("pk").values_list("occasion", "state"))


def test_what_nobody_has_in_hand_is_told_to_nobody(told_incident: Incident) -> None:
    reopen(told_incident)
    send()
    assert states() == [("opened", "sent"), ("resolved", "dropped")]


def test_what_is_being_sent_at_that_moment_is_told_to_be_taken_back(
    told_incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver = Email.send

    def reopened_meanwhile(channel: Email, note: Notification, address: str, *, now: datetime) -> str:
        monkeypatch.undo()
        reopen(told_incident)
        return deliver(channel, note, address, now=now)

    monkeypatch.setattr(Email, "send", reopened_meanwhile)
    send()
    assert states() == [("opened", "sent"), ("resolved", "sent"), ("reopened", "pending")]
    send()
    assert subjects() == ["[opened]", "[resolved]", "[reopened]"]


def test_what_came_later_does_not_arrive_first(told_incident: Incident) -> None:
    """A sender was killed with it: for as long as nobody knows, the next message of that incident waits."""
    resolved = Message.objects.filter(occasion="resolved")
    resolved.update(leased_until=Now() + sender.LEASE)
    reopen(told_incident)
    send()
    assert subjects() == ["[opened]"]
    resolved.update(leased_until=Now() - timedelta(seconds=1))
    send(LATER + 3 * MINUTE)
    assert subjects() == ["[opened]", "[resolved]", "[reopened]"]


def test_what_did_not_arrive_before_it_was_taken_back_is_not_the_last_word(
    told_incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down_meanwhile(channel: Email, note: Notification, address: str, *, now: datetime) -> str:
        reopen(told_incident)
        raise DeliveryError("The mail server is down.", retry_after=HOUR)

    monkeypatch.setattr(Email, "send", down_meanwhile)
    send()
    monkeypatch.undo()
    send()
    send(LATER + 2 * HOUR)
    assert subjects() == ["[opened]", "[reopened]"]
    dropped = Message.objects.get(occasion="resolved")
    assert (dropped.state, dropped.why) == ("dropped", "taken back, and that was told before")


def resolved_while_collected(stage: FailingDataset) -> Incident:
    """That it began and that it is over wait for the digest of the only route."""
    route = {"channel": "email", "address": "ops@example.org", "digest": "hourly"}
    routes.set_route(stage.dataset.team, route, actor="ana", now=NOW)
    incident = stage.opened()
    send_due_messages(now=NOW)
    resolve(incident)
    send()
    return incident


def test_what_is_in_a_digest_that_was_written_is_told_to_be_taken_back(stage: FailingDataset) -> None:
    incident = resolved_while_collected(stage)
    digests.write_due_digests(now=NOW + HOUR)
    assert Digest.objects.get().messages.count() == 2
    reopen(incident)
    digests.send_due_digests(now=NOW + HOUR)
    send(NOW + HOUR)
    assert states() == [("opened", "sent"), ("resolved", "sent"), ("reopened", "collected")]


def test_what_was_collected_only_is_taken_out_of_the_digest(stage: FailingDataset) -> None:
    incident = resolved_while_collected(stage)
    reopen(incident)
    digests.write_due_digests(now=NOW + HOUR)
    assert Digest.objects.get().messages.get().occasion == "opened"
    assert states() == [("opened", "collected"), ("resolved", "dropped")]
