"""Subjects over the API, beside Confluent's paths: what the pages show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ingestion.captures.records import topic_of
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_schema import event_schema
from ingestion.models import Capture, SchemaVersion
from ingestion.schemas.subjects.table_columns import column_count
from lakehub import clock
from lakehub.accounts.models import Role
from lakehub.accounts.tokens.api_tokens import issue_token
from tests import factories as make

URL = "/api/v1/schemas"
JSON = "application/json"
pytestmark = pytest.mark.django_db


def trip(*fields: Any) -> Any:
    return {"type": "record", "name": "Trip", "fields": [{"name": "id", "type": "long"}, *fields]}


CITY = {"name": "city", "type": ["null", "string"], "default": None, "doc": "Where it began"}


@pytest.fixture
def reader() -> Client:
    """A viewer of another team."""
    client, person = Client(), make.user()
    make.member(person, make.team("others"), Role.VIEWER)
    client.force_login(person)
    return client


def test_the_list_has_what_the_page_has(reader: Client) -> None:
    trips = make.dataset("trips")
    topic = topic_of(trips)
    Capture.objects.create(feed=make.feed(trips), topic=topic)
    captured = make.schema_version(topic, event_schema(topic, Schema.of({"id": "long", "fare": "decimal(9,2)"})))
    make.schema_version("stops", trip(), owner=make.team("fleet"))
    stops = make.schema_version("stops", trip(CITY), deprecated_at=make.NOW, deprecated_why="Odd")
    assert reader.get(URL).json()["results"] == [
        {
            "subject": "stops",
            "team": "fleet",
            "compatibility": "BACKWARD",
            "version": 2,
            "id": stops.pk,
            "columns": 2,
            "registered_at": "2026-11-16T19:32:00Z",
            "registered_by": "ana",
            "deprecated": "Odd",
            "dataset": None,
        },
        {
            "subject": topic,
            "team": "flight-ops",
            "compatibility": "BACKWARD",
            "version": 1,
            "id": captured.pk,
            "columns": 2,
            "registered_at": "2026-11-16T19:32:00Z",
            "registered_by": "ana",
            "deprecated": None,
            "dataset": "trips",
        },
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [("q=STO", ["stops"]), ("team=fleet", ["stops"]), ("compatibility=FULL", []), ("limit=1&offset=1", ["trips"])],
)
def test_it_is_narrowed_and_comes_in_pages(reader: Client, query: str, names: list[str]) -> None:
    make.schema_version("trips", trip())
    make.schema_version("stops", trip(), owner=make.team("fleet"))
    assert [row["subject"] for row in reader.get(f"{URL}?{query}").json()["results"]] == names


def test_a_hundred_subjects_cost_as_many_queries_as_one(reader: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert reader.get(f"{URL}?limit=1000").status_code == 200
        return len(asked)

    make.schema_version("first", trip())
    few = queries()
    for number in range(100):
        make.schema_version(f"s{number}", trip())
    assert queries() == few


def test_versions_come_newest_first(reader: Client) -> None:
    make.schema_version("trips", trip(), deprecated_at=make.NOW, deprecated_why="Odd")
    make.schema_version("trips", trip(CITY))
    versions = reader.get(f"{URL}/trips").json()
    assert [(each["version"], each["deprecated"]) for each in versions] == [(2, None), (1, "Odd")]


def test_columns_are_in_words_of_the_lake(reader: Client) -> None:
    make.schema_version("trips", trip(CITY))
    answer = reader.get(f"{URL}/trips/versions/latest").json()
    assert not answer["is_cut"]
    assert answer["columns"][1] == {
        "path": "city",
        "type": "string",
        "avro_type": "string",
        "is_nullable": True,
        "default": "null",
        "doc": "Where it began",
        "aliases": [],
        "symbols": "",
        "shown_at": "",
    }


def test_two_versions_are_compared(reader: Client) -> None:
    make.schema_version("trips", trip())
    make.schema_version("trips", {**trip(CITY), "doc": "Trips"})
    answer = reader.get(f"{URL}/trips/diff?from=1").json()
    assert [(each["kind"], each["path"]) for each in answer["changes"]] == [("changed", ""), ("added", "city")]
    assert answer["changes"][0]["differences"] == [{"what": "documentation", "before": "", "after": "Trips"}]
    assert reader.get(f"{URL}/trips/diff?from=2&to=2").json() == {"changes": [], "is_same": True, "is_cut": False}


@pytest.mark.parametrize(
    ("path", "status_code"),
    [
        ("nothing", 404),
        ("nothing/versions/1", 404),
        ("nothing/diff?from=1", 404),
        ("trips/versions/9", 404),
        ("trips/versions/x", 422),
        ("trips/diff", 422),
        ("trips/diff?from=1&to=9", 404),
        ("trips/diff?from=%00", 400),
    ],
)
def test_what_is_not_there_is_said_plainly(reader: Client, path: str, status_code: int) -> None:
    make.schema_version("trips", trip())
    answer = reader.get(f"{URL}/{path}")
    assert answer.status_code == status_code
    assert answer.json()["error"]["message"]


def proposed(client: Client, subject: str, schema: Any) -> Any:
    answer = client.post(f"{URL}/{subject}/proposal", {"schema": json.dumps(schema)}, content_type=JSON)
    return answer.json() if answer.status_code == 200 else (answer.status_code, answer.json()["error"]["message"])


def test_a_proposal_says_what_it_changes_and_why_it_may_not_follow(reader: Client) -> None:
    make.schema_version("trips", trip())
    answer = proposed(reader, "trips", trip({"name": "city", "type": "string"}))
    assert (answer["is_compatible"], answer["version"], answer["registered"]) == (False, 2, None)
    assert answer["messages"] == [
        "The new schema cannot read what version 1 wrote: `city` is not there in what was written, and has no default."
    ]
    assert [each["path"] for each in answer["diff"]["changes"]] == ["city"]
    assert SchemaVersion.objects.count() == 1


def test_a_proposal_may_be_there_already_or_of_a_new_subject(reader: Client) -> None:
    make.schema_version("trips", trip())
    make.schema_version("trips", trip(CITY))
    assert proposed(reader, "trips", trip())["registered"] == 1
    answer = proposed(reader, "stops", trip())
    assert (answer["is_compatible"], answer["version"], answer["diff"]) == (True, 1, None)
    assert proposed(reader, "a b", trip())[0] == 422
    assert proposed(reader, "trips", {"type": "record"})[0] == 422


@pytest.mark.parametrize("scope", ["schemas:read", "gate:read"])
def test_a_token_needs_the_scope_of_schemas(scope: str) -> None:
    make.schema_version("trips", trip())
    admin, team = make.user(), make.team()
    make.member(admin, team, Role.ADMIN)
    fields = {"name": "t", "consumer": "etl", "team": team, "created_by": admin}
    _, token = issue_token(scopes=[scope], now=clock.now(), **fields)
    program = Client(headers={"Authorization": f"Bearer {token}"})
    paths = ("", "/trips", "/trips/versions/1", "/trips/diff?from=1")
    codes = {program.get(URL + path).status_code for path in paths}
    codes.add(program.post(f"{URL}/trips/proposal", {"schema": '"long"'}, content_type=JSON).status_code)
    assert codes == {200 if scope == "schemas:read" else 403}


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        ("long", 0),
        (["null", "long"], 0),
        ({"type": "enum", "name": "E", "symbols": ["A"], "fields": "abc"}, 0),
        ({"type": "record", "name": "R", "fields": []}, 0),
        (trip(CITY), 2),
        (trip({"name": "row", "type": trip()}, {"name": "metadata", "type": "long"}), 3),
    ],
)
def test_columns_are_counted_whatever_a_schema_is(schema: Any, columns: int) -> None:
    assert column_count(schema) == columns
