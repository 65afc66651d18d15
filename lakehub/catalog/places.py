"""Data centers and connections: where data is kept, and where it is read from."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction

from lakehub.accounts import audit
from lakehub.accounts.models import Team
from lakehub.catalog.checking import Problems, find
from lakehub.catalog.metadata import READERS, MetadataUnavailable
from lakehub.catalog.models import Connection, DataCenter
from lakehub.catalog.reach import refuse_what_is_guarded
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean


def add_data_center(*, name: str, lake_uri: str, actor: str, now: datetime) -> DataCenter:
    """A lake root. Raises Refused where the name is taken or the URI has no scheme."""
    if not urlsplit(lake_uri).scheme:
        raise Refused.because(
            {"lake_uri": f"`{lake_uri}` is not a URI: write file:///folder, s3a://bucket/folder or hdfs://..."}
        )
    data_center = DataCenter(name=name, lake_uri=lake_uri)
    with transaction.atomic():
        _save(data_center)
        audit.record(actor, "add data center", f"data_center:{name}", now=now, lake_uri=lake_uri)
    return data_center


def connect(
    *, name: str, plugin: str, url: str, team: str, actor: str, now: datetime, by_operator: bool = False
) -> Connection:
    """A source. It is tried before it is kept. Raises Refused, which never holds the password.

    `by_operator`: the operator of this machine says so, who may name any of its paths.
    """
    problems = Problems()
    owner = find(problems, "team", Team, team)
    if plugin not in READERS:
        problems.add("plugin", f"There is no source `{plugin}`.{did_you_mean(plugin, READERS)}")
    problems.raise_any()
    assert owner is not None  # a missing one is a problem
    refuse_what_is_guarded(plugin, url, by_operator=by_operator)
    try:
        READERS.get(plugin)(url).tables(1)
    except MetadataUnavailable as error:
        raise Refused.because({"url": str(error)}) from error
    connection = Connection(name=name, plugin=plugin, url=url, team=owner)
    with transaction.atomic():
        _save(connection)
        audit.record(actor, "connect", f"connection:{name}", now=now, plugin=plugin)
    return connection


def _save(thing: DataCenter | Connection) -> None:
    try:
        thing.full_clean()
    except ValidationError as error:
        raise Refused.because({field: " ".join(why) for field, why in error.message_dict.items()}) from error
    thing.save()


def data_centers() -> list[str]:
    """Their names: what lakehub.accounts asks before it makes a token for one."""
    return list(DataCenter.objects.values_list("name", flat=True))
