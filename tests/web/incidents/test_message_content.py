"""Every message about an incident carries what a reader needs to act, whatever words its team has chosen."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from incidents.channels import CHANNELS, DeliveryError, Notification
from incidents.channels.webhook import Webhook
from incidents.domain.alerting.routing import Severity
from incidents.lifecycle import actions
from incidents.lifecycle.intake import process_flips
from incidents.models import Delivery, Incident, Message, MessageTemplate
from incidents.notifications.outbox import build_content
from incidents.notifications.sender import send_due_messages
from incidents.record.likely_cause import NOT_DETECTED
from lakehub.accounts.models import Team
from lakehub.kernel.outcome import Verdict
from quality.models import Category
from tests import factories
from tests.factories import HOUR, MINUTE, NOW
from tests.mail_server import mail_server
from tests.web.incidents.failing_dataset import BAD_DAY, FailingDataset

pytestmark = pytest.mark.django_db
ADDRESS = "https://hooks.example.org/secret"


@pytest.fixture
def stage() -> FailingDataset:
    made = FailingDataset()
    Team.objects.update(email="ops@example.org")
    return made


@pytest.fixture
def messages(stage: FailingDataset) -> list[Message]:
    """Of an incident with something wrong upstream: opened, worse, acknowledged, resolved."""
    weather = factories.dataset("weather", copies=("dc2",))
    factories.edge(weather, stage.dataset)
    unit = factories.unit(factories.test(weather), factories.copy_of(weather, "dc2"), BAD_DAY, Verdict.FAIL)
    factories.incident(weather, Category.DUPLICATES, unit, title="weather: late")
    failing = stage.fails(observed=0.9898, threshold="> 99.9%", detail={"observed": "98.98%", "behind": "975 of 985"})
    process_flips(now=NOW)
    other = stage.fails(factories.day("2026-11-15"), at=NOW + MINUTE)
    process_flips(now=NOW + MINUTE)
    incident = Incident.objects.get(dataset=stage.dataset)
    actions.acknowledge(incident.pk, actor=factories.user("ana"), now=NOW + 2 * MINUTE)
    for recovered in (failing, other):
        stage.passes(recovered, at=NOW + HOUR)
    process_flips(now=NOW + HOUR)
    return list(Message.objects.filter(incident=incident).order_by("pk"))


def test_it_says_what_where_since_when_why_and_where_to_look(messages: list[Message]) -> None:
    assert {message.occasion for message in messages} >= {"opened", "acknowledged", "resolved"}
    upstream = Incident.objects.get(dataset__name="weather")
    for message in messages:
        for line in (
            "Dataset: flights, tier 1, team flight-ops",
            "Category: cross-dc consistency, severity ",
            "Observed: dc2 2026-11-1",
            "Data: dc2: ",
            "Since: 2026-11-17 19:3",
            f"Likely cause: upstream: weather: late (incident #{upstream.pk} of weather",
            f"/incidents/{message.incident_id}",
        ):
            assert line in message.body, message.occasion
    assert "98.98% (975 of 985), needs > 99.9%" in messages[0].body


def test_programs_get_the_same(messages: list[Message]) -> None:
    for message in messages:
        facts = message.facts
        for name in (
            "dataset",
            "category",
            "observed",
            "data",
            "since",
            "cause",
            "cause_kind",
            "url",
            "severity",
            "state",
        ):
            assert facts[name], (message.occasion, name)
        assert (facts["id"], facts["cause_kind"]) == (message.incident_id, "upstream")


def test_the_links_in_it_work(messages: list[Message], client: Client, settings: Settings) -> None:
    client.force_login(factories.user("reader"))
    for message in messages:
        links = re.findall(re.escape(settings.LAKEHUB_BASE_URL) + r"(/\S+)", message.body)
        assert len(links) == 2
        for link in links:
            answer = client.get(link)
            assert answer.status_code == 200, link
        assert f"#{message.incident_id}" in answer.content.decode()


def test_a_team_has_words_of_its_own_and_still_says_everything(stage: FailingDataset) -> None:
    MessageTemplate.objects.create(
        team=stage.dataset.team,
        occasion="opened",
        subject="{dataset} #{number}: {severity}",
        body="Look: {title}\nExpected: {eta}",
        changed_at=NOW,
        changed_by="ana",
    )
    incident = stage.opened(observed=0.9898, threshold="> 99.9%")
    (message,) = incident.messages.all()
    assert message.subject == f"flights #{incident.pk}: {message.facts['severity']}"
    lines = message.body.splitlines()
    assert lines[:2] == [f"Look: {incident.title}", ""]
    assert "Expected" not in message.body
    for start in ("Dataset: flights", "Category: ", "Observed: ", "Data: ", "Since: ", "Likely cause: ", "http"):
        assert sum(line.startswith(start) for line in lines) == 1


def test_words_for_every_occasion_give_way_to_those_for_one(stage: FailingDataset) -> None:
    for occasion in ("", "resolved"):
        MessageTemplate.objects.create(
            team=stage.dataset.team,
            occasion=occasion,
            subject=f"<{occasion}> {{occasion}}",
            changed_at=NOW,
            changed_by="ana",
        )
    incident = stage.opened()
    content = build_content(incident, [], NOT_DETECTED, Severity.LOW)
    assert [content.render(occasion).subject for occasion in ("opened", "resolved")] == [
        "<> opened",
        "<resolved> resolved",
    ]


def test_words_that_were_stored_and_are_no_variables_stay_words(stage: FailingDataset) -> None:
    """Whatever is in the table, however it came there, reaches nothing."""
    hostile = "{{ incident.dataset.team }} {% debug %} {dataset.__class__} {settings.SECRET_KEY}"
    MessageTemplate.objects.create(
        team=stage.dataset.team,
        subject=f"{hostile}\r\nBcc: spy@example.org",
        body=hostile,
        changed_at=NOW,
        changed_by="x",
    )
    (message,) = stage.opened().messages.all()
    assert message.subject == f"{hostile} Bcc: spy@example.org"
    assert message.body.splitlines()[0] == hostile


def test_what_a_person_says_is_no_template(stage: FailingDataset) -> None:
    incident = stage.opened()
    hostile = "{{ 7 * 7 }} {dataset}\nState: resolved"
    content = build_content(incident, [], NOT_DETECTED, Severity.LOW, actor="{link}", text=hostile)
    assert "By: {link}" in content.render("commented").body
    assert "Why: {{ 7 * 7 }} {dataset} State: resolved" in content.render("commented").body


def test_one_thread_an_incident_over_smtp(stage: FailingDataset, settings: Settings) -> None:
    unit = stage.fails()
    with mail_server() as mailbox:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", mailbox.port
        process_flips(now=NOW)
        send_due_messages(now=NOW)
        actions.acknowledge(Incident.objects.get().pk, actor=factories.user("ana"), now=NOW)
        send_due_messages(now=NOW)
        stage.passes(unit, at=NOW + HOUR)
        process_flips(now=NOW + HOUR)
        send_due_messages(now=NOW + HOUR)
    first, second, third = (mail for _, mail in mailbox.got)
    assert second["In-Reply-To"] == first["Message-ID"]
    assert third["References"].split() == [first["Message-ID"], second["Message-ID"]]
    assert Incident.objects.get().title in first["Subject"]


# The log of deliveries


def test_each_attempt_is_in_the_log(stage: FailingDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    Team.objects.update(email="", webhook_url=ADDRESS)
    answers = iter([DeliveryError("hooks.example.org answered 503.", status="503"), "202"])

    def answer(self: Webhook, note: Notification, address: str, **_: object) -> str:
        reply = next(answers)
        if isinstance(reply, DeliveryError):
            raise reply
        return reply

    monkeypatch.setattr(Webhook, "send", answer)
    message = stage.opened().messages.get()
    send_due_messages(now=NOW)
    send_due_messages(now=NOW + HOUR)
    second, first = Delivery.objects.filter(message=message)
    assert (first.ok, first.status, first.error) == (False, "503", "hooks.example.org answered 503.")
    assert (second.ok, second.status, second.error, second.at) == (True, "202", "", NOW + HOUR)
    assert {delivery.address for delivery in (first, second)} == {"hooks.example.org"}
    client = Client()
    client.force_login(factories.user("reader"))
    assert (
        f"2 attempts, the last: 202 in {second.ms} ms"
        in client.get(f"/incidents/{message.incident_id}").content.decode()
    )
    (listed,) = client.get(f"/api/v1/incidents/{message.incident_id}").json()["messages"]
    assert [delivery["status"] for delivery in listed["deliveries"]] == ["202", "503"]
    assert listed["address"] == "hooks.example.org"


def test_a_receiver_that_asks_for_time_gets_it(stage: FailingDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    Team.objects.update(email="", webhook_url=ADDRESS)

    def busy(self: Webhook, note: Notification, address: str, **_: object) -> str:
        raise DeliveryError("busy", status="429", retry_after=timedelta(minutes=7))

    monkeypatch.setattr(Webhook, "send", busy)
    message = stage.opened().messages.get()
    send_due_messages(now=NOW)
    message.refresh_from_db()
    assert message.due_at == NOW + 7 * MINUTE


def test_addresses_are_ciphertext_at_rest_and_found_all_the_same(stage: FailingDataset) -> None:
    Team.objects.update(webhook_url=ADDRESS)
    incident = stage.opened()
    with connection.cursor() as cursor:
        cursor.execute("SELECT address, address_key FROM incidents_message")
        stored = cursor.fetchall()
    assert stored
    assert not any("example.org" in part for row in stored for part in row)
    assert {message.address for message in incident.messages.all()} == {"ops@example.org", ADDRESS}
    assert {message.shown_address for message in incident.messages.all()} == {"ops@example.org", "hooks.example.org"}
    keys = incident.messages.values_list("address_key", flat=True)
    assert len(set(keys)) == 2


def test_every_channel_is_one_that_is_known() -> None:
    with pytest.raises(LookupError, match="Did you mean `slack`"):
        CHANNELS.get("slakc")
