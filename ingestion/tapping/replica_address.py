"""Where a connection's URL leads, as a replica connects there."""

from __future__ import annotations

import hmac

from ingestion.capture.binlog.stream import ServerAddress
from lakehub.source_databases.urls import read_url, with_mariadb_driver

_LEAST_ID = 2**31
"""Of the ids of replicas that people give few are so great."""


def replica_address(url: str, server: str, *, instance_key: str) -> ServerAddress:
    """`server`: `host:port`. `instance_key`: of the instance's own, equal in all of its processes. Raises UnusableUrl."""
    target = read_url(with_mariadb_driver(url))
    address, ca_file = target.address, target.options.get("ssl_ca")
    return ServerAddress(
        address.host or "",
        target.port or 0,
        address.username or "",
        str(address.password or ""),
        replica_id(server, instance_key=instance_key),
        None if ca_file is None else str(ca_file),
        plain=bool(target.options.get("ssl_disabled")),
    )


def replica_id(server: str, *, instance_key: str) -> int:
    """The `server_id` of the tap: always the same for an instance and a server, so that the server ends the connection of a process before it; another
    one for each instance, so that two of them do not end each other's."""
    digest = hmac.digest(instance_key.encode(), f"tap:{server}".encode(), "sha256")
    return _LEAST_ID + int.from_bytes(digest[:4]) % _LEAST_ID
