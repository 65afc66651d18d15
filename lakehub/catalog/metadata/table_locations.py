"""Where the rows of a table lie, whatever its connection and its name say: two ways to one table are found to be one.

What cannot be known is left out: a view over a table, two server names whose addresses differ, a proxy before a server.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import PurePath
from typing import TypeAlias


@dataclass(frozen=True)
class LocalTable:
    """Rows in files of this machine: `paths` are files, or folders with all that is below them, links followed.

    `table` names one of several tables of one file; empty where the files are the table.
    """

    paths: frozenset[str]
    table: str = ""


@dataclass(frozen=True)
class ServerTable:
    """Rows that a server keeps. `addresses`: whatever the server may be asked for under. `names`: database, schema, table."""

    addresses: frozenset[str]
    port: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class NamedTable:
    """Rows of which only the address is known. `address` may hold a secret, so it is not shown."""

    address: str
    table: str

    def __repr__(self) -> str:
        return f"NamedTable({self.table!r})"


TableLocation: TypeAlias = LocalTable | ServerTable | NamedTable


def is_same_table(first: TableLocation, second: TableLocation) -> bool:
    """Whether they have rows in common: for files, one that both read is enough."""
    if isinstance(first, LocalTable) and isinstance(second, LocalTable):
        return first.table == second.table and (_lies_in(first, second) or _lies_in(second, first))
    if isinstance(first, ServerTable) and isinstance(second, ServerTable):
        same_server = first.port == second.port and bool(first.addresses & second.addresses)
        return same_server and first.names == second.names
    return first == second


def _lies_in(inner: LocalTable, outer: LocalTable) -> bool:
    """One of the paths of the one is one of the other, or below it."""
    return any(
        path in outer.paths or any(str(parent) in outer.paths for parent in PurePath(path).parents)
        for path in inner.paths
    )


def server_addresses(host: str) -> frozenset[str]:
    """Under which a server of that name may be asked for; one for all ways to say this machine."""
    name = host.lower().rstrip(".")
    if name in ("", "localhost") or name.startswith(("/", "@")):  # a socket
        return frozenset({"localhost"})
    try:
        infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset({name})
    ips = {ip_address(str(info[4][0]).partition("%")[0]) for info in infos}
    return frozenset({name}) | {"localhost" if ip.is_loopback or ip.is_unspecified else str(ip) for ip in ips}
