"""The catalog over REST: who may, what an error says, and that a password never comes out."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from django.db import connection as database
from django.test import Client

from lakehub.accounts.models import Role, User
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog.models import Connection, Dataset
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    person = make.user("ines")
    make.member(person, make.team(), Role.OWNER)
    return person


@pytest.fixture
def body(tmp_path: Path) -> dict[str, object]:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("CREATE TABLE planes (tailnum TEXT, updated_at TEXT)")
        db.execute("INSERT INTO planes VALUES ('N1', '2026-11-16')")
    make.connection(url=f"sqlite:///{tmp_path / 'ops.db'}")
    make.data_center()
    return {
        "name": "planes",
        "team": "flight-ops",
        "tier": 3,
        "connection": "ops",
        "table": "planes",
        "data_centers": ["dc1"],
        "primary_key": ["tailnum"],
        "reference_key": "updated_at",
    }


def bearer(person: User, *scopes: str) -> Client:
    _, text = api_tokens.issue_token(
        name="t", consumer="etl", team=make.team(), created_by=person, scopes=scopes, now=make.NOW
    )
    return Client(headers={"authorization": f"Bearer {text}"})


def post(client: Client, path: str, body: object) -> tuple[int, dict[str, object]]:
    answer = client.post(f"/api/v1/{path}", body, content_type="application/json")
    return answer.status_code, answer.json()


def test_an_owner_onboards_with_a_token(owner: User, body: dict[str, object]) -> None:
    code, reply = post(bearer(owner, "catalog:write"), "datasets", body)
    assert code == 201
    evidence = reply["key_evidence"]
    assert (evidence["rows"], evidence["distinct"], evidence["nulls"], evidence["drawn"]) == (1, 1, 0, "all")
    assert evidence["sentence"] == "1 key in 1 row, no nulls; all rows were read"


def test_a_check_writes_nothing(owner: User, body: dict[str, object]) -> None:
    code, _ = post(bearer(owner, "catalog:write"), "datasets?check=1", body)
    assert (code, Dataset.objects.count()) == (200, 0)


def test_a_token_without_the_scope_is_refused(owner: User, body: dict[str, object]) -> None:
    code, reply = post(bearer(owner, "catalog:read"), "datasets", body)
    assert (code, Dataset.objects.count()) == (403, 0)
    assert "lacks the scope 'catalog:write'" in str(reply)


def test_a_viewer_may_not_onboard(body: dict[str, object]) -> None:
    viewer = make.user("vera")
    make.member(viewer, make.team(), Role.VIEWER)
    code, reply = post(bearer(viewer, "catalog:write"), "datasets", body)
    assert (code, Dataset.objects.count()) == (403, 0)
    assert "you need to be owner or admin of team flight-ops" in str(reply)


def test_nobody_reads_without_signing_in(body: dict[str, object]) -> None:
    assert Client().get("/api/v1/datasets").status_code == 401


def test_an_error_names_the_field(owner: User, body: dict[str, object]) -> None:
    code, reply = post(bearer(owner, "catalog:write"), "datasets", body | {"primary_key": ["tailnumm"]})
    assert code == 422
    assert reply["error"]["fields"] == {"primary_key": "There is no column `tailnumm`. Did you mean `tailnum`?"}  # type: ignore[index]


@pytest.mark.parametrize("bad", [[], "text", 7, {"every": "soon"}, {"tier": "high"}])
def test_a_body_of_another_shape_is_an_answer_not_a_crash(owner: User, body: dict[str, object], bad: object) -> None:
    code, reply = post(bearer(owner, "catalog:write"), "datasets", body | bad if isinstance(bad, dict) else bad)
    assert code == 400
    assert reply["error"]["code"] in ("invalid", "parse_error")  # type: ignore[index]


def test_a_connection_never_shows_its_url_and_is_encrypted_at_rest(owner: User) -> None:
    made = make.connection(name="secret", url="postgresql://u:hunter2@127.0.0.1/x")
    assert "hunter2" not in bearer(owner, "catalog:read").get("/api/v1/connections").content.decode()
    with database.cursor() as cursor:
        cursor.execute("SELECT url FROM catalog_connection WHERE id = %s", [made.pk])
        assert "hunter2" not in cursor.fetchone()[0]
    assert Connection.objects.get(pk=made.pk).url.endswith("hunter2@127.0.0.1/x")


def test_a_source_that_does_not_answer_is_not_kept_and_its_password_not_told(owner: User) -> None:
    make.member(admin := make.user("ada"), make.team(), Role.ADMIN)
    asked = {"name": "pg", "plugin": "sql", "url": "postgresql://u:hunter2@127.0.0.1:1/x", "team": "flight-ops"}
    code, reply = post(bearer(admin, "catalog:write"), "connections", asked)
    assert (code, Connection.objects.count()) == (422, 0)
    assert "hunter2" not in str(reply)
    assert "u:***@127.0.0.1:1/x" in str(reply)


def test_a_token_acts_for_its_own_team_only(owner: User, body: dict[str, object]) -> None:
    make.member(owner, make.team("weather-desk"), Role.OWNER)
    code, reply = post(bearer(owner, "catalog:write"), "datasets", body | {"team": "weather-desk"})
    assert (code, Dataset.objects.count()) == (403, 0)
    assert "This token acts for team flight-ops only." in str(reply)


def test_an_off_boarded_dataset_is_restored_and_its_copies_dropped(owner: User) -> None:
    make.member(admin := make.user("ada"), make.team(), Role.ADMIN)
    make.feed(make.dataset("planes"))
    client = bearer(admin, "catalog:write", "ingestion:run")
    client.delete("/api/v1/datasets/planes")
    code, _ = post(client, "datasets/planes/runs", {"kind": "drop", "data_center": "dc1"})
    assert code == 201
    code, _ = post(client, "datasets/planes/restore", {})
    assert (code, Dataset.objects.get().offboarded_at) == (200, None)


def test_off_boarding_needs_an_admin_of_the_team(owner: User) -> None:
    make.dataset("planes")
    assert bearer(owner, "catalog:write").delete("/api/v1/datasets/planes").status_code == 403
    make.member(admin := make.user("ada"), make.team(), Role.ADMIN)
    assert bearer(admin, "catalog:write").delete("/api/v1/datasets/planes").status_code == 204
    assert Dataset.objects.get().offboarded_at is not None
