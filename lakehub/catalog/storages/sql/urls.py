"""Where a database URL leads."""

from __future__ import annotations

import os

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.table_locations import (
    LocalTable,
    ServerTable,
    TableLocation,
    server_addresses,
)
from lakehub.catalog.storages import LocalPath, Location, ServerDatabase
from lakehub.source_databases.urls import DatabaseUrl, UnusableUrl, read_url

_OPENLINEAGE_SCHEMES = {"postgresql": "postgres", "mariadb": "mysql"}
_NAME_PARTS = {"postgresql": 3, "trino": 3, "snowflake": 3}
"""In how many parts a table's whole name is written, `database.schema.table`; of the others two are."""


def parse_url(url: str) -> DatabaseUrl:
    """Raises MetadataUnavailable, which holds nothing of the URL that may be a password."""
    try:
        return read_url(url)
    except UnusableUrl as unusable:
        raise MetadataUnavailable(str(unusable)) from None


def database_location(url: str) -> Location:
    """Raises MetadataUnavailable for what is not opened."""
    target = parse_url(url)
    if target.driver.has_file:
        return LocalPath(target.file, is_folder=False)
    address = target.address
    return ServerDatabase(
        (address.host or "").lower(), str(target.port or ""), address.database or "", target.certificates
    )


def table_location(target: DatabaseUrl, table: str) -> TableLocation:
    """Of the name as far as it goes: what it leaves out is the URL's. Users, passwords and drivers make no difference."""
    backend, names = target.driver.backend, table.split(".")
    if target.driver.has_file:
        path = os.path.realpath(target.file)
        return LocalTable(frozenset({path}), table.casefold().removeprefix("main."))
    missing = _NAME_PARTS.get(backend, 2) - len(names)
    names = [*(target.address.database or "").split("/")[: max(0, missing)], *names]
    if backend != "postgresql":
        names = [name.casefold() for name in names]
    return ServerTable(server_addresses(target.address.host or ""), str(target.port or ""), tuple(names))


def openlineage_address(url: str) -> tuple[str, str]:
    """(`postgres://host:5432`, `database`): OpenLineage's name for a server. Empty for a database without one.

    Raises MetadataUnavailable for a URL that is not opened.
    """
    target = parse_url(url)
    name = target.address.host
    if not name:
        return "", ""
    backend = target.driver.backend
    host = f"[{name}]" if ":" in name else name.lower()
    port = f":{target.port}" if target.port else ""
    return f"{_OPENLINEAGE_SCHEMES.get(backend, backend)}://{host}{port}", target.address.database or ""
