"""A connection gets another URL: told first, tried first, never shown, and what is read elsewhere is tested again."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core import signing
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.models import JobKind, JobRun, JobState
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.datasets.connection_change import change_connection, check_connection_change
from lakehub.catalog.models import Connection, Dataset, DatasetCopy
from lakehub.catalog.onboarding.onboarding_request import CopyRequest
from lakehub.db.encrypted_fields import encrypt_text
from lakehub.kernel.errors import Conflict, Refused
from quality.models import Unit
from tests import factories
from tests.factories import NOW
from tests.web.catalog.test_copy_locations import AT_OPS
from tests.web.catalog.test_redefine import AT_ONE, CHANGED_AT, onboard
from tests.web.catalog.test_redefine import sources as sources

pytestmark = pytest.mark.django_db
AT_BOTH = replace(AT_OPS, copies=(CopyRequest("dc2", "ops3", "flights"),))


def ops() -> Connection:
    return Connection.objects.get(name="ops")


def change(url: str, **options: Any) -> list[str]:
    made = change_connection(ops(), url, actor="ann", now=CHANGED_AT, by_operator=True, **options)
    return [line.text for line in made.consequences]


def refused(url: str) -> str:
    with pytest.raises(Refused) as caught:
        check_connection_change(ops(), url, actor="ann", now=CHANGED_AT, by_operator=True)
    return caught.value.fields["url"]


def verdicts(data_center: str = "dc1") -> set[str]:
    units = Unit.objects.filter(copy__data_center__name=data_center, latest_at__isnull=False, test__key="duplicates")
    return set(units.values_list("verdict", flat=True))


def test_another_way_to_the_same_place_changes_no_verdict(tmp_path: Path) -> None:
    onboard(AT_BOTH)
    lines = change(f"sqlite:///{tmp_path}/../{tmp_path.name}/ops.db")
    assert lines[0].startswith("It leads where it did")
    assert verdicts() == {"pass"}
    assert DatasetCopy.objects.exclude(monitored_from=None).count() == 2


def test_another_place_is_unknown_until_it_is_read(tmp_path: Path) -> None:
    onboard(AT_BOTH)
    shutil.copy(tmp_path / "ops.db", tmp_path / "moved.db")
    lines = change(f"sqlite:///{tmp_path}/moved.db")
    assert lines[:2] == [f"It leads to {tmp_path}/moved.db instead of {tmp_path}/ops.db", "Read by it: flights"]
    assert "Tested again in all of their partitions: flights@dc1" in lines
    assert verdicts() == {"unknown"}
    assert verdicts("dc2") == {"pass"}
    assert AuditEntry.objects.get(action="change connection").detail["moved"] is True


def test_a_place_without_the_table_or_its_columns_is_refused(tmp_path: Path) -> None:
    onboard(AT_BOTH)
    with sqlite3.connect(tmp_path / "empty.db") as db:
        db.execute("CREATE TABLE other (id INTEGER)")
    assert refused(f"sqlite:///{tmp_path}/empty.db").startswith("flights: There is no table `flights`")
    with sqlite3.connect(tmp_path / "empty.db") as db:
        db.execute("CREATE TABLE flights (id INTEGER)")
    assert refused(f"sqlite:///{tmp_path}/empty.db") == "flights: flights there has no column flight_date."
    assert "gone.db" in refused(f"sqlite:///{tmp_path}/gone.db")


def test_the_place_of_the_other_copy_is_refused(tmp_path: Path) -> None:
    onboard(AT_BOTH)
    assert "dc1 and dc2 would read the same rows" in refused(f"sqlite:///{tmp_path}/ops3.db")


def test_a_job_that_loads_from_there_is_named_where_it_moves(tmp_path: Path) -> None:
    onboard(replace(AT_ONE, ingested=True))
    run = JobRun.objects.create(
        copy=DatasetCopy.objects.get(), kind=JobKind.INCREMENTAL, state=JobState.RUNNING, asked_by="", due_at=NOW
    )
    with pytest.raises(Conflict, match=f"incremental run {run.pk} on flights@dc1"):
        change(f"sqlite:///{tmp_path}/ops2.db")
    change(f"sqlite:///{tmp_path}/./ops.db")


def test_two_changes_at_once_one_wins(tmp_path: Path) -> None:
    stale = ops()
    change(f"sqlite:///{tmp_path}/ops2.db")
    with pytest.raises(Conflict):
        change_connection(stale, f"sqlite:///{tmp_path}/ops3.db", actor="ben", now=NOW, by_operator=True)


def test_the_api_is_for_admins_of_its_team_and_shows_no_url(tmp_path: Path, settings: Any) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path.resolve()]
    person = factories.user("ann")
    membership = factories.member(person, factories.team(), Role.OWNER)
    browser = Client()
    browser.force_login(person)

    def patch(url: str, query: str = "") -> Any:
        return browser.patch(f"/api/v1/connections/ops{query}", {"url": url}, content_type="application/json")

    url = f"sqlite:///{tmp_path}/ops2.db"
    assert patch(url).status_code == 403
    membership.role = Role.ADMIN
    membership.save()
    checked = patch(url, "?check=1")
    assert [line["text"] for line in checked.json()["consequences"]][-1] == "Read by it: nothing yet"
    assert ops().url.endswith("/ops.db")
    assert patch(url).status_code == 200
    assert ops().url == url
    limits = {"max_connections": None, "rows_per_s": None}
    shown = {"name": "ops", "plugin": "sql", "team": "flight-ops", "role": None, "role_warning": "", **limits}
    assert browser.get("/api/v1/connections/ops").json() == shown
    secret = patch("postgresql+psycopg://ann:hunter2@nowhere.invalid/x")
    assert secret.status_code == 422
    assert "hunter2" not in secret.content.decode() + json.dumps(
        list(AuditEntry.objects.values_list("detail", flat=True))
    )
    assert browser.patch("/api/v1/connections/opss", {"url": url}, content_type="application/json").status_code == 404


@pytest.fixture
def admin() -> Client:
    person = factories.user("ada")
    factories.member(person, factories.team(), Role.ADMIN)
    browser = Client()
    browser.force_login(person)
    return browser


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a port of this machine that nothing listens on; its account has a password."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"postgresql+psycopg://me:hunter2@127.0.0.1:{bound.getsockname()[1]}/ops"


@pytest.mark.parametrize("way", ["add", "page", "check", "change", "confirm"])
def test_who_tried_which_place_is_in_the_audit_log_whatever_way(admin: Client, silent: str, way: str) -> None:
    """Whoever may connect could otherwise search the network port by port, and nobody would know."""
    source = {"name": "new", "plugin": "sql", "team": "flight-ops", "url": silent}
    json_body: dict[str, Any] = {"content_type": "application/json"}
    sealed = signing.dumps([ops().pk, encrypt_text(silent)], salt="connection-url")
    answer = {
        "add": lambda: admin.post("/api/v1/connections", source, **json_body),
        "page": lambda: admin.post("/connections/ops", {"url": silent}),
        "check": lambda: admin.patch("/api/v1/connections/ops?check=1", {"url": silent}, **json_body),
        "change": lambda: admin.patch("/api/v1/connections/ops", {"url": silent}, **json_body),
        "confirm": lambda: admin.post("/connections/ops", {"sealed": sealed}),
    }[way]()
    assert answer.status_code == 422
    entry = AuditEntry.objects.get(action="test connection")
    assert (entry.actor, entry.subject) == ("ada", "team:flight-ops" if way == "add" else "connection:ops")
    assert entry.detail["place"] == silent.partition("@")[2]
    assert "hunter2" not in str(entry.detail)


def test_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    onboard(AT_BOTH)
    shutil.copy(tmp_path / "ops.db", tmp_path / "moved.db")
    monkeypatch.setenv("OPS_URL", f"sqlite:///{tmp_path}/moved.db")
    call_command("change_connection", "ops", "--url-from", "OPS_URL", "--check")
    assert "Nothing was changed." in capsys.readouterr().out
    assert ops().url.endswith("/ops.db")
    call_command("change_connection", "ops", "--url-from", "OPS_URL")
    assert ops().url.endswith("/moved.db")
    file = tmp_path / "changes.yaml"
    file.write_text("data_centers: [dc1]\n")
    call_command("change_dataset", "flights", str(file), "--check")
    assert "dc2: tested no more" in capsys.readouterr().out
    assert DatasetCopy.objects.count() == 2
    call_command("change_dataset", "flights", str(file))
    assert DatasetCopy.objects.count() == 1
    assert Dataset.objects.get().feed.source_name == "ops"
    file.write_text("datacenters: [dc1]\n")
    with pytest.raises(CommandError, match="`datacenters` is nothing that can be changed"):
        call_command("change_dataset", "flights", str(file))
