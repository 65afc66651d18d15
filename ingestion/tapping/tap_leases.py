"""Whose a server is: one process taps it, by a lease of the database's clock that it renews with each word on how it goes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from ingestion.models import TapServer
from ingestion.runs.leases import lease_end

LEASE_DURATION = timedelta(seconds=60)


def free_servers(servers: Collection[str]) -> list[str]:
    """Those of `servers`, each `host:port`, that nobody taps. One query; another one for those that were not known yet."""
    known = {server.address: server for server in TapServer.objects.filter(address__in=servers)}
    if new := [server for server in servers if server not in known]:
        TapServer.objects.bulk_create([TapServer(address=server) for server in new], ignore_conflicts=True)
    return [*_free().filter(address__in=servers).order_by("address").values_list("address", flat=True)]


def claim(server: str, holder: str) -> bool:
    """Whether it is `holder`'s from now on."""
    taken = {"leased_by": holder, "leased_until": lease_end(LEASE_DURATION)}
    return bool(_free().filter(address=server).update(**taken))


def tell(server: str, holder: str, **facts: Any) -> bool:
    """Writes down how it goes, and renews the lease. False: it is no longer `holder`'s."""
    mine = TapServer.objects.filter(address=server, leased_by=holder)
    return bool(mine.update(leased_until=lease_end(LEASE_DURATION), **facts))


def give_back(server: str, holder: str, **facts: Any) -> None:
    """For another process to go on at once."""
    mine = TapServer.objects.filter(address=server, leased_by=holder)
    mine.update(leased_by="", leased_until=None, **facts)


def _free() -> QuerySet[TapServer]:
    return TapServer.objects.filter(Q(leased_by="") | Q(leased_until=None) | Q(leased_until__lt=Now()))
