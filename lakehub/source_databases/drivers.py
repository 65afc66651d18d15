"""The drivers that are opened, with the options that a URL may give each, and what each is told besides.

To add one: a `Driver` here and its line in DRIVERS; from outside the tree an entry point of the group `lakehub.sql_drivers`,
whose name is what the URL begins with. Nothing of a URL reaches a driver but host, port, database, user, password and the
options that are named here: others read this machine's files (`passfile`, `read_default_file`), send them away (`local_infile`)
or lead elsewhere (`host`, `service`, `unix_socket`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehub.kernel.registry import Registry
from lakehub.source_databases.options import (
    CERTIFICATE,
    CONNECT_TIMEOUT,
    ENCODING,
    FLAG,
    IDENTIFIER,
    NAME,
    SESSION_SETTINGS,
    Option,
    one_of,
)
from lakehub.source_databases.timeouts import Timeouts


@dataclass(frozen=True)
class Driver:
    """`arguments`: from the time-outs and the URL's options to what the driver is given besides host, user and the like."""

    backend: str
    port: int | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    arguments: Callable[[Timeouts, Mapping[str, object]], dict[str, Any]] = lambda timeouts, options: dict(options)
    has_file: bool = False
    """It opens a file of this machine, not a server."""


_LIBPQ_OPTIONS = {
    "application_name": NAME,
    "channel_binding": one_of("disable", "prefer", "require"),
    "client_encoding": ENCODING,
    "connect_timeout": CONNECT_TIMEOUT,
    "options": SESSION_SETTINGS,
    "sslmode": one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslrootcert": CERTIFICATE,
    "target_session_attrs": one_of("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
}
_MYSQL_OPTIONS = {"charset": ENCODING, "connect_timeout": CONNECT_TIMEOUT, "ssl_ca": CERTIFICATE, "ssl_disabled": FLAG}


def _libpq_arguments(timeouts: Timeouts, options: Mapping[str, object]) -> dict[str, Any]:
    """With nothing of this account's own: no password file, no certificate, no Kerberos ticket."""
    return {
        "connect_timeout": timeouts.connect_s,
        "tcp_user_timeout": timeouts.silence_s * 1000,
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        **dict.fromkeys(("passfile", "sslcert", "sslkey"), "/dev/null/none"),  # can never be there
        "gssencmode": "disable",
        "application_name": "lakehub",
        **options,
    }


MYSQL_SESSION = "SET SESSION time_zone = '+00:00', net_write_timeout = 600"
"""A TIMESTAMP is told without its zone: all instants are in UTC. Who reads slowly, to spare the server, is not left after a minute."""


def _mysql_arguments(timeouts: Timeouts, options: Mapping[str, object]) -> dict[str, Any]:
    others = {name: value for name, value in options.items() if name != "ssl_ca"}
    return {
        "connect_timeout": timeouts.connect_s,
        "read_timeout": timeouts.silence_s,
        "write_timeout": timeouts.silence_s,
        "local_infile": False,
        "init_command": MYSQL_SESSION,
        **others,
        **({"ssl": {"ca": options["ssl_ca"]}} if "ssl_ca" in options else {}),
    }


def _trino_arguments(timeouts: Timeouts, options: Mapping[str, object]) -> dict[str, Any]:
    return {"request_timeout": timeouts.connect_s, "max_attempts": 1, **options}


def _snowflake_arguments(timeouts: Timeouts, options: Mapping[str, object]) -> dict[str, Any]:
    return {"login_timeout": timeouts.connect_s, "network_timeout": timeouts.silence_s, **options}


POSTGRESQL = Driver("postgresql", 5432, _LIBPQ_OPTIONS, _libpq_arguments)
MYSQL = Driver("mysql", 3306, _MYSQL_OPTIONS, _mysql_arguments)
MARIADB = Driver("mariadb", 3306, _MYSQL_OPTIONS, _mysql_arguments)
SQLITE = Driver("sqlite", has_file=True)
TRINO = Driver("trino", arguments=_trino_arguments)
HIVE = Driver("hive")
SNOWFLAKE = Driver("snowflake", options={"role": IDENTIFIER, "warehouse": IDENTIFIER}, arguments=_snowflake_arguments)
BIGQUERY = Driver("bigquery")

_HERE = "lakehub.source_databases.drivers"
DRIVERS: Registry[Driver] = Registry(
    "database driver",
    {
        "postgresql": f"{_HERE}:POSTGRESQL",
        "postgresql+psycopg": f"{_HERE}:POSTGRESQL",
        "postgresql+psycopg2": f"{_HERE}:POSTGRESQL",
        "mysql": f"{_HERE}:MYSQL",
        "mysql+mysqldb": f"{_HERE}:MYSQL",
        "mysql+pymysql": f"{_HERE}:MYSQL",
        "mariadb": f"{_HERE}:MARIADB",
        "mariadb+mysqldb": f"{_HERE}:MARIADB",
        "mariadb+pymysql": f"{_HERE}:MARIADB",
        "sqlite": f"{_HERE}:SQLITE",
        "sqlite+pysqlite": f"{_HERE}:SQLITE",
        "trino": f"{_HERE}:TRINO",
        "hive": f"{_HERE}:HIVE",
        "snowflake": f"{_HERE}:SNOWFLAKE",
        "bigquery": f"{_HERE}:BIGQUERY",
    },
    group="lakehub.sql_drivers",
)
"""By what a URL begins with."""
