from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from incidents.models import GatePolicy, Message
from incidents.policies import check_blocks
from tests import factories
from tests.web.incidents.stage import Stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def console() -> Client:
    client = Client()
    client.force_login(factories.user("root", is_staff=True, is_superuser=True))
    return client


@pytest.mark.parametrize("table", ["incident", "message", "gatepolicy", "gatequestion"])
def test_each_list_and_each_row_can_be_looked_at(console: Client, table: str) -> None:
    incident = Stage().opened()
    factories.message(incident)
    GatePolicy.objects.create(consumer="etl", tier=1, blocks=["fail"])
    assert console.get(f"/console/incidents/{table}/").status_code == 200
    if table != "gatequestion":
        model = {"incident": incident, "message": Message.objects.latest("pk"), "gatepolicy": GatePolicy.objects.get()}[
            table
        ]
        assert console.get(f"/console/incidents/{table}/{model.pk}/change/").status_code == 200


def test_what_failed_is_sent_again(console: Client) -> None:
    message = factories.message(Stage().opened(), "failed", error="down", attempt=10)
    asked = {"action": "send_again", "_selected_action": [message.pk]}
    assert console.post("/console/incidents/message/", asked, follow=True).status_code == 200
    message.refresh_from_db()
    assert (message.state, message.attempt, message.error) == ("pending", 0, "")
    assert message.due_at > message.created_at


def test_who_may_only_look_sends_nothing_again() -> None:
    message = factories.message(Stage().opened(), "failed", error="down", attempt=10)
    asked = {"action": "send_again", "_selected_action": [message.pk]}
    looking, acting = factories.staff("view_message"), factories.staff("view_message", "change_message")
    looking.post("/console/incidents/message/", asked)
    message.refresh_from_db()
    assert message.state == "failed"
    acting.post("/console/incidents/message/", asked)
    message.refresh_from_db()
    assert message.state == "pending"


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (["fial"], "There is no verdict `fial`. Did you mean `fail`?"),
        (["unknown:notdue"], "There is no reason `notdue`. Did you mean `not_due`?"),
        ("fail", "Write a list of words"),
    ],
)
def test_a_policy_of_words_that_mean_nothing_is_refused(blocks: object, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        check_blocks(blocks)
    assert said in " ".join(caught.value.messages)


def test_a_policy_of_verdicts_and_reasons_is_taken() -> None:
    check_blocks(["fail", "unknown:never_tested", "fail:in_grace"])
    check_blocks([])
