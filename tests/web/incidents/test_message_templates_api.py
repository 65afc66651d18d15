"""The words of a team, trials of an address, how deliveries went: over REST, with scope and role."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core import mail
from django.test import Client
from pytest_django import Settings

from incidents.domain.alerting.message_template import DEFAULT_SUBJECT, VARIABLES
from incidents.domain.alerting.routing import Severity
from incidents.lifecycle import retention
from incidents.models import Delivery, Incident, MessageTemplate, Route
from incidents.notifications import templates
from incidents.notifications.outbox import build_content
from incidents.notifications.sender import send_due_messages
from incidents.record.likely_cause import NOT_DETECTED
from lakehub.accounts.models import AuditEntry, Role, Team
from tests import factories
from tests.factories import DAY, NOW
from tests.web.incidents.failing_dataset import FailingDataset
from tests.webhook_receiver import Receiver, web_server

pytestmark = pytest.mark.django_db
WORDS = "/api/v1/teams/flight-ops/messages"
OPENED = f"{WORDS}/opened"
TRIAL = "/api/v1/teams/flight-ops/channels/test"
LOG = "/api/v1/teams/flight-ops/deliveries"
HOSTILE = ("{{ incident }}", "{% debug %}", "{title.__class__}", "{title!r}", "{titel}", "{", "}", "{ title }")


def signed_in(role: Role) -> Client:
    person = factories.user(role.value)
    factories.member(person, factories.team(), role)
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def owner() -> Client:
    return signed_in(Role.OWNER)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    with web_server() as kept:
        yield kept


def put(client: Client, where: str = OPENED, **fields: str) -> tuple[int, dict[str, object]]:
    answer = client.put(where, fields, content_type="application/json")
    return answer.status_code, answer.json()


# Words


def test_a_team_starts_with_our_words(owner: Client) -> None:
    messages = owner.get(WORDS).json()
    assert [message["occasion"] for message in messages] == list(templates.OCCASIONS)
    assert {(message["subject"], message["own"]) for message in messages} == {(DEFAULT_SUBJECT, False)}


def test_words_are_set_count_and_are_taken_back(owner: Client) -> None:
    status, answer = put(owner, subject="{dataset}: {title}", body="{title}\r\n{link}")
    assert (status, answer["own"], answer["changed_by"], answer["body"]) == (200, True, "owner", "{title}\n{link}")
    assert FailingDataset().opened().messages.get().subject.startswith("flights: flights: ")
    assert owner.delete(OPENED).status_code == 204
    assert owner.get(OPENED).json()["own"] is False
    assert owner.delete(OPENED).status_code == 404
    assert [entry.action for entry in AuditEntry.objects.order_by("pk")] == ["set message", "reset message"]


def test_words_for_the_others_count_where_there_are_none(owner: Client) -> None:
    put(owner, f"{WORDS}/others", subject="{occasion} {dataset}")
    put(owner, OPENED, subject="it began")
    by_occasion = {message["occasion"]: message["subject"] for message in owner.get(WORDS).json()}
    assert (by_occasion["opened"], by_occasion["resolved"]) == ("it began", "{occasion} {dataset}")


@pytest.mark.parametrize("field", ["subject", "body"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_no_variable_is_refused(owner: Client, field: str, hostile: str) -> None:
    status, answer = put(owner, **{field: f"about {hostile}"})
    assert status == 422
    assert field in answer["error"]["fields"]  # type: ignore[index]
    assert not MessageTemplate.objects.exists()


def test_a_slip_is_answered_with_the_nearest_name(owner: Client) -> None:
    _, answer = put(owner, subject="{datset} fails")
    assert answer["error"]["fields"]["subject"] == "There is no `{datset}`. Did you mean `dataset`?"  # type: ignore[index]


def test_a_subject_is_one_line(owner: Client) -> None:
    assert put(owner, subject="a\r\nBcc: spy@example.org")[0] == 422


def test_an_occasion_that_is_none_is_answered_with_the_nearest(owner: Client) -> None:
    status, answer = put(owner, f"{WORDS}/resolvd", subject="x")
    assert (status, answer["error"]["message"]) == (404, "There is no occasion `resolvd`. Did you mean `resolved`?")  # type: ignore[index]
    assert owner.get("/api/v1/teams/flight-opps/messages").status_code == 404


def test_a_preview_reads_of_the_latest_incident_and_changes_nothing(owner: Client) -> None:
    template = {"subject": "{dataset} #{number}", "body": "{title}"}
    example = owner.post(f"{OPENED}/preview", template, content_type="application/json").json()
    assert (example["subject"], example["incident"]) == ("flights #214", None)
    incident = FailingDataset().opened()
    real = owner.post(f"{OPENED}/preview", template, content_type="application/json").json()
    assert (real["subject"], real["incident"]) == (f"flights #{incident.pk}", incident.pk)
    assert "Likely cause: " in real["body"]
    assert not MessageTemplate.objects.exists()


def test_the_example_has_every_variable() -> None:
    assert templates.EXAMPLE_VALUES.keys() | {"occasion"} == VARIABLES.keys()
    incident = FailingDataset().opened()
    assert build_content(incident, [], NOT_DETECTED, Severity.LOW).values.keys() | {"occasion"} == VARIABLES.keys()


def test_variables_are_listed(owner: Client) -> None:
    assert {variable["name"] for variable in owner.get("/api/v1/message-variables").json()} == set(VARIABLES)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ON_CALL])
def test_words_and_trials_are_for_owners(role: Role) -> None:
    client = signed_in(role)
    assert client.get(WORDS).status_code == 200
    assert put(client, subject="x")[0] == 403
    assert client.delete(OPENED).status_code == 403
    trial = {"channel": "email", "address": "ops@example.org"}
    assert client.post(TRIAL, trial, content_type="application/json").status_code == 403
    assert mail.outbox == []


# Trials


def test_a_trial_says_whether_it_arrived(owner: Client, receiver: Receiver) -> None:
    trial = {"channel": "webhook", "address": receiver.url}
    good = owner.post(TRIAL, trial, content_type="application/json").json()
    receiver.status = 503
    bad = owner.post(TRIAL, trial, content_type="application/json").json()
    assert (good["ok"], good["status"], good["occasion"], good["address"]) == (True, "200", "test", "127.0.0.1")
    assert (bad["ok"], bad["status"], bad["error"]) == (False, "503", "127.0.0.1 answered 503.")
    assert receiver.posted()[0]["type"] == "lakehub.test.test"
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.detail) == ("test channel", {"channel": "webhook", "address": "127.0.0.1"})


def test_a_trial_of_a_route_needs_no_address(owner: Client, receiver: Receiver) -> None:
    route = Route.objects.create(team=factories.team(), channel="slack", address=receiver.url)
    delivery = owner.post(f"/api/v1/teams/flight-ops/routes/{route.pk}/test").json()
    assert (delivery["ok"], delivery["channel"]) == (True, "slack")
    assert owner.post(f"/api/v1/teams/flight-ops/routes/{route.pk + 1}/test").status_code == 404


@pytest.mark.parametrize(("name", "address", "field"), [("slakc", "x", "channel"), ("slack", "x", "no Slack webhook")])
def test_a_trial_of_what_cannot_work_is_refused(owner: Client, name: str, address: str, field: str) -> None:
    answer = owner.post(TRIAL, {"channel": name, "address": address}, content_type="application/json")
    assert answer.status_code == 422
    assert field in answer.content.decode()
    assert not Delivery.objects.exists()


# The log


def test_the_log_is_the_teams_and_can_be_narrowed(owner: Client) -> None:
    stage = FailingDataset()
    Team.objects.update(email="ops@example.org")
    incident = stage.opened()
    send_due_messages(now=NOW)
    other = factories.team("others")
    Delivery.objects.create(team=other, occasion="test", channel="log", address="x", at=NOW, ok=True, ms=1)
    (delivery,) = owner.get(LOG).json()["results"]
    assert (delivery["incident"], delivery["ok"], delivery["status"], delivery["address"]) == (
        incident.pk,
        True,
        "250",
        "ops@example.org",
    )
    assert owner.get(LOG, {"incident": incident.pk, "ok": "1"}).json()["count"] == 1
    assert owner.get(LOG, {"ok": "0"}).json()["count"] == 0
    assert owner.get(LOG, {"ok": "yes"}).status_code == 422
    assert owner.get(LOG, {"incident": "²"}).status_code == 422


def test_old_deliveries_go_and_the_messages_stay(owner: Client) -> None:
    incident = FailingDataset().opened()
    message = incident.messages.get()
    for age in (91, 89):
        Delivery.objects.create(
            team=factories.team(), message=message, occasion="opened", channel="log", at=NOW - age * DAY, ok=True, ms=1
        )
    assert retention.prune_deliveries(now=NOW, retention=90 * DAY) == 1
    assert Delivery.objects.count() == 1
    assert Incident.objects.get().messages.count() == 1
