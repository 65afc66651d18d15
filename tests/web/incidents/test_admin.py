from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from incidents.lifecycle import actions
from incidents.models import GatePolicy, Incident, Message
from incidents.models.gate import check_blocks
from lakehub.accounts.models import Role, User
from quality.models import Lane, Unit
from tests import factories
from tests.factories import NOW, day
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def console() -> Client:
    client = Client()
    client.force_login(factories.user("root", is_staff=True, is_superuser=True))
    return client


@pytest.mark.parametrize("table", ["incident", "message", "gatepolicy", "gatequestion"])
def test_each_list_and_each_row_can_be_looked_at(console: Client, table: str) -> None:
    incident = FailingDataset().opened()
    factories.message(incident)
    GatePolicy.objects.create(consumer="etl", tier=1, blocks=["fail"])
    assert console.get(f"/console/incidents/{table}/").status_code == 200
    if table != "gatequestion":
        model = {"incident": incident, "message": Message.objects.latest("pk"), "gatepolicy": GatePolicy.objects.get()}[
            table
        ]
        assert console.get(f"/console/incidents/{table}/{model.pk}/change/").status_code == 200


def test_what_failed_is_sent_again(console: Client) -> None:
    message = factories.message(FailingDataset().opened(), "failed", error="down", attempt=10)
    asked = {"action": "send_again", "_selected_action": [message.pk]}
    assert console.post("/console/incidents/message/", asked, follow=True).status_code == 200
    message.refresh_from_db()
    assert (message.state, message.attempt, message.error) == ("pending", 0, "")
    assert message.due_at > message.created_at


def test_who_may_only_look_sends_nothing_again() -> None:
    message = factories.message(FailingDataset().opened(), "failed", error="down", attempt=10)
    asked = {"action": "send_again", "_selected_action": [message.pk]}
    looking, acting = factories.staff("view_message"), factories.staff("view_message", "change_message")
    looking.post("/console/incidents/message/", asked)
    message.refresh_from_db()
    assert message.state == "failed"
    acting.post("/console/incidents/message/", asked)
    message.refresh_from_db()
    assert message.state == "pending"


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (["fial"], "There is no verdict `fial`. Did you mean `fail`?"),
        (["unknown:notdue"], "There is no reason `notdue`. Did you mean `not_due`?"),
        ("fail", "Write a list of words"),
    ],
)
def test_a_policy_of_words_that_mean_nothing_is_refused(blocks: object, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        check_blocks(blocks)
    assert message in " ".join(caught.value.messages)


def test_a_policy_of_verdicts_and_reasons_is_taken() -> None:
    check_blocks(["fail", "unknown:never_tested", "fail:in_grace"])
    check_blocks([])


# What on-call does from the list


@pytest.fixture
def on_call() -> Client:
    """Of the staff, on call in the team that owns `flights`; nothing but looking is theirs by Django's permissions."""
    client = factories.staff("view_incident")
    person = User.objects.get(is_staff=True)
    factories.member(person, factories.team(), Role.ON_CALL)
    return client


def do(client: Client, action: str, *incidents: Incident, **fields: Any) -> str:
    asked = {"action": action, "_selected_action": [incident.pk for incident in incidents], **fields}
    return client.post("/console/incidents/incident/", asked, follow=True).content.decode()


def test_on_call_acknowledges_and_reruns_from_the_list(on_call: Client) -> None:
    stage = FailingDataset()
    incident, other = stage.opened(day("2026-11-02")), stage.opened()
    assert f"Acknowledge: #{incident.pk}, #{other.pk}" in do(on_call, "acknowledge", incident, other)
    assert set(Incident.objects.values_list("state", flat=True)) == {"acknowledged"}
    assert f"Rerun: #{incident.pk}" in do(on_call, "rerun", incident)
    assert Unit.objects.get(spans__incident=incident).lane == Lane.REQUESTED


def test_a_snooze_from_the_list_asks_until_when(on_call: Client) -> None:
    incident = FailingDataset().opened()
    form = do(on_call, "snooze", incident)
    assert 'name="until_0"' in form
    assert "This field is required." in do(on_call, "snooze", incident, apply="1")
    do(on_call, "snooze", incident, apply="1", until_0="2126-11-18", until_1="09:00")
    incident.refresh_from_db()
    assert incident.snoozed_until == datetime(2126, 11, 18, 9, tzinfo=UTC)


def test_a_resolution_from_the_list_asks_for_the_kind_and_the_reason(on_call: Client) -> None:
    incident = FailingDataset().opened()
    form = do(on_call, "resolve", incident)
    assert "False positive: wrong SLA" in form
    assert "This field is required." in do(on_call, "resolve", incident, apply="1", how="wrong_sla")
    incident.refresh_from_db()
    assert incident.state == "open"
    do(on_call, "resolve", incident, apply="1", how="wrong_sla", why="Agreed with the readers.")
    incident.refresh_from_db()
    assert (incident.resolution, incident.false_positive) == ("false_positive", "wrong_sla")
    assert incident.resolved_why == "Agreed with the readers."
    assert Unit.objects.get().waiver == "false_positive"


def test_a_conflict_is_told_of_the_row_that_has_it_and_the_others_are_done(on_call: Client) -> None:
    stage = FailingDataset()
    incident, other = stage.opened(day("2026-11-02")), stage.opened()
    actions.acknowledge(incident.pk, actor=factories.user("ben"), now=NOW)
    html = do(on_call, "acknowledge", incident, other)
    assert f"Acknowledge: #{other.pk}" in html
    assert f"#{incident.pk}: An incident that is acknowledged cannot acknowledge" in html
    assert "ben was faster" in html


@pytest.mark.parametrize("action", ["acknowledge", "rerun", "snooze", "resolve"])
def test_the_role_in_the_team_decides_not_the_right_to_the_table(action: str) -> None:
    incident = FailingDataset().opened()
    stranger = factories.staff("view_incident", "change_incident")
    fields = {"apply": "1", "until_0": "2126-11-18", "until_1": "09:00", "how": "wrong_sla", "why": "x"}
    assert "here you need to be owner or on call or admin of team flight-ops" in do(
        stranger, action, incident, **fields
    )
    assert Incident.objects.get().revision == incident.revision
    assert Unit.objects.get().lane != Lane.REQUESTED


def test_who_may_not_see_the_list_does_nothing_with_it() -> None:
    incident = FailingDataset().opened()
    outsider = factories.staff("view_message")
    asked = {"action": "acknowledge", "_selected_action": [incident.pk]}
    assert outsider.post("/console/incidents/incident/", asked).status_code == 403
    assert Incident.objects.get().state == "open"
