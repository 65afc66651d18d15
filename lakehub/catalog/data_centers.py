"""Data centers: where a lake is kept."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import DataCenter
from lakehub.catalog.validation import save_validated
from lakehub.kernel.errors import Refused


def add_data_center(*, name: str, lake_uri: str, actor: str, now: datetime) -> DataCenter:
    """A lake root. Raises Refused where the name is taken, or the URI has no scheme or holds a secret: everybody reads it."""
    _check_lake_uri(lake_uri)
    data_center = DataCenter(name=name, lake_uri=lake_uri)
    with transaction.atomic():
        save_validated(data_center)
        audit_log.record(actor, "add data center", f"data_center:{name}", now=now, lake_uri=lake_uri)
    return data_center


def _check_lake_uri(lake_uri: str) -> None:
    try:
        parts = urlsplit(lake_uri)
        has_secret, _ = parts.password is not None, parts.port
    except ValueError:  # a password with a slash in it ends where the port would
        has_secret = "@" in lake_uri
        parts = urlsplit("")
    if has_secret:
        raise Refused.for_fields(
            {
                "lake_uri": "The URI holds a password, and everybody may read it. Give Spark the keys of the store instead."
            }
        )
    if not parts.scheme:
        raise Refused.for_fields(
            {"lake_uri": f"`{lake_uri}` is not a URI: write file:///folder, s3a://bucket/folder or hdfs://..."}
        )


def data_center_names() -> list[str]:
    """Their names: what lakehub.accounts asks before it makes a token for one."""
    return list(DataCenter.objects.values_list("name", flat=True))
