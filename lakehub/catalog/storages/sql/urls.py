"""Where a database URL leads. Read by SQLAlchemy's own parser, which opens the connection too: two parsers would disagree."""

from __future__ import annotations

import os
import re
from ipaddress import IPv6Address
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.table_locations import (
    LocalTable,
    NamedTable,
    ServerTable,
    TableLocation,
    server_addresses,
)
from lakehub.catalog.storages import LocalPath, Location, ServerDatabase, UncertainLocation

_SERVER_PARAMETERS = {
    "postgresql": {"application_name", "channel_binding", "client_encoding", "connect_timeout", "options"}
    | {"sslmode", "sslrootcert", "target_session_attrs"},
    "mysql": {"charset", "connect_timeout", "ssl_ca"},
    "mariadb": {"charset", "connect_timeout", "ssl_ca"},
    "trino": set(),
    "hive": set(),
    "snowflake": {"role", "warehouse"},
    "bigquery": set(),
}
"""By the kind of a server, what its URL may say after `?`. Not what leads elsewhere (`host`, `service`, `unix_socket`) or
reads this machine's files (`passfile`, `sslkey`, `local_infile`)."""
_OPENLINEAGE_SCHEMES = {"postgresql": "postgres", "mariadb": "mysql"}
_NAME_PARTS = {"postgresql": 3, "trino": 3, "snowflake": 3}
"""In how many parts a table's whole name is written, `database.schema.table`; of the others two are."""
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_ESCAPES = "In a name or a password write %40 for @, %2F for /, %3A for :, %3F for ? and %23 for #."


def parse_url(url: str) -> sa.URL:
    """Raises MetadataUnavailable, which holds nothing of the URL: what does not parse may be a password."""
    try:
        return sa.make_url(url)
    except (ArgumentError, ValueError):
        raise MetadataUnavailable(
            "The URL does not parse. Write one such as postgresql+psycopg://user:password@host:5432/name or "
            f"sqlite:////path/file.db. {_ESCAPES}"
        ) from None


def database_location(url: str) -> Location:
    """Uncertain where SQLAlchemy's drivers may go by more than the URL's host. Raises MetadataUnavailable for what is no such URL."""
    parsed = parse_url(url)
    if _backend(parsed) == "sqlite":
        return _sqlite_file(parsed)
    if url.count("@") > 1:
        raise MetadataUnavailable(f"The URL has more than one @. {_ESCAPES}")
    return _server_database(parsed)


def table_location(url: sa.URL, table: str) -> TableLocation:
    """Of the name as far as it goes: what it leaves out is the URL's. Users, passwords and drivers make no difference."""
    backend, names = _backend(url), table.split(".")
    if backend == "sqlite":
        path = os.path.realpath(url.database or "")
        return LocalTable(frozenset({path}), table.casefold().removeprefix("main."))
    if backend not in _SERVER_PARAMETERS or not url.host:
        address = url.set(username=None, password=None).render_as_string(hide_password=False)
        return NamedTable(address, table)
    missing = _NAME_PARTS.get(backend, 2) - len(names)
    names = [*(url.database or "").split("/")[: max(0, missing)], *names]
    if backend != "postgresql":
        names = [name.casefold() for name in names]
    return ServerTable(server_addresses(url.host), str(url.port or _PORTS.get(backend) or ""), tuple(names))


def openlineage_address(url: str) -> tuple[str, str]:
    """(`postgres://host:5432`, `database`): OpenLineage's name for a server. Empty for a database without one.

    Raises MetadataUnavailable for a URL that does not parse.
    """
    parsed = parse_url(url)
    if not parsed.host:
        return "", ""
    backend = _backend(parsed)
    host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host.lower()
    port = parsed.port or _PORTS.get(backend)
    return f"{_OPENLINEAGE_SCHEMES.get(backend, backend)}://{host}{f':{port}' if port else ''}", parsed.database or ""


def _backend(parsed: sa.URL) -> str:
    return parsed.drivername.partition("+")[0]


def _sqlite_file(parsed: sa.URL) -> LocalPath | UncertainLocation:
    path = Path(parsed.database or "")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite") or parsed.host or parsed.username or parsed.query:
        return UncertainLocation("Of SQLite the URL is sqlite:////path/file.db: no driver, host or parameters.")
    if not path.is_absolute() or "\0" in str(path):
        raise MetadataUnavailable("The path is not absolute: it has four slashes, sqlite:////path/file.db.")
    return LocalPath(path, is_folder=False)


def _server_database(parsed: sa.URL) -> ServerDatabase | UncertainLocation:
    backend, _, driver = parsed.drivername.partition("+")
    if backend not in _SERVER_PARAMETERS or "odbc" in driver:
        return UncertainLocation(
            "It is not known where a URL of this kind leads. Known are sqlite and, each with a host, "
            f"{', '.join(_SERVER_PARAMETERS)}, but not by ODBC."
        )
    allowed = _SERVER_PARAMETERS[backend]
    if not all(name in allowed and isinstance(value, str) for name, value in parsed.query.items()):
        return UncertainLocation(
            f"Behind `?` a URL of {backend} may say {', '.join(sorted(allowed)) or 'nothing'}, each once."
        )
    host, name = parsed.host or "", parsed.database or ""
    if not _HOST.fullmatch(host) and not _is_ipv6(host):
        raise MetadataUnavailable(
            f"The URL does not name one host, such as postgresql://user@db.example.org/name. {_ESCAPES}"
        )
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise MetadataUnavailable("The URL's port is none: 1 to 65535 are.")
    if backend == "postgresql" and (not name or re.search(r"[=\0]|://", name)):
        raise MetadataUnavailable("The URL does not name a database, such as postgresql://user@db.example.org/name.")
    return ServerDatabase(host.lower(), str(parsed.port or _PORTS.get(backend) or ""), name)


def _is_ipv6(host: str) -> bool:
    try:
        return bool(IPv6Address(host))
    except ValueError:
        return False
