"""Rows of other teams: who registers, plans or changes a pipeline may see rows of all of its inputs, as its table hands them on."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ingestion.models import Pipeline
from ingestion.pipelines.registering import register_pipeline
from lakehub import clock
from lakehub.accounts.models import Role, User
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog.models import Dataset
from tests import factories as given
from tests.factories import NOW
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM

pytestmark = pytest.mark.django_db
TEXTS = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
OFTENER = {**TEXTS, "pipeline.yaml": PIPELINE.replace("every: 30m", "every: 10m")}
CHECK = "?check=1"
REFUSAL = "The pipeline reads rows of `airlines` of team carriers: for that you need to be viewer or owner or on call or admin there."


@pytest.fixture(autouse=True)
def inputs() -> None:
    """flights is of flight-ops, which is to own the table as well; airlines is of another team."""
    for name, team, columns in (
        ("flights", "flight-ops", ("id", "day", "carrier", "delay")),
        ("airlines", "carriers", ("carrier", "name")),
    ):
        shown = [{"name": column, "type": "string", "nullable": True} for column in columns]
        given.dataset(name, team=given.team(team), columns=shown)


@pytest.fixture
def owner() -> User:
    """Of flight-ops, and of no other team."""
    return given.member(given.user("olga"), given.team("flight-ops"), Role.OWNER).user


def post(client: Client, query: str = "", texts: dict[str, str] = TEXTS) -> HttpResponse:
    return client.post(f"/api/v1/modelled-tables{query}", {"files": texts}, content_type="application/json")  # type: ignore[return-value]  # as every answer is


def message(answer: HttpResponse) -> str:
    return str(answer.json()["error"]["message"])  # type: ignore[attr-defined]  # of Django's test client


@pytest.mark.parametrize("query", [CHECK, ""])
def test_rows_of_a_team_without_a_role_there_are_refused_by_name(client: Client, owner: User, query: str) -> None:
    client.force_login(owner)
    answer = post(client, query)
    assert (answer.status_code, message(answer)) == (403, f"{REFUSAL} An admin of the team can add you to it.")
    assert not Dataset.objects.filter(name="flights-by-day").exists()


@pytest.mark.parametrize("role", [*Role])
def test_any_role_in_the_team_of_an_input_lets_its_rows_be_read(client: Client, owner: User, role: Role) -> None:
    given.member(owner, given.team("carriers"), role)
    client.force_login(owner)
    assert (post(client, CHECK).status_code, post(client).status_code) == (200, 201)


def test_rows_of_an_input_are_not_enough_to_own_the_table(client: Client) -> None:
    client.force_login(given.member(given.user(), given.team("carriers"), Role.ADMIN).user)
    for query in (CHECK, ""):
        assert "To onboard here you need to be owner or admin of team flight-ops." in message(post(client, query))


@pytest.mark.parametrize("query", [CHECK, ""])
def test_a_change_of_any_kind_takes_the_rows_of_all_inputs(client: Client, owner: User, query: str) -> None:
    register_pipeline(TEXTS, actor="ana", now=NOW)
    client.force_login(owner)
    answer = post(client, query, OFTENER)
    assert (answer.status_code, REFUSAL in message(answer)) == (403, True)
    assert Pipeline.objects.get().files == TEXTS


def test_a_role_that_was_lost_after_the_plan_counts(client: Client, owner: User) -> None:
    role = given.member(owner, given.team("carriers"), Role.VIEWER)
    client.force_login(owner)
    assert post(client, CHECK).status_code == 200
    role.delete()
    assert post(client).status_code == 403


def test_the_plan_of_a_table_of_another_team_is_refused_as_its_change_is(client: Client, owner: User) -> None:
    register_pipeline({**TEXTS, "pipeline.yaml": PIPELINE.replace("flight-ops", "carriers")}, actor="ana", now=NOW)
    given.member(owner, given.team("carriers"), Role.VIEWER)
    client.force_login(owner)
    for query in (CHECK, ""):
        assert "owner or admin of team carriers" in message(post(client, query))


def test_a_token_reads_no_rows_of_a_team_that_it_does_not_act_for(owner: User) -> None:
    given.member(owner, given.team("carriers"), Role.ADMIN)
    _, text = api_tokens.issue_token(
        name="ci", consumer="ci", team=given.team("flight-ops"), created_by=owner, scopes=["catalog:write"], now=clock.now()
    )  # fmt: skip
    program = Client(headers={"authorization": f"Bearer {text}"})
    assert message(post(program)) == f"{REFUSAL} This token acts for team flight-ops only: register the pipeline signed in, or ask the operator to."  # fmt: skip
    Dataset.objects.filter(name="airlines").update(team=given.team("flight-ops"))
    assert post(program).status_code == 201


def test_all_inputs_are_named_and_asked_for_at_once(client: Client, owner: User) -> None:
    Dataset.objects.filter(name="flights").update(team=given.team("tower"))
    client.force_login(owner)
    assert "rows of `flights` of team tower, `airlines` of team carriers: " in message(post(client))
    given.member(owner, given.team("carriers"), Role.VIEWER)
    given.member(owner, given.team("tower"), Role.VIEWER)
    with CaptureQueriesContext(connection) as queries:
        assert post(client, CHECK).status_code == 200
    assert sum("'viewer'" in query["sql"] for query in queries) == 1


def test_superusers_and_the_operator_may_read_all_rows(client: Client, tmp_path: Path) -> None:
    client.force_login(given.user("root", is_superuser=True))
    assert (post(client, CHECK).status_code, post(client).status_code) == (200, 201)
    for name, text in OFTENER.items():
        (tmp_path / name).write_text(text)
    call_command("pipelines", "register", str(tmp_path))
    assert Pipeline.objects.get().files == OFTENER
