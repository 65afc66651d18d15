"""What a dataset overrides is checked where it is written, whoever writes it, and costs no test where it came in before."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.bulk import OnboardingStatus, onboard_many
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.errors import Refused
from tests import factories as make
from tests.factories import NOW

pytestmark = pytest.mark.django_db
WRONG = {"sustain": "banana", "cadnce": "1h", "calendar": "0 6 * mon-fri"}
TOLD = ("sustain='banana' is not a duration: write 30m", "no SLA `cadnce`", "calendar='0 6 * mon-fri' has 4 fields")
COLUMNS = [{"name": name, "type": "string", "nullable": True} for name in ("id", "loaded_at")]
WATCHED = OnboardingRequest(
    name="raw", team="flight-ops", tier=3, connection="ops", table="raw", data_centers=("dc1",), ingested=False,
    kind="append-only", overrides=WRONG,
)  # fmt: skip


@pytest.fixture
def ops(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, day TEXT)")
    make.data_center()
    make.connection(url=f"sqlite:///{tmp_path / 'ops.db'}")
    make.team()


def says_all(text: str) -> bool:
    return all(problem in text for problem in TOLD)


def test_onboarding_refuses_them_by_name_value_and_remedy(ops: None) -> None:
    with pytest.raises(Refused) as refused:
        onboard_dataset(WATCHED, actor="ann", now=NOW)
    assert says_all(refused.value.fields["overrides"])
    (line,) = onboard_many([WATCHED], actor="ann", now=NOW)
    assert (line.result, says_all(line.why["overrides"])) == (OnboardingStatus.REFUSED, True)
    assert not Dataset.objects.exists()


def test_an_event_time_zone_that_there_is_not_is_refused(ops: None) -> None:
    with pytest.raises(Refused) as refused:
        onboard_dataset(replace(WATCHED, overrides={"event_time_zone": "../Mars"}), actor="ann", now=NOW)
    assert "event_time_zone='../Mars' is not a time zone: write one such as UTC" in refused.value.fields["overrides"]


@pytest.mark.parametrize("zone", ["Mars", "Europe", "America/Indiana", "../Mars", "a" * 300, ""])
def test_a_zone_that_there_is_not_is_told_by_its_own_field(ops: None, zone: str) -> None:
    """Some are folders of zones, and some no file can have for a name."""
    wrong = replace(WATCHED, overrides={"sustain": "45m"}, partition_column="day", grain="day", partition_tz=zone)
    with pytest.raises(Refused) as refused:
        onboard_dataset(wrong, actor="ann", now=NOW)
    assert refused.value.fields.keys() == {"partition_tz"}


def test_the_api_refuses_them_and_changes_nothing() -> None:
    flights = make.dataset("flights")
    ann = make.user("ann")
    make.member(ann, flights.team, Role.OWNER)
    client = Client()
    client.force_login(ann)
    address = "/api/v1/datasets/flights"
    body = {"overrides": WRONG, "metadata_version": flights.metadata_version}
    response = client.patch(address, body, content_type="application/json")
    assert response.status_code == 422, response.content
    assert says_all(str(response.json()))
    assert Dataset.objects.get().overrides == {}


@pytest.fixture
def owner() -> Client:
    ann = make.user("ann")
    make.member(ann, make.dataset("flights", columns=COLUMNS, overrides={"sustain": "45m"}).team, Role.OWNER)
    client = Client()
    client.force_login(ann)
    return client


def patch(client: Client, **body: object) -> Any:
    return client.patch("/api/v1/datasets/flights", body, content_type="application/json")


def test_policies_are_fields_of_the_api_and_leave_the_other_overrides(owner: Client) -> None:
    assert owner.get("/api/v1/datasets/flights").json()["schema_changes"] == "breaking"
    body = patch(owner, schema_changes="show", not_compared=["loaded_at"]).json()
    assert (body["schema_changes"], body["not_compared"]) == ("show", ["loaded_at"])
    assert body["overrides"] == {"sustain": "45m", "schema_changes": "show", "not_compared": ["loaded_at"]}
    body = patch(owner, schema_changes="", not_compared=[]).json()
    assert (body["schema_changes"], body["overrides"]) == ("breaking", {"sustain": "45m"})
    audited = AuditEntry.objects.order_by("-pk")[0]
    assert audited.detail["becomes"] == {"overrides": {"sustain": "45m"}}


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({"schema_changes": "shwo"}, "schema_changes", "Did you mean `show`?"),
        ({"not_compared": ["loaded_ta"]}, "not_compared", "There is no column `loaded_ta`. Did you mean `loaded_at`?"),
        ({"not_compared": ["id"], "primary_key": ["id"]}, "not_compared", "is part of the primary key"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_at_its_field(
    owner: Client, body: dict[str, object], field: str, says: str
) -> None:
    answer = patch(owner, **body)
    assert (answer.status_code, says in answer.json()["error"]["fields"][field]) == (422, True), answer.content


def test_the_command_sets_policies_and_says_what_comes_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make.dataset("flights")
    file = tmp_path / "policy.yaml"
    file.write_text("schema_changes: incident")
    call_command("change_dataset", "flights", str(file), "--check")
    assert Dataset.objects.get().overrides == {}
    call_command("change_dataset", "flights", str(file))
    assert Dataset.objects.get().overrides == {"schema_changes": "incident"}


def test_the_command_refuses_them(ops: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    application = {
        "name": "raw",
        "team": "flight-ops",
        "tier": 3,
        "connection": "ops",
        "table": "raw",
        "data_centers": ["dc1"],
    }
    list_of_all = tmp_path / "all.json"
    list_of_all.write_text(json.dumps([{**application, "kind": "append-only", "ingested": False, "overrides": WRONG}]))
    with pytest.raises(CommandError):
        call_command("onboard", str(list_of_all))
    assert "sustain='banana'" in capsys.readouterr().out


def test_what_came_in_before_keeps_nobody_from_changing_something_else() -> None:
    flights = make.dataset("flights", overrides=WRONG)
    assert changes.update_dataset(flights, {"tier": 0}, actor="ann", now=NOW).tier == 0
    assert (
        changes.update_dataset(flights, {"overrides": {"sustain": "45m"}}, actor="ann", now=NOW).overrides["sustain"]
        == "45m"
    )
