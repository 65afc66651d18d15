"""Whether a connection may run queries that people write at all: by its driver and by its role."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from lakehub.catalog.storages.sql.role import read_powers

_ONE_STATEMENT_DRIVERS = frozenset({"psycopg", "pymysql", "pysqlite", "rest", "thrift", "snowflake"})
"""With these a server takes one statement at a time: psycopg because our queries have a parameter, so that it uses the extended
protocol; that of MySQL because it does not ask for more; those of Trino, Hive and Snowflake because their servers know nothing else."""
_BETTER_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
_MULTI_STATEMENTS = 1 << 16
"""The flag of MySQL's protocol by which a client may send several statements."""


def query_refusal(connection: sa.Connection) -> str:
    """Why people's queries are not run by this connection; empty where they are. Raises SQLAlchemyError."""
    driver = connection.dialect.driver
    if driver not in _ONE_STATEMENT_DRIVERS or _takes_several(connection):
        better = _BETTER_DRIVERS.get(connection.dialect.name, "")
        remedy = f"write {better}:// in its URL" if better else "bring the table into the lake"
        return (
            f"the driver {driver} of this connection may send several statements at once; {remedy} to run a query here"
        )
    if _reads_backslashes(connection):
        return (
            "the server reads a backslash in a text as the beginning of a sign for this role, so that a query may end where it "
            "does not seem to; set standard_conforming_strings = on for the role"
        )
    role = read_powers(connection)
    if role is not None and role.powers:
        return (
            f"the role {role.name} has {', '.join(role.powers)}, so queries that people write are not run with it; "
            "give the connection a role that only reads"
        )
    return ""


def _takes_several(connection: sa.Connection) -> bool:
    raw = connection.connection.driver_connection
    return bool(connection.dialect.driver == "pymysql" and getattr(raw, "client_flag", 0) & _MULTI_STATEMENTS)


def _reads_backslashes(connection: sa.Connection) -> bool:
    """As the server said when the connection began: nothing is asked."""
    if connection.dialect.driver != "psycopg":
        return False
    raw: Any = connection.connection.driver_connection
    return bool(raw.pgconn.parameter_status(b"standard_conforming_strings") != b"on")
