"""A capture that goes on at another server, which has the same transactions: whose place it is, kept and told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, QuerySet

from ingestion.captures.servers import PlannedCapture, server_of
from ingestion.models import Capture, TapServer
from lakehub.accounts.audit import audit_log
from lakehub.source_databases.urls import UnusableUrl


def server_of_capture(capture: Capture) -> str:
    """`host:port`, from which it was captured last; empty: it was not yet."""
    return capture.captured_table.partition("/")[0]


def live_topics(server: str) -> dict[str, int]:
    """Of all captures that are live there, by topic the load; also of those whose connection leads elsewhere by now."""
    return dict(_live().filter(captured_table__startswith=f"{server}/").values_list("topic", "load"))


def leads_to(planned: Iterable[PlannedCapture], server: str) -> bool:
    """Whether the connections lead to the server now: a plan may be a few seconds old."""
    captures = Capture.objects.filter(pk__in=[each.capture.pk for each in planned]).select_related("feed__connection")
    return all(_leads_to(capture, server) for capture in captures)


def leads_elsewhere(capture: Capture) -> bool:
    """Its connection, than to the server from which it is captured."""
    former = server_of_capture(capture)
    return capture.is_captured and former != "" and not _leads_to(capture, former)


def destination(capture: Capture) -> str:
    """`host:port` of the server that its connection leads to, where it has not gone on yet; empty: it is captured from there."""
    connection = capture.feed.connection
    if connection is None or not leads_elsewhere(capture):
        return ""
    try:
        return server_of(connection.url)
    except UnusableUrl:
        return ""


def note_moved(planned: Sequence[PlannedCapture], server: str, *, actor: str, position: str, now: datetime) -> bool:
    """They are captured at `server` from `position` on, and their former ones are forgotten where nothing is captured there any more. False: meanwhile
    their connections lead elsewhere, and nothing is changed."""
    with transaction.atomic():
        locked = Capture.objects.select_for_update(of=("self",)).filter(pk__in=[each.capture.pk for each in planned])
        captures = [*locked.select_related("feed__connection", "feed__dataset").order_by("pk")]
        if not all(_leads_to(capture, server) for capture in captures):
            return False
        for capture in captures:
            former, _, table = capture.captured_table.partition("/")
            capture.captured_table, capture.captured_at = f"{server}/{table}", now
            capture.save(update_fields=["captured_table", "captured_at"])
            subject = f"dataset:{capture.feed.dataset.name}"
            audit_log.record(actor, "move capture", subject, now=now, before=former, after=server, position=position)
        for former in {server_of_capture(each.capture) for each in planned}:
            if not live_topics(former):
                TapServer.objects.filter(address=former).delete()
    return True


def _live() -> QuerySet[Capture]:
    return Capture.objects.filter(Q(captured_load=F("load")) & ~Q(stopped_load=F("load")))


def _leads_to(capture: Capture, server: str) -> bool:
    connection = capture.feed.connection
    try:
        return connection is not None and server_of(connection.url) == server
    except UnusableUrl:
        return False
