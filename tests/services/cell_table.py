"""A table of cells in MariaDB."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tests.services.tapped_server import TappedServer

DEFINITION = (
    "added_id bigint AUTO_INCREMENT PRIMARY KEY, row_key {key} NOT NULL, column_name varchar(60) NOT NULL, ref_key bigint NOT NULL, "
    "body {body}, created_at datetime DEFAULT now(), UNIQUE KEY (row_key, column_name, ref_key)"
)


@dataclass
class CellTable:
    server: TappedServer
    name: str
    key: str = "varchar(40)"
    body: str = "longtext"

    def __post_init__(self) -> None:
        self.server.execute(f"CREATE TABLE {self.name} ({DEFINITION.format(key=self.key, body=self.body)})")

    def add(self, row_key: Any, column: str, ref_key: int, body: Any) -> None:
        """`body`: JSON as a text or bytes, else what it says."""
        content = body if isinstance(body, str | bytes | None) else json.dumps(body)
        insert = f"INSERT INTO {self.server.database}.{self.name} (row_key, column_name, ref_key, body) VALUES (:k, :c, :r, :b)"
        with self.server.engine.begin() as connection:
            connection.execute(sa.text(insert), {"k": row_key, "c": column, "r": ref_key, "b": content})
