"""The table of `engine_answers` in a database."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from lakehub.catalog.metadata.tables import SqlTable
from quality.engines.sqlalchemy import SqlAlchemyEngine
from tests.contracts.engine_answers import LOOKED_INTO, NUMBERS, ODD, PART, TABLE, Place


def filled(url: str, schema: str | None = None) -> Place:
    """A new table and the one that is looked into; the name of the first has a dot, a quote and a space."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    meta = sa.MetaData(schema=schema)
    table = sa.Table('odd. "table', meta, *(sa.Column(name, kind) for name, kind in _types(engine).items()))
    words = sa.Table("words", meta, sa.Column("word", _text(engine)))
    numbers = sa.Table("numbers", meta, sa.Column("x", sa.Double()))
    meta.create_all(engine)
    with engine.begin() as connection:
        if engine.dialect.name == "mysql":
            connection.exec_driver_sql("SET time_zone = '+00:00'")
        connection.execute(table.insert(), TABLE)
        connection.execute(words.insert(), LOOKED_INTO)
        connection.execute(numbers.insert(), NUMBERS)
    engine.dispose()
    prefix = f"{schema}." if schema else ""
    zones = engine.dialect.name != "sqlite"
    return Place(
        SqlAlchemyEngine(), *(SqlTable(url, f"{prefix}{name}") for name in (table.name, "words", "numbers")), zones
    )


def _text(engine: sa.Engine) -> Any:
    return sa.String(40) if engine.dialect.name == "mysql" else sa.String()


def _types(engine: sa.Engine) -> dict[str, Any]:
    mariadb = engine.dialect.name == "mysql"
    return {
        "id": sa.BigInteger(),
        "price": sa.Numeric(10, 2),
        "ratio": sa.Double(),
        "born": sa.Date(),
        "ok": sa.Boolean(),
        "zoned": mysql.TIMESTAMP(fsp=6) if mariadb else sa.DateTime(timezone=True),
        "local": mysql.DATETIME(fsp=6) if mariadb else sa.DateTime(),
        "word": _text(engine),
        "ds": sa.BigInteger(),
        "hr": _text(engine),
        ODD: sa.BigInteger(),
        PART: _text(engine),
    }
