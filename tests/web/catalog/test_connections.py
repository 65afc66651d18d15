"""Connections are tried before they are kept, and lead neither to Lakehub's own data nor out of the operator's folders."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection as own
from django.test import Client

from lakehub.accounts.models import Role
from lakehub.catalog import connection_guard, connections
from lakehub.catalog.connection_guard import own_database_check
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import Connection
from lakehub.catalog.storages.sql import SqlStorage
from lakehub.db.encrypted_fields import encrypt_text, keyed_digest
from lakehub.kernel.errors import Refused
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("CREATE TABLE planes (tailnum TEXT)")
    return tmp_path / "ops.db"


def connect(url: str, plugin: str = "sql", **more: Any) -> Connection:
    return connections.add_connection(
        name="ops", plugin=plugin, url=url, team=make.team().name, actor="ada", now=make.NOW, **more
    )


def test_a_file_of_this_machine_needs_the_operators_word(file: Path, settings: Any) -> None:
    with pytest.raises(Refused, match="LAKEHUB_SOURCE_ROOTS"):
        connect(f"sqlite:///{file}")
    settings.LAKEHUB_SOURCE_ROOTS = [file.parent]
    assert connect(f"sqlite:///{file}").pk


def test_a_path_that_climbs_out_of_a_root_is_refused(file: Path, settings: Any) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [file.parent / "below"]
    with pytest.raises(Refused, match="not below a folder"):
        connect(f"sqlite:///{file.parent}/below/../ops.db")


def test_the_operator_names_any_path(file: Path) -> None:
    assert connect(f"sqlite:///{file}", by_operator=True).pk


@pytest.mark.parametrize("name", ["secret_key", "encryption_key"])
def test_a_folder_that_holds_lakehubs_own_keys_is_no_source(name: str, settings: Any) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [Path("/")]
    for folder in (settings.LAKEHUB_HOME, settings.LAKEHUB_HOME.parent, Path("/")):
        with pytest.raises(Refused, match="own data"):
            connect(folder.as_uri(), plugin="files", by_operator=True)


def test_lakehubs_own_database_is_no_source(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [Path("/")]
    monkeypatch.setitem(own.settings_dict, "NAME", str(tmp_path / "lakehub.db"))
    for file in ("lakehub.db", "lakehub.db-wal", "x/../lakehub.db"):
        with pytest.raises(Refused, match="own data"):
            connect(f"sqlite:///{tmp_path / file}", by_operator=True)


def test_a_hash_in_the_path_does_not_hide_where_it_leads(file: Path, settings: Any) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [file.parent / "allowed"]
    (file.parent / "allowed" / "#").mkdir(parents=True)
    with pytest.raises(Refused, match="not below a folder"):
        connect(f"sqlite:///{file.parent}/allowed/#/../../ops.db")


def test_a_link_is_followed_and_a_path_is_read_as_text_too(file: Path, settings: Any) -> None:
    """`link/..` is above what the link leads to for the system, and above the link for what reads a path as text."""
    allowed, deep = file.parent / "allowed", file.parent / "allowed" / "a" / "b"
    deep.mkdir(parents=True)
    (allowed / "ops.db").symlink_to(file)
    (file.parent / "link").symlink_to(deep)
    (allowed / "a" / "ops.db").write_bytes(file.read_bytes())
    settings.LAKEHUB_SOURCE_ROOTS = [allowed]
    for path in (allowed / "ops.db", file.parent / "link" / ".." / "ops.db"):
        with pytest.raises(Refused, match="not below a folder"):
            connect(f"sqlite:///{path}")


def test_a_second_name_of_lakehubs_own_file_is_no_source(settings: Any, tmp_path: Path) -> None:
    (settings.LAKEHUB_HOME / "encryption_key").touch()
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path]
    (tmp_path / "ops.db").hardlink_to(settings.LAKEHUB_HOME / "encryption_key")
    with pytest.raises(Refused, match="own data"):
        connect(f"sqlite:///{tmp_path / 'ops.db'}")


DATABASES = {"sql": "postgresql+psycopg", "mysql": "mysql", "schemaless": "mysql"}
"""How a URL begins, by plug-in."""


@pytest.mark.parametrize("plugin", DATABASES)
def test_a_database_is_at_a_host_of_the_operators_list(plugin: str, settings: Any) -> None:
    """Nothing answers at port 1: who is let through gets that far."""
    settings.LAKEHUB_SOURCE_HOSTS = ["*.example.com", "127.0.0.0/8"]
    begin = DATABASES[plugin]
    for host in ("db.example.org", "169.254.169.254", "localhost", "127.1", "[::1]", "example.com.evil.org"):
        name = re.escape(host.strip("[]"))
        with pytest.raises(Refused, match=rf"{name} is not a host that databases may be at.*LAKEHUB_SOURCE_HOSTS"):
            connect(f"{begin}://u:hunter2@{host}:1/x", plugin)
    for allowed, by_operator in (("127.0.0.1", False), ("localhost", True)):
        with pytest.raises(Refused, match="refused") as reached:
            connect(f"{begin}://u:hunter2@{allowed}:1/x", plugin, by_operator=by_operator)
        assert "hunter2" not in str(reached.value)


@pytest.mark.parametrize("plugin", DATABASES)
def test_a_loopback_is_refused_where_the_operator_names_other_hosts(plugin: str, settings: Any, client: Client) -> None:
    """Over the API, for a new connection and for another URL of one that is there."""
    settings.LAKEHUB_SOURCE_HOSTS = ["*.example.com"]
    make.member(person := make.user("ada"), make.team(), Role.ADMIN)
    client.force_login(person)
    begin = DATABASES[plugin]
    body = {"name": "new", "plugin": plugin, "url": f"{begin}://u:hunter2@127.0.0.1:1/x", "team": make.team().name}
    made = make.connection("kept", f"{begin}://u@db.example.com:1/x", plugin=plugin)
    answers = [
        client.post("/api/v1/connections", body, content_type="application/json"),
        client.patch("/api/v1/connections/kept", {"url": body["url"]}, content_type="application/json"),
    ]
    for answer in answers:
        text = answer.content.decode()
        assert (answer.status_code, "127.0.0.1 is not a host that databases may be at" in text) == (422, True), text
        assert "hunter2" not in text
    made.refresh_from_db()
    assert (made.url, Connection.objects.count()) == (f"{begin}://u@db.example.com:1/x", 1)


@pytest.mark.parametrize("plugin", ["mysql", "schemaless"])
def test_a_captured_server_is_named_with_its_database_and_by_no_other_driver(plugin: str) -> None:
    for url, why in {
        "mysql://u:hunter2@127.0.0.1:1": "does not name a database",
        "postgresql+psycopg://u:hunter2@127.0.0.1:1/x": "another kind of database",
        "sqlite:////etc/passwd": "another kind of database",
        "mysql://u:hunter2@127.0.0.1:1/x?unix_socket=/tmp/other": "unix_socket",
    }.items():
        with pytest.raises(Refused, match=why) as refused:
            connect(url, plugin, by_operator=True)
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("option", "plugin"), [("sslrootcert", "sql"), ("ssl_ca", "sql"), ("ssl_ca", "mysql"), ("ssl_ca", "schemaless")]
)
def test_a_certificate_is_read_from_the_systems_folders_or_the_operators(
    option: str, plugin: str, settings: Any, tmp_path: Path
) -> None:
    """Else drivers would tell which files there are here, and what begins them."""
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path / "allowed"]
    (tmp_path / "secret.pem").touch()
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "link.pem").symlink_to(tmp_path / "secret.pem")
    driver = {"sslrootcert": "postgresql+psycopg"}.get(option, "mysql+pymysql" if plugin == "sql" else "mysql")
    begin = f"{driver}://u@127.0.0.1:1/x"
    for path in (tmp_path / "secret.pem", tmp_path / "allowed" / "link.pem", Path("/etc/ssl/private/key.pem")):
        with pytest.raises(Refused, match="is not a certificate that may be read: name one below"):
            connect(f"{begin}?{option}={path}", plugin)
    with pytest.raises(Refused, match="is not a certificate"):
        connect(f"{begin}?{option}={settings.LAKEHUB_HOME / 'secret_key'}", plugin, by_operator=True)
    with pytest.raises(Refused, match=r"(?i)certificate|SSL|refused|no such file"):
        connect(f"{begin}?{option}={tmp_path / 'allowed' / 'own.pem'}", plugin)


OWN_FOLDERS = ["broker/queue", "gate-rate", "api-rate", "address-rate", "jobs", "static", "staging", "whatever-comes"]


@pytest.mark.parametrize("folder", OWN_FOLDERS)
@pytest.mark.parametrize("plugin", ["files", "hudi"])
def test_what_lies_below_lakehubs_own_folders_is_no_source(folder: str, plugin: str, settings: Any) -> None:
    with pytest.raises(Refused, match="own data"):
        connect((settings.LAKEHUB_HOME / folder / "below").as_uri(), plugin=plugin, by_operator=True)


def test_the_changelog_is_no_source_wherever_it_lies(settings: Any, tmp_path: Path) -> None:
    """It has the rows of all captured tables."""
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    for folder in ("log", "log/topic-trips.1", "."):
        with pytest.raises(Refused, match="own data"):
            connect((tmp_path / folder).resolve().as_uri(), plugin="files", by_operator=True)


def test_the_home_is_the_operators_but_for_what_is_lakehubs_own(settings: Any, tmp_path: Path, file: Path) -> None:
    settings.LAKEHUB_HOME = tmp_path
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path]
    with pytest.raises(Refused, match="own data"):
        connect(f"sqlite:///{file}")
    for name in ("beat.db", "secret_key", ".encryption_key.12.ab", "lakehub.db-journal", "jobs/x.db", "api-rate/x.db"):
        with pytest.raises(Refused, match="own data"):
            connect(f"sqlite:///{tmp_path / name}", by_operator=True)
    assert connect(f"sqlite:///{file}", by_operator=True).pk


@pytest.mark.parametrize("place", ["", "flights", ".."])
def test_a_lake_of_lakehubs_own_is_monitored_by_the_operators_word_only(
    place: str, tmp_path: Path, settings: Any
) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path]
    lake = tmp_path / "lakes" / "dc1"
    (lake / "flights").mkdir(parents=True)
    make.data_center("dc0", "s3a://lake/dc0")
    make.data_center("dc1", lake.as_uri())
    url = (lake / place).resolve().as_uri()
    for plugin, by_operator in (("files", True), ("files", False), ("hudi", False)):
        with pytest.raises(Refused, match="own data"):
            connect(url, plugin=plugin, by_operator=by_operator)
    assert connect(url, plugin="hudi", by_operator=True).pk


def test_a_lake_of_somebody_else_is_monitored(tmp_path: Path, settings: Any) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path]
    make.data_center("dc1", (tmp_path / "lakes").as_uri())
    (tmp_path / "theirs").mkdir()
    assert connect((tmp_path / "theirs").as_uri(), plugin="hudi").pk


def on_postgresql(monkeypatch: pytest.MonkeyPatch, **parameters: str) -> None:
    monkeypatch.setattr(own, "vendor", "postgresql")
    monkeypatch.setattr(own, "get_connection_params", lambda: parameters)
    monkeypatch.setattr(connection_guard, "_own_identities", frozenset)


@pytest.mark.parametrize("own_host", ["", "localhost", "127.0.0.1", "::1", "/run/postgresql", "db.invalid,localhost"])
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.1", "[::1]", "127.0.0.2", "0.0.0.0"])
@pytest.mark.parametrize("own_port", ["", "5432"])
def test_lakehubs_own_database_is_known_under_each_name(
    host: str, own_host: str, own_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = {"dbname": "lakehub", "host": own_host, "port": own_port}
    storages = [SqlStorage(f"postgresql://u@{host}{port}/lakehub") for port in ("", ":5432")]
    with monkeypatch.context() as patch:
        on_postgresql(patch, **parameters)
        refuse_own_database = own_database_check()
        for storage in storages:
            with pytest.raises(Refused, match="own database"):
                refuse_own_database(storage, storage.location())


@pytest.mark.parametrize("address", ["localhost:5433/lakehub", "localhost/ops", "db.invalid/lakehub"])
def test_another_database_of_this_machine_is_a_source(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = SqlStorage(f"postgresql://u@{address}")
    with monkeypatch.context() as patch:
        on_postgresql(patch, dbname="lakehub", host="localhost", port="")
        own_database_check()(storage, storage.location())


@pytest.mark.parametrize(
    ("plugin", "url"),
    [
        ("sql", "postgresql+psycopg://u:pa/ss@127.0.0.1:1/x"),
        ("sql", "postgresql+psycopg://u:pa#ss@127.0.0.1:1/x"),
        ("sql", "postgresql+psycopg://u:pa?ss@127.0.0.1:1/x"),
        ("sql", "postgresql+psycopg://u:1@pa:ss@127.0.0.1:1/x"),
        ("sql", "postgresql+psycopg://u:1@pa@ss@127.0.0.1:1/x"),
        ("sql", "postgresql+psycopg://u:1@pa/ss@127.0.0.1:1/x"),
        ("sql", "mysql+pymysql://u:pa/ss@127.0.0.1:1/x?connect_timeout=pa"),
        ("sql", "mysql+pymysql://u:pa/ss@127.0.0.1:1/x?charset=pa"),
        ("files", "file://[pa"),
        ("hudi", "file://pa:ss@host:port/"),
    ],
)
def test_a_url_that_does_not_parse_is_refused_without_its_password(plugin: str, url: str) -> None:
    with pytest.raises(Refused) as caught:
        connect(url, plugin=plugin, by_operator=True)
    assert list(caught.value.fields) == ["url"]
    for part in ("pa/", "pa#", "pa?", "pa:", "pa@", "`pa", "'pa", '"pa', "ss@", "ss:", "[pa"):
        assert part not in str(caught.value)


def test_an_unknown_plugin_and_a_driver_that_is_not_there_are_told() -> None:
    with pytest.raises(Refused, match="Did you mean `files`"):
        connect("file:///data", plugin="flies")
    with pytest.raises(Refused, match="no driver here"):
        connect("mysql://u:hunter2@127.0.0.1/x")


def test_what_somebody_changed_in_the_database_is_not_decrypted() -> None:
    made = make.connection("ops", "postgresql+psycopg://u:hush@db.example.org/ops")
    whole = encrypt_text(made.url)
    for changed in (whole[:60] + ("A" if whole[60] != "A" else "B") + whole[61:], whole[:-24] + "=", "not encrypted"):
        with own.cursor() as cursor:
            cursor.execute("UPDATE catalog_connection SET url = %s", [changed])
        with pytest.raises(ImproperlyConfigured, match=r"Connection\.url was encrypted with another key"):
            Connection.objects.get()


def test_without_a_key_nothing_is_encrypted(settings: Any) -> None:
    settings.LAKEHUB_ENCRYPTION_KEY = ""
    for use in (encrypt_text, keyed_digest):
        with pytest.raises(ImproperlyConfigured, match=r"no encryption key.*Set LAKEHUB_ENCRYPTION_KEY"):
            use("postgresql://ops:secret@db/ops")


@pytest.mark.parametrize("written", ["p%40ss-word", "p@ss-word"])
def test_a_driver_that_repeats_the_password_is_not_quoted_with_it(written: str) -> None:
    error = MetadataUnavailable(f"could not connect with {written}")
    assert (
        str(connections._unreachable("postgresql://reader:p%40ss-word@db/ops", error)) == "could not connect with ***"
    )
