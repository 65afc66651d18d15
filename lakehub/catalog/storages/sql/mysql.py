"""Tables of a MariaDB whose changes are captured from its binlog; one that is read by a cursor column is the storage `sql`."""

from __future__ import annotations

from dataclasses import replace

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.roles import DatabaseRole
from lakehub.catalog.storages import Location
from lakehub.catalog.storages.sql import SqlStorage
from lakehub.catalog.storages.sql.urls import parse_url
from lakehub.source_databases.urls import MARIADB_BACKENDS, with_mariadb_driver

_NEEDED_BY_THE_TAP = ("REPLICATION SLAVE on *.*", "REPLICATION REPLICA on *.*")
_FORM = "Write mysql://user:password@host:3306/database."


class MySqlStorage(SqlStorage):
    """`url` is `mysql://user:password@host:port/database`; a table is `name` or `database.name`."""

    is_captured = can_hide_columns = lands_chunks = takes_patterns = True
    empty_hint = "Check that the account may see the tables that you need; those of another database are named with it, as in sales.orders."
    url_example = "mysql://reader:password@db.example.org:3306/ops"

    def __init__(self, url: str) -> None:
        super().__init__(with_mariadb_driver(url))

    def location(self) -> Location:
        target = parse_url(self.url)
        if target.driver.backend not in MARIADB_BACKENDS:
            raise MetadataUnavailable(f"The URL is that of another kind of database. {_FORM}")
        if not target.address.database:
            raise MetadataUnavailable(f"The URL does not name a database. {_FORM}")
        return super().location()

    def role(self) -> DatabaseRole | None:
        """Without what the tap needs to read the binlog."""
        role = super().role()
        if role is None:
            return None
        return replace(role, powers=tuple(power for power in role.powers if power not in _NEEDED_BY_THE_TAP))
