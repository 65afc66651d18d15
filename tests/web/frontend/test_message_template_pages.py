"""The pages of a team's messages: words with a preview, how deliveries went, and the button that tries an address."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client

from incidents.models import Delivery, MessageTemplate, Route
from lakehub.accounts.models import AuditEntry
from tests import factories as make
from tests.factories import NOW

PAGE = "/teams/flight-ops/messages"
OPENED = f"{PAGE}/opened"
TRIAL = "/teams/flight-ops/try"


def shown(page: Client, where: str = PAGE) -> str:
    return page.get(where).content.decode()


def deliver(**fields: object) -> None:
    defaults = {
        "occasion": "opened",
        "channel": "webhook",
        "address": "hooks.example.org",
        "at": NOW,
        "ok": True,
        "ms": 12,
    }
    Delivery.objects.create(team=make.team(), **(defaults | fields))


def test_it_lists_what_was_sent_and_whether_it_arrived(page: Client) -> None:
    deliver(status="202")
    deliver(ok=False, status="503", error="hooks.example.org answered 503.")
    html = shown(page)
    assert "Arrived" in html
    assert "Not arrived" in html
    assert "hooks.example.org answered 503." in html
    assert "12 ms" in html


def test_only_what_failed_is_shown_where_that_is_asked_for(page: Client) -> None:
    deliver(address="good.example.org")
    deliver(address="bad.example.org", ok=False)
    html = shown(page, f"{PAGE}?show=failed")
    assert "bad.example.org" in html
    assert "good.example.org" not in html


def test_an_empty_log_says_what_to_do(page: Client) -> None:
    Delivery.objects.all().delete()
    assert "Try an address" in shown(page)
    assert "Nothing failed to arrive." in shown(page, f"{PAGE}?show=failed")


def test_the_form_shows_our_words_and_how_they_read(page: Client) -> None:
    html = shown(page, OPENED)
    assert "[{occasion}] {title}" in html
    assert "Likely cause: " in html
    assert "of <a href=" in html


def test_words_are_tried_before_they_are_saved(page: Client) -> None:
    form = {"subject": "{dataset} fails {category}", "body": "{title}", "act": "preview"}
    html = page.post(OPENED, form).content.decode()
    assert "<strong>" in html
    assert " fails " in html
    assert not MessageTemplate.objects.exists()


def test_words_are_saved_and_taken_back(page: Client) -> None:
    assert page.post(OPENED, {"subject": "{dataset}", "body": "{link}"}).headers["Location"] == PAGE
    assert MessageTemplate.objects.get().changed_by == "ines"
    assert "Words of its own, by ines" in shown(page, OPENED)
    page.post(OPENED, {"act": "reset"})
    assert not MessageTemplate.objects.exists()


@pytest.mark.parametrize("act", ["save", "preview"])
def test_what_is_no_variable_is_said_by_its_field(page: Client, act: str) -> None:
    answer = page.post(OPENED, {"subject": "{datset}", "body": "{{ title }}", "act": act})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "Did you mean" in html
    assert "braces hold one name from the list" in html
    assert not MessageTemplate.objects.exists()


def test_an_occasion_that_is_none_is_not_there(page: Client) -> None:
    answer = page.get(f"{PAGE}/opend")
    assert answer.status_code == 404
    assert "Did you mean" in answer.content.decode()


def test_a_trial_says_what_came_of_it(page: Client) -> None:
    answer = page.post(TRIAL, {"channel": "email", "address": "ops@example.org"}, follow=True)
    assert "ops@example.org took it over email: 250" in answer.content.decode()
    assert [message.to for message in mail.outbox] == [["ops@example.org"]]
    answer = page.post(TRIAL, {"channel": "webhook", "address": "http://127.0.0.1:9/hook"}, follow=True)
    assert "It did not arrive over webhook: 127.0.0.1 is 127.0.0.1, inside this network" in answer.content.decode()
    assert AuditEntry.objects.filter(action="test channel").count() == 2


def test_what_cannot_be_an_address_is_said(page: Client) -> None:
    answer = page.post(TRIAL, {"channel": "email", "address": "ops at example"}, follow=True)
    assert "is no e-mail address" in answer.content.decode()
    assert "no channel" in page.post(TRIAL, {"channel": "pigeon", "address": "x"}, follow=True).content.decode()


def test_a_route_has_its_own_button(page: Client) -> None:
    route = Route.objects.create(team=make.team(), channel="email", address="pager@example.org")
    assert f"/teams/flight-ops/routes/{route.pk}/test" in shown(page, "/teams/flight-ops/routes")
    page.post(f"/teams/flight-ops/routes/{route.pk}/test")
    assert mail.outbox[0].to == ["pager@example.org"]


def test_who_may_only_look_changes_and_sends_nothing(guest: Client) -> None:
    assert guest.get(PAGE).status_code == 200
    assert "Try an address" not in shown(guest)
    assert guest.post(OPENED, {"subject": "x"}).status_code == 403
    assert guest.post(OPENED, {"act": "reset"}).status_code == 403
    assert guest.post(TRIAL, {"channel": "email", "address": "ops@example.org"}).status_code == 403
    assert mail.outbox == []
