"""Connections are tried before they are kept, and lead neither to Lakehub's own data nor out of the operator's folders."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection as own

from lakehub.catalog import connections
from lakehub.catalog.encrypted_fields import encrypt_text, keyed_digest
from lakehub.catalog.models import Connection
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


def test_an_unknown_plugin_and_a_driver_that_is_not_there_are_told() -> None:
    with pytest.raises(Refused, match="Did you mean `files`"):
        connect("file:///data", plugin="flies")
    with pytest.raises(Refused, match="no driver here"):
        connect("mysql://u:hunter2@127.0.0.1/x")


def test_without_a_key_nothing_is_encrypted(settings: Any) -> None:
    settings.LAKEHUB_ENCRYPTION_KEY = ""
    for use in (encrypt_text, keyed_digest):
        with pytest.raises(ImproperlyConfigured, match=r"no encryption key.*Set LAKEHUB_ENCRYPTION_KEY"):
            use("postgresql://ops:secret@db/ops")
