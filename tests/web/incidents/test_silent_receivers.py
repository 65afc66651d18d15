"""A receiver that gives no answer holds up its own messages and nobody else's. Time is a number here."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from incidents import tasks
from incidents.channels import DeliveryError, Notification
from incidents.channels.email import Email
from incidents.channels.webhook import Webhook
from incidents.models import Message, MessageState
from incidents.notifications import sender
from incidents.notifications.sender import TURN_S, send_due_messages
from incidents.tasks import only_sender
from lakehub.kernel.backoff import Backoff, Pauses, Turn
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


class Hosts:
    """Each attempt at a silent host takes ten seconds."""

    def __init__(self) -> None:
        self.at, self.asked, self.are_silent = 0.0, list[str](), True
        self.pauses = Pauses(Backoff(timedelta(seconds=10), timedelta(minutes=5)), slow_after_s=3.0)

    def send(self, channel: object, note: Notification, address: str, *, now: datetime) -> str:
        self.asked.append(address)
        if self.are_silent and "silent" in address:
            self.at += 10
            raise DeliveryError("timed out")
        if "late" in address:
            self.at += 10
        return "200"

    def turn(self, now: datetime = NOW) -> None:
        send_due_messages(now=now, turn=Turn(TURN_S, lambda: self.at), pauses=self.pauses)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    made = Hosts()
    monkeypatch.setattr(Webhook, "send", lambda *args, **kwargs: made.send(*args, **kwargs))
    return made


def messages(*addresses: str) -> None:
    incident = factories.incident(factories.dataset())
    for address in addresses:
        factories.message(
            incident, MessageState.PENDING, channel="webhook", address=f"https://{address}", occasion="assigned"
        )


def test_a_silent_host_is_asked_once_and_others_are_told(hosts: Hosts) -> None:
    messages(*(f"silent/{number}" for number in range(9)), "other/1")
    hosts.turn()
    assert hosts.asked == ["https://silent/0", "https://other/1"]
    hosts.turn(NOW + timedelta(seconds=15))
    assert len(hosts.asked) == 2


def test_what_was_put_off_arrives_once_when_the_host_answers(hosts: Hosts) -> None:
    messages(*(f"silent/{number}" for number in range(4)))
    hosts.turn()
    hosts.are_silent = False
    for seconds in (30, 40, 50):
        hosts.turn(NOW + timedelta(seconds=seconds))
    assert sorted(hosts.asked) == ["https://silent/0", *(f"https://silent/{number}" for number in range(4))]
    assert set(Message.objects.values_list("state", "error")) == {("sent", "")}


def test_a_host_that_answers_late_leaves_others_their_turn_and_gets_the_rest_one_by_one(hosts: Hosts) -> None:
    messages(*(f"late/{number}" for number in range(3)), "other/1")
    hosts.turn()
    assert hosts.asked == ["https://late/0", "https://other/1"]
    for seconds in (25, 50):
        hosts.turn(NOW + timedelta(seconds=seconds))
    assert hosts.asked[2:] == ["https://late/1", "https://late/2"]


def test_mail_has_one_server_for_all_addresses(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Email, "send", lambda *args, **kwargs: hosts.send(*args, **kwargs))
    incident = factories.incident(factories.dataset())
    for name in "abc":
        factories.message(incident, MessageState.PENDING, address=f"{name}@silent.example", occasion="assigned")
    hosts.turn()
    assert hosts.asked == ["a@silent.example"]


def test_a_call_leaves_the_rest_to_the_next_when_it_has_waited_for_long(hosts: Hosts) -> None:
    messages(*(f"silent{number}/" for number in range(5)))
    hosts.turn()
    assert len(hosts.asked) == 2


def test_one_thread_sends_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[datetime] = []
    monkeypatch.setattr(sender, "send_due_messages", lambda *, now: calls.append(now))
    with only_sender():
        tasks.send_due()
    assert calls == []
    tasks.send_due()
    assert len(calls) == 1
