"""Many at once: a line for each, all or nothing for each, and everything up and down a lineage in one go."""

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
from lakehub.catalog.lineage import LineageSnapshot, TableLink, TableName, edges
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, LineageEdge
from lakehub.catalog.onboarding.along_lineage import Direction, dataset_name_of_table, requests_along_lineage
from lakehub.catalog.onboarding.bulk import MAX_REQUESTS, OnboardingLine, OnboardingStatus, onboard_many
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest, UpstreamRequest
from lakehub.kernel.errors import NotFound, Refused
from tests import factories as make
from tests.factories import NOW

pytestmark = pytest.mark.django_db
TABLES = ("raw", "clean", "daily", "report", "other")
WATCHED = OnboardingRequest(
    name="raw", team="flight-ops", tier=3, connection="ops", table="raw", data_centers=("dc1",), ingested=False,
    kind="append-only",
)  # fmt: skip


@pytest.fixture
def ops(tmp_path: Path) -> Connection:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        for table in TABLES:
            db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, day TEXT)")
    make.data_center()
    return make.connection(url=f"sqlite:///{tmp_path / 'ops.db'}")


def named(*names: str, **fields: Any) -> list[OnboardingRequest]:
    return [replace(WATCHED, name=name, table=name, **fields) for name in names]


def results(lines: list[OnboardingLine]) -> dict[str, str]:
    return {line.name: line.result.value for line in lines}


def test_a_line_for_each_and_one_refused_costs_no_other(ops: Connection) -> None:
    wanted = [*named("raw"), replace(WATCHED, name="lost", table="lsot", primary_key=("id",)), *named("clean")]
    lines = onboard_many(wanted, actor="ann", now=NOW)
    assert results(lines) == {"raw": "created", "lost": "refused", "clean": "created"}
    assert "There is no table `lsot`" in lines[1].why["table"]
    assert set(Dataset.objects.values_list("name", flat=True)) == {"raw", "clean"}
    assert DatasetCopy.objects.count() == AuditEntry.objects.count() == 2


def test_what_exists_stays_as_it_is(ops: Connection) -> None:
    onboard_many(named("raw"), actor="ann", now=NOW)
    lines = onboard_many(named("raw", "clean", tier=0), actor="ann", now=NOW)
    assert results(lines) == {"raw": "exists", "clean": "created"}
    assert Dataset.objects.get(name="raw").tier == 3


def test_an_upstream_of_the_list_goes_first_whatever_the_order(ops: Connection) -> None:
    below = replace(WATCHED, name="clean", table="clean", upstream=(UpstreamRequest("raw", one_to_one=True),))
    lines = onboard_many([below, *named("raw")], actor="ann", now=NOW)
    assert [line.name for line in lines] == ["clean", "raw"]
    assert str(LineageEdge.objects.get()) == "raw → clean"


def test_those_that_wait_for_each_other_are_refused(ops: Connection) -> None:
    round_about = [
        replace(WATCHED, name=name, table=name, upstream=(UpstreamRequest(other),))
        for name, other in (("raw", "clean"), ("clean", "raw"))
    ]
    assert set(results(onboard_many(round_about, actor="ann", now=NOW)).values()) == {"refused"}


def test_too_many_at_once_are_refused() -> None:
    with pytest.raises(Refused, match="501 datasets are more than 500 at once"):
        onboard_many([WATCHED] * (MAX_REQUESTS + 1), actor="ann", now=NOW)


# Along the lineage: raw -> clean -> daily -> report, and raw -> other


@pytest.fixture
def lineage(ops: Connection) -> Dataset:
    """Of it only `daily` is onboarded."""
    onboard_many(named("daily", tier=1), actor="ann", now=NOW)
    pairs = (("raw", "clean"), ("clean", "daily"), ("daily", "report"), ("raw", "other"))
    links = {TableLink(TableName("ops", up), TableName("ops", down), up == "clean") for up, down in pairs}
    links.add(TableLink(TableName("kafka", "events"), TableName("ops", "raw")))
    edges.replace_lineage(LineageSnapshot(frozenset(links)), source="file", now=NOW)
    return Dataset.objects.get(name="daily")


@pytest.mark.parametrize(
    ("direction", "names"),
    [(Direction.UP, ["clean", "raw"]), (Direction.DOWN, ["report"]), (Direction.BOTH, ["clean", "raw", "report"])],
)
def test_everything_up_or_down_is_found(lineage: Dataset, direction: Direction, names: list[str]) -> None:
    selection = requests_along_lineage(lineage, direction)
    assert [request.name for request in selection.requests] == names
    assert {(request.tier, request.team, request.primary_key, request.ingested) for request in selection.requests} == {
        (1, "flight-ops", ("id",), False)
    }
    refused = [line for line in selection.lines if line.result is OnboardingStatus.REFUSED]
    assert [line.name for line in refused] == ([] if direction is Direction.DOWN else ["kafka/events"])


def test_in_one_go_with_their_edges_and_again_nothing_changes(lineage: Dataset) -> None:
    made = onboard_many(requests_along_lineage(lineage, Direction.BOTH).requests, actor="ann", now=NOW)
    assert results(made) == {"clean": "created", "raw": "created", "report": "created"}
    edges = {f"{edge}{' 1:1' if edge.one_to_one else ''}" for edge in LineageEdge.objects.all()}
    assert edges == {"raw → clean", "clean → daily 1:1", "daily → report"}
    lineage.refresh_from_db()
    assert lineage.metadata_version == 2, "it can be compared with its upstream now"
    again = requests_along_lineage(lineage, Direction.BOTH)
    assert (again.requests, results(list(again.lines))["clean"]) == ((), "exists")


def test_a_dataset_that_lineage_does_not_know_is_named(ops: Connection) -> None:
    with pytest.raises(NotFound, match="Lineage does not know lonely"):
        requests_along_lineage(make.dataset("lonely"), Direction.UP)


@pytest.mark.parametrize(
    ("table", "name"),
    [("public.Flight Legs", "public-flight-legs"), ("flights/*.csv", "flights"), ("2024_raw", "raw"), ("***", "table")],
)
def test_a_table_gives_its_name(table: str, name: str) -> None:
    assert dataset_name_of_table(table) == name


# Over the API and the command line


@pytest.fixture
def owner() -> Client:
    person = make.user("ines")
    make.member(person, make.team(), Role.OWNER)
    browser = Client()
    browser.force_login(person)
    return browser


def body(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name, "team": "flight-ops", "tier": 3, "connection": "ops", "table": name, "data_centers": ["dc1"],
        "ingested": False, **fields,
    }  # fmt: skip


def post(client: Client, payload: dict[str, Any]) -> Any:
    return client.post("/api/v1/datasets/bulk", payload, content_type="application/json")


def test_the_api_takes_a_list(ops: Connection, owner: Client) -> None:
    make.team("others")
    response = post(owner, {"datasets": [body("raw"), body("clean", tier="high"), body("daily", team="others")]})
    lines = {line["name"]: line for line in response.json()}
    assert {name: line["result"] for name, line in lines.items()} == {
        "raw": "created",
        "clean": "refused",
        "daily": "refused",
    }
    assert "valid integer" in lines["clean"]["why"]["tier"]
    assert "you need to be owner or admin of team others" in lines["daily"]["why"][""]


def test_the_api_goes_along_a_lineage(lineage: Dataset, owner: Client) -> None:
    lines = post(owner, {"lineage_of": "daily", "direction": "down", "tier": 4}).json()
    assert [(line["name"], line["result"]) for line in lines] == [("report", "created")]
    assert Dataset.objects.get(name="report").tier == 4
    assert post(owner, {}).status_code == 422
    assert post(owner, {"lineage_of": "dialy"}).status_code == 404


def test_the_command_takes_a_list_in_yaml(ops: Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(json.dumps([body("raw"), body("lost")]))
    with pytest.raises(CommandError, match="1 of 2 were refused: lost"):
        call_command("onboard", "--file", str(file))
    printed = capsys.readouterr().out
    assert "created   raw" in printed
    assert "refused   lost  (table: There is no table `lost`" in printed


def test_the_command_goes_along_a_lineage_and_can_only_look(
    lineage: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("onboard", "--lineage-of", "daily", "--direction", "down", "--check")
    assert capsys.readouterr().out == "would be  report: ops report\n"
    call_command("onboard", "--lineage-of", "daily", "--direction", "down")
    empty = "the table has no rows yet, so nothing is known of its key; it is checked by the tests when rows come"
    assert capsys.readouterr().out == f"created   report\n          Key: {empty}.\n"


def test_a_name_that_is_an_address_is_refused(ops: Connection) -> None:
    (line,) = onboard_many([replace(WATCHED, name="bulk")], actor="ann", now=NOW)
    assert "address of the REST API" in line.why["name"]
