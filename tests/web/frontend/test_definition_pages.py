"""What was said at onboarding is changed on a page that says first what comes of it; so is the URL of a connection."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import Connection, Dataset, DatasetCopy
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest
from lakehub.catalog.onboarding.redefine import change_dataset
from lakehub.kernel.errors import Refused
from tests import factories as make

ADDRESS = "/datasets/trips/definition"
FIELDS = {
    "team": "flight-ops",
    "connection": "trips1",
    "table": "trips",
    "data_centers": ["dc1", "dc2"],
    "copy_connection.dc2": "trips2",
    "copy_table.dc2": "trips",
    "partition_column": "day",
    "grain": "day",
    "partition_tz": "UTC",
    "upstream": "",
    "one_to_one": "",
}


def database(file: Path) -> str:
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE trips (id INTEGER PRIMARY KEY, day TEXT)")
        db.execute("INSERT INTO trips VALUES (1, '2026-11-16')")
    return f"sqlite:///{file}"


@pytest.fixture
def trips(page: Client, tmp_path: Path, settings: Any) -> Dataset:
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path.resolve()]
    for name in ("trips1", "trips2", "trips3"):
        make.connection(name, database(tmp_path / f"{name}.db"))
    application = OnboardingRequest(
        name="trips", team="flight-ops", tier=3, connection="trips1", table="trips", data_centers=("dc1", "dc2"),
        copies=(CopyRequest("dc2", "trips2", "trips"),), kind="append-only", primary_key=("id",), partition_column="day",
        grain="day", ingested=False,
    )  # fmt: skip
    return onboard_dataset(application, actor="ines", now=make.NOW).dataset


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def fields(dataset: Dataset, **changed: Any) -> dict[str, Any]:
    dataset.refresh_from_db()
    return FIELDS | {"version": dataset.metadata_version} | changed


def hidden(answer: Any) -> dict[str, Any]:
    """The form that confirms, as a browser sends it."""
    form = answer.content.decode().split('name="confirmed"')[1].split("</form>")[0]
    sent: dict[str, Any] = {"confirmed": "1"}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form):
        sent.setdefault(name, []).append(value)
    return sent


def test_what_comes_of_it_is_shown_before_it_is_made(page: Client, trips: Dataset) -> None:
    assert 'value="trips"' in page.get(ADDRESS).content.decode()
    shown = page.post(ADDRESS, fields(trips, **{"data_centers": ["dc1"], "copy_connection.dc2": ""}))
    assert "dc2: tested no more" in text_of(shown)
    assert DatasetCopy.objects.filter(dataset=trips).count() == 2
    page.post(ADDRESS, hidden(shown))
    assert [copy.data_center.name for copy in trips.copies.all()] == ["dc1"]
    assert AuditEntry.objects.get(subject="dataset:trips", action="redefine").actor == "ines"


def test_a_form_that_changes_nothing_changes_nothing(page: Client, trips: Dataset) -> None:
    assert "Nothing differs" in text_of(page.post(ADDRESS, fields(trips), follow=True))
    assert not AuditEntry.objects.filter(action="redefine").exists()


def test_a_copy_is_moved_and_moved_back(page: Client, trips: Dataset) -> None:
    page.post(ADDRESS, hidden(page.post(ADDRESS, fields(trips, **{"copy_connection.dc2": "trips3"}))))
    assert make.copy_of(trips, "dc2").source_name == "trips3"
    same = page.post(ADDRESS, fields(trips, **{"copy_connection.dc2": "", "copy_table.dc2": ""}))
    assert same.status_code == 422
    assert "dc1 and dc2 would read the same table" in text_of(same)
    assert make.copy_of(trips, "dc2").source_name == "trips3"


def test_an_old_form_changes_nothing(page: Client, trips: Dataset) -> None:
    old = fields(trips, table="trips", connection="trips3") | {"confirmed": "1", "version": "0"}
    assert "by somebody else just now" in text_of(page.post(ADDRESS, old, follow=True))
    assert trips.feed.source_name == "trips1"


def test_a_guest_may_not(guest: Client, trips: Dataset) -> None:
    assert guest.get(ADDRESS).status_code == 403
    assert guest.post(ADDRESS, fields(trips, connection="trips3")).status_code == 403
    assert guest.post("/connections/trips1", {"url": "sqlite:////x.db"}).status_code == 403
    assert 'name="url"' not in guest.get("/connections/trips1").content.decode()


def test_an_owner_may_not_give_it_to_a_team_or_connection_of_others(client: Client, trips: Dataset) -> None:
    person = make.user("olga")
    make.member(person, trips.team, Role.OWNER)
    client.force_login(person)
    radar = make.team("radar")
    make.connection("radar_db", "sqlite:////nowhere.db", owner=radar)
    assert client.post(ADDRESS, fields(trips, team="radar")).status_code == 403
    assert client.post(ADDRESS, fields(trips, connection="radar_db")).status_code == 403
    assert client.post(ADDRESS, fields(trips, **{"copy_connection.dc2": "radar_db"})).status_code == 403
    assert client.post("/connections/trips1", {"url": "sqlite:////x.db"}).status_code == 403


@pytest.fixture
def receiver(trips: Dataset, client: Client) -> Client:
    """An owner of the team that was given trips; its connections still are those of the team that gave it."""
    radar = make.team("radar")
    change_dataset(trips, {"team": "radar"}, actor="ines", now=make.NOW)
    make.dataset("raw", team=radar)
    make.connection("radar_db", Connection.objects.get(name="trips3").url, owner=radar)
    person = make.user("rosa")
    make.member(person, radar, Role.OWNER)
    client.force_login(person)
    return client


def test_what_stays_takes_no_right_to_another_teams_connection(receiver: Client, trips: Dataset) -> None:
    """The form names the connection of every copy, also where only the upstream differs: it ended in 403."""
    shown = receiver.post(ADDRESS, fields(trips, team="radar", upstream="raw"))
    assert "upstream; nothing is changed yet" in text_of(shown)
    receiver.post(ADDRESS, hidden(shown))
    assert [str(edge.upstream) for edge in trips.upstream_edges.all()] == ["raw"]
    moved = receiver.post(ADDRESS, fields(trips, team="radar", upstream="raw", connection="radar_db"))
    assert moved.status_code == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"table": "payroll"},
        {"connection": "trips3"},
        {"copy_connection.dc2": "trips3"},
        {"copy_table.dc2": "payroll"},
        {"copy_connection.dc2": "", "copy_table.dc2": "payroll"},
        {"data_centers": ["dc1", "dc2", "dc3"], "copy_table.dc3": "payroll"},
        {"copy_connection.dc2": "radar_db", "copy_connection.dc1": "trips3"},
    ],
)
def test_what_is_read_otherwise_takes_the_right_to_the_connection(
    receiver: Client, trips: Dataset, changed: dict[str, Any]
) -> None:
    assert receiver.post(ADDRESS, fields(trips, team="radar", **changed)).status_code == 403


def test_another_teams_connection_of_a_copy_stays_chosen(receiver: Client, trips: Dataset) -> None:
    """A list without it has "as above" chosen, and whoever changes anything else moves the copy."""
    page = receiver.get(ADDRESS).content.decode()
    of_copy = page.split('id="f-copy_connection.dc2"')[1].split("</select>")[0]
    assert "<option selected>trips2</option>" in of_copy


def test_the_url_is_tried_shown_nowhere_and_changed_when_confirmed(
    page: Client, trips: Dataset, tmp_path: Path
) -> None:
    url = database(tmp_path / "moved.db")
    shown = page.post("/connections/trips1", {"url": url})
    assert "Tested again in all of their partitions: trips@dc1" in text_of(shown)
    assert url not in shown.content.decode()
    (sealed,) = re.findall(r'name="sealed" value="([^"]+)"', shown.content.decode())
    page.post("/connections/trips2", {"sealed": sealed})
    assert Connection.objects.get(name="trips2").url.endswith("trips2.db"), "it is of another connection"
    page.post("/connections/trips1", {"sealed": sealed})
    assert Connection.objects.get(name="trips1").url == url
    refused = page.post("/connections/trips1", {"url": "postgresql+psycopg://ann:hunter2@nowhere.invalid/x"})
    assert refused.status_code == 422
    assert "hunter2" not in refused.content.decode()
    assert page.get("/connections/nowhere").status_code == 404


def test_of_what_no_connection_reads_owner_and_upstream_are_changed(page: Client, trips: Dataset) -> None:
    unfed = make.dataset("unfed", team=trips.team)
    where = f"/datasets/{unfed.name}/definition"
    assert 'name="table"' not in page.get(where).content.decode()
    sent = {"team": "flight-ops", "upstream": "trips", "version": unfed.metadata_version}
    page.post(where, hidden(page.post(where, sent)))
    assert [edge.upstream for edge in unfed.upstream_edges.all()] == [trips]
    unfed.refresh_from_db()
    with pytest.raises(Refused, match="is not read by a connection, so its grain stays"):
        change_dataset(unfed, {"grain": "month"}, actor="ines", now=make.NOW)


def test_the_limits_of_a_connection_say_their_least(page: Client, trips: Dataset) -> None:
    assert "At least 100; empty: as fast as they can." in text_of(page.get("/connections/trips1"))
    refused = page.post("/connections/trips1/limits", {"rows_per_s": "99", "max_connections": ""}, follow=True)
    assert "`rows_per_s` is 99: give a number from 100 to 1,000,000,000, or none for no limit." in text_of(refused)
    assert Connection.objects.get(name="trips1").rows_per_s is None
