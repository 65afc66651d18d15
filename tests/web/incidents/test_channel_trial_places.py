"""Test messages to receivers that are silent hold few of the threads that answer people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from incidents.channels.webhook import Webhook
from incidents.models import Delivery
from incidents.notifications.trial_places import PLACES
from lakehub.accounts.models import AuditEntry, Role
from tests import factories

pytestmark = pytest.mark.django_db
TRIAL = "/api/v1/teams/flight-ops/channels/test"
BODY = {"channel": "webhook", "address": "http://127.0.0.1:9/hook"}


def owner(name: str) -> Client:
    person = factories.user(name)
    factories.member(person, factories.team(), Role.OWNER)
    client = Client()
    client.force_login(person)
    return client


def while_sending(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """The first message runs the first act while it is on its way, the second one, which that may send, the second."""
    left = list(acts)

    def send(*_: Any, **__: Any) -> str:
        if left:
            left.pop(0)()
        return "200"

    monkeypatch.setattr(Webhook, "send", send)


def test_a_person_has_one_test_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ines, answers = owner("ines"), []
    while_sending(monkeypatch, lambda: answers.append(ines.post(TRIAL, BODY, content_type="application/json")))
    assert ines.post(TRIAL, BODY, content_type="application/json").json()["ok"]
    (refused,) = answers
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
    assert "A test message of yours is on its way" in refused.json()["error"]["message"]
    assert (Delivery.objects.count(), AuditEntry.objects.count()) == (1, 1)
    assert ines.post(TRIAL, BODY, content_type="application/json").json()["ok"]


def test_a_process_has_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = map(owner, ("ada", "ben", "cem"))
    codes: list[int] = []

    def post_as(client: Client) -> Callable[[], None]:
        return lambda: codes.append(client.post(TRIAL, BODY, content_type="application/json").status_code)

    while_sending(monkeypatch, post_as(second), post_as(third))
    post_as(first)()
    assert PLACES == 2
    assert codes == [503, 200, 200]  # the innermost ends first
    post_as(third)()
    assert codes[-1] == 200


def test_a_place_is_given_back_whatever_happens() -> None:
    ines = owner("ines")
    for _ in range(PLACES + 1):
        assert not ines.post(TRIAL, BODY, content_type="application/json").json()["ok"]


def test_the_page_says_when_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ines, pages = owner("ines"), []
    while_sending(monkeypatch, lambda: pages.append(ines.post("/teams/flight-ops/try", BODY, follow=True)))
    ines.post(TRIAL, BODY, content_type="application/json")
    (page,) = pages
    assert "on its way, and each person has one at a time. Try again in 10 seconds." in page.content.decode()
