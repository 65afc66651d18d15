"""Which columns of databases may say where the next range of a load begins."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from ingestion.sources.sql.column_types import is_compared_as_read, type_name_of

TEXTS = [
    sa.VARCHAR(20), sa.CHAR(3), sa.TEXT(), sa.String(), sa.UUID(), sa.TIME(), postgresql.TIME(),
    mysql.VARCHAR(20), mysql.LONGTEXT(), mysql.NCHAR(3),
]  # fmt: skip
OTHERS = [
    sa.Enum("s", "m"), postgresql.ENUM("s", "m", name="size"), mysql.ENUM("s", "m"), mysql.SET("x", "y"),
    postgresql.MACADDR(), postgresql.BIT(8), postgresql.MONEY(), postgresql.INET(), postgresql.OID(),
    postgresql.CITEXT(), postgresql.TIME(timezone=True), postgresql.JSONB(), postgresql.DOMAIN("code", sa.TEXT()),
    sa.types.NullType(),
]  # fmt: skip


@pytest.mark.parametrize("type_", TEXTS, ids=repr)
def test_texts_do(type_: Any) -> None:
    assert is_compared_as_read(type_)


@pytest.mark.parametrize("type_", OTHERS, ids=repr)
def test_what_is_a_text_in_the_lake_only_does_not(type_: Any) -> None:
    """PostgreSQL compares no enumeration with a text, and MariaDB orders one by the rank of its values."""
    assert type_name_of(type_) == "string"
    assert not is_compared_as_read(type_)
