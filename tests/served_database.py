"""The database of tests that start a server: `from tests.served_database import django_db_modify_db_settings` in a conftest."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file, so that each thread of the server has a connection of its own, as in production. They would share that of a database
    in memory, and wait for each other for ever: one holds SQLite's lock and needs Python's, another the other way round."""
    connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "served.db")
