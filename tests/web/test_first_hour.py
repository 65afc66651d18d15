"""An empty instance, by the browser alone: from nothing to the wizard and a dataset, each step as its page offers it."""

from __future__ import annotations

import re
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from lakehub.accounts.models import AuditEntry, Membership, Role, Team, User
from lakehub.catalog.models import Connection, DataCenter, Dataset
from tests import factories as make

pytestmark = pytest.mark.django_db
SECRET = "s3cr3t-and-long"


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.fixture
def source(tmp_path: Path, settings: Settings) -> str:
    """The URL of a database that may be read."""
    file = tmp_path / "ops.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE airlines (carrier TEXT NOT NULL PRIMARY KEY, updated_at TEXT)")
        database.execute("INSERT INTO airlines VALUES ('UA', '2026-11-16')")
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path.resolve()]
    return f"sqlite:///{file}"


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(make.user("olga", is_superuser=True))
    return client


@pytest.fixture
def admin() -> Client:
    """Of a team that has nothing yet."""
    client = Client()
    make.member(make.user("ada"), make.team("shop"), Role.ADMIN)
    client.force_login(User.objects.get(username="ada"))
    return client


def solid_link(answer: Any) -> str:
    """Where the page's main button leads."""
    links = re.findall(r'<a class="btn[^"]*btn--solid[^"]*" href="([^"]+)"', answer.content.decode())
    assert len(links) == 1, links
    return str(links[0])


def test_the_main_button_leads_from_nothing_to_a_dataset(operator: Client, source: str, tmp_path: Path) -> None:
    assert solid_link(operator.get("/")) == "/setup"
    forms = {
        "/new-team": {"name": "shop", "email": ""},
        "/new-data-center": {"name": "dc1", "lake_uri": (tmp_path / "lake").as_uri()},
        "/new-connection": {"name": "ops_db", "plugin": "sql", "team": "shop", "url": source, "action": "save"},
    }
    for address, fields in forms.items():
        assert solid_link(operator.get("/setup")) == address
        answer = operator.post(address, fields)
        assert answer.headers.get("Location") == "/setup", text_of(answer)
    assert solid_link(operator.get("/setup")) == solid_link(operator.get("/")) == "/onboarding"
    wizard = operator.get("/onboarding?connection=ops_db&table=airlines").content.decode()
    form = {
        "connection": "ops_db",
        "table": "airlines",
        "name": "airlines",
        "team": "shop",
        "tier": "3",
        "kind": "append-only",
        "primary_key": "carrier",
        "grain": "none",
        "partition_tz": "UTC",
        "data_centers": re.findall(r'name="data_centers" value="(\w+)" checked', wizard),
    }
    assert operator.post("/onboarding", form).headers["Location"] == "/onboarding/airlines"
    assert Dataset.objects.get().team.name == "shop"
    assert text_of(operator.get("/setup")).count("Lakehub is set up") == 1


def test_who_adds_a_team_is_its_admin_and_it_is_audited(operator: Client) -> None:
    operator.post("/new-team", {"name": "shop", "email": "shop@example.org"})
    assert Membership.objects.get().role == Role.ADMIN
    assert AuditEntry.objects.get(subject="team:shop").actor == "olga"


@pytest.mark.parametrize("name", ["", "Two Words", "shop"])
def test_a_team_with_an_unusable_name_is_given_back(operator: Client, name: str) -> None:
    make.team("shop")
    answer = operator.post("/new-team", {"name": name, "email": "typed@example.org"})
    assert answer.status_code == 422
    assert "typed@example.org" in answer.content.decode()
    assert Team.objects.count() == 1


def test_a_connection_is_tested_and_nothing_is_kept(admin: Client, source: str) -> None:
    answer = admin.post("/new-connection", {"plugin": "sql", "team": "shop", "url": source, "action": "test"})
    assert answer.status_code == 200
    assert "The connection works. Reached. It lists 1 table, such as airlines ." in text_of(answer)
    assert not Connection.objects.exists()
    assert AuditEntry.objects.get().action == "test connection"


def test_who_tried_which_place_is_kept_also_where_nothing_answers(admin: Client) -> None:
    fields = {"plugin": "sql", "team": "shop", "action": "test"}
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        answer = admin.post(
            "/new-connection", {**fields, "url": f"postgresql+psycopg://me:secret@127.0.0.1:{port}/ops"}
        )
    assert answer.status_code == 422
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.detail["place"]) == ("test connection", f"127.0.0.1:{port}/ops")
    assert "secret" not in str(entry.detail)


def test_a_host_that_keeps_silent_is_left(admin: Client) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # it takes the connection and says nothing
        url = f"postgresql+psycopg://me@127.0.0.1:{silent.getsockname()[1]}/ops?connect_timeout=2"
        answer = admin.post("/new-connection", {"plugin": "sql", "team": "shop", "action": "test", "url": url})
    assert "The host does not answer" in text_of(answer)


def test_script_gets_the_answer_alone(admin: Client, source: str) -> None:
    fields = {"plugin": "sql", "team": "shop", "url": source, "action": "test"}
    html = admin.post("/new-connection", fields, headers={"X-Fragment": "tested"}).content.decode()
    assert "The connection works." in html
    assert "<form" not in html


@pytest.mark.parametrize("action", ["test", "save"])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        (f"postgresql+psycopg://reader:{SECRET}@127.0.0.1:1/ops", "Nothing answers at this host and port"),
        (f"postgresql+psycopg://reader:{SECRET}@no-such-host.invalid/ops", "There is no host of this name"),
        (f"nosuchdriver://reader:{SECRET}@127.0.0.1/ops", "a database driver that Lakehub does not open"),
        (f"postgresql+psycopg://reader:{SECRET}@[::1/ops", "does not parse"),
        (SECRET, "does not parse"),
        ("sqlite:////nowhere/at/all.db", "LAKEHUB_SOURCE_ROOTS"),
    ],
)
def test_what_is_wrong_is_said_in_words_and_never_the_secret(admin: Client, action: str, url: str, why: str) -> None:
    answer = admin.post("/new-connection", {"name": "x", "plugin": "sql", "team": "shop", "url": url, "action": action})
    assert answer.status_code == 422
    assert why in text_of(answer)
    assert SECRET not in answer.content.decode()
    assert not Connection.objects.exists()


def test_lakehubs_own_data_is_guarded_in_a_test_too(admin: Client, settings: Settings) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [Path("/")]
    url = f"sqlite:///{settings.LAKEHUB_HOME}/lakehub.db"
    answer = admin.post("/new-connection", {"plugin": "sql", "team": "shop", "url": url, "action": "test"})
    assert "holds Lakehub's own data" in text_of(answer).replace("&#x27;", "'")


def test_a_new_person_gets_a_password_that_works_once_shown(operator: Client) -> None:
    answer = operator.post("/new-person", {"username": "pia", "full_name": "Pia Ruiz", "email": ""})
    assert "no-store" in answer.headers["Cache-Control"]
    shown = re.search(r"<pre[^>]*>([^<]+)</pre>", answer.content.decode())
    assert shown is not None
    assert Client().login(username="pia", password=shown[1])
    assert shown[1] not in operator.get("/new-person").content.decode()
    assert shown[1] not in str(list(AuditEntry.objects.values()))


def test_a_person_changes_the_password(operator: Client) -> None:
    client = Client()
    client.force_login(make.user("pia"))
    new = "much-longer-than-before"
    wrong = {"old_password": "no", "new_password1": new, "new_password2": new}
    assert client.post("/account/password", wrong).status_code == 422
    assert client.post("/account/password", {**wrong, "old_password": make.PASSWORD}).status_code == 302
    assert Client().login(username="pia", password=new)
    assert client.get("/account").status_code == 200  # this browser stays signed in


def test_an_admin_gives_and_takes_roles(admin: Client) -> None:
    make.user("pia")
    admin.post("/teams/shop/members", {"username": "pia", "role": "owner"})
    assert Membership.objects.get(user__username="pia").role == Role.OWNER
    admin.post("/teams/shop/members", {"username": "pia", "role": "on_call"})
    assert Membership.objects.get(user__username="pia").role == Role.ON_CALL
    admin.post("/teams/shop/members/remove", {"username": "pia"})
    assert not Membership.objects.filter(user__username="pia").exists()
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["set role", "set role", "remove member"]


@pytest.mark.parametrize(
    ("address", "fields"),
    [
        ("/teams/shop/members", {"username": "ada", "role": "viewer"}),
        ("/teams/shop/members/remove", {"username": "ada"}),
    ],
)
def test_a_team_keeps_an_admin(admin: Client, address: str, fields: dict[str, str]) -> None:
    assert "ada is the only admin of team shop" in text_of(admin.post(address, fields, follow=True))
    assert Membership.objects.get().role == Role.ADMIN


def test_a_mistyped_name_is_answered_with_the_right_one(admin: Client) -> None:
    make.user("pia")
    answer = admin.post("/teams/shop/members", {"username": "pai", "role": "owner"})
    assert answer.status_code == 422
    assert "Did you mean pia ?" in text_of(answer)


def test_who_may_nothing_is_told_who_may() -> None:
    client = Client()
    client.force_login(make.user("vera"))
    text = text_of(client.get("/setup"))
    assert "An administrator of Lakehub adds teams." in text
    assert "Add a" not in text
    assert "You need a role in a team." in text_of(client.get("/onboarding"))


@pytest.mark.parametrize(
    "uri", ["s3a://AKIA:hunter2@bucket/lake", "s3a://AKIA:hun/ter2@bucket/lake", "s3a://[bucket", "lake"]
)
def test_a_lake_whose_uri_is_none_or_holds_a_secret_is_refused(uri: str) -> None:
    """It is on the page of the setup, in the API and in the audit log, which everybody or every admin reads."""
    person = make.user("root", is_superuser=True)
    browser = Client()
    browser.force_login(person)
    body = {"name": "dc1", "lake_uri": uri}
    assert browser.post("/api/v1/data-centers", body, content_type="application/json").status_code == 422
    assert browser.post("/new-data-center", body).status_code == 422
    assert not DataCenter.objects.exists()
    assert not AuditEntry.objects.exists()
    azure = {"name": "dc1", "lake_uri": "abfss://lake@account.dfs.core.windows.net/dc1"}
    assert browser.post("/api/v1/data-centers", azure, content_type="application/json").status_code == 201
