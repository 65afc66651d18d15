"""Connections: where data is read from."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.connection_guard import refuse_guarded_location
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import Connection, DataCenter
from lakehub.catalog.storages import STORAGES
from lakehub.catalog.validation import Problems, find_by_name, save_validated
from lakehub.kernel.errors import Refused
from lakehub.kernel.registry import UnknownPlugin


def add_connection(
    *, name: str, plugin: str, url: str, team: str, actor: str, now: datetime, by_operator: bool = False
) -> Connection:
    """A source. It is tried before it is kept. Raises Refused, which never holds the password.

    `by_operator`: the operator of this machine says so, who may name any of its paths.
    """
    problems = Problems()
    owner = find_by_name(problems, "team", Team, team)
    try:
        storage_class = STORAGES.get(plugin)
    except UnknownPlugin as unknown:
        problems.add("plugin", str(unknown))
    problems.raise_if_any()
    assert owner is not None  # a missing one is a problem
    try:
        storage = storage_class(url)
        may_read_lakes = by_operator and storage.is_lake
        lake_uris = [] if may_read_lakes else list(DataCenter.objects.values_list("lake_uri", flat=True))
        refuse_guarded_location(storage.location(), by_operator=by_operator, lake_uris=lake_uris)
        storage.tables(1)
    except MetadataUnavailable as error:
        raise Refused.for_fields({"url": str(error)}) from error
    connection = Connection(name=name, plugin=plugin, url=url, team=owner)
    with transaction.atomic():
        save_validated(connection)
        audit_log.record(actor, "connect", f"connection:{name}", now=now, plugin=plugin)
    return connection
