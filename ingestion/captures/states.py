"""What becomes of a capture, kept and told: it has begun for a load, or it was stopped, which is a finding on each copy of its dataset."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from ingestion.lake import findings
from ingestion.models import Capture, Finding
from lakehub.catalog.models import DatasetCopy, FeedKind
from lakehub.catalog.storages import is_captured
from lakehub.kernel.interval import EVERYTHING

_LEFT = "The dataset was not captured for a while: it was off-boarded, or its feed was another one. Load the dataset again, with `replace`."


def note_captured(
    topic: str,
    load: int,
    *,
    since: str,
    table: str,
    columns: Mapping[str, Any],
    now: datetime,
    changelog_from: Mapping[str, Mapping[str, int]] | None = None,
) -> None:
    """From `since` on, a GTID or offsets, all changes of `table` are in the changelog, with `columns` hidden. Whoever loads the dataset may begin now."""
    begun: dict[str, Any] = {
        "captured_load": load,
        "captured_from": since,
        "captured_at": now,
        "captured_table": table,
        "captured_columns": columns,
        "changelog_from": changelog_from or {},
    }
    begun |= {"column_renames": {}, "emptied_sequence": 0}
    Capture.objects.filter(topic=topic, load=load).update(**begun, stopped_load=0, stopped_why="")


def note_stopped(topic: str, load: int, why: str) -> None:
    """Of a load that another one has followed it is no stop any more; but all copies lack changes until they are loaded again."""
    with transaction.atomic():
        capture = Capture.objects.select_for_update(of=("self",)).select_related("feed").filter(topic=topic).first()
        if capture is None:
            return
        if capture.load == load:
            capture.stopped_load, capture.stopped_why = load, why
        _mark_incomplete(capture)


def _mark_incomplete(capture: Capture) -> None:
    """Those that are being built are copies, too."""
    copies = DatasetCopy.with_removed.filter(dataset=capture.feed.dataset_id, removed_at=None)
    capture.incomplete_copies = [*copies.order_by("pk").values_list("pk", flat=True)]
    capture.save(update_fields=["stopped_load", "stopped_why", "incomplete_copies"])


def note_loaded(copy: DatasetCopy, load: int, *, now: datetime) -> None:
    """All of its rows were read in this load of the capture: nothing is missing any more, if its changes were captured all the while."""
    with transaction.atomic():
        capture = (
            Capture.objects.select_for_update(of=("self",)).filter(feed__dataset=copy.dataset_id, load=load).first()
        )
        if capture is None or not capture.is_captured or copy.pk not in capture.incomplete_copies:
            return
        capture.incomplete_copies = [pk for pk in capture.incomplete_copies if pk != copy.pk]
        capture.save(update_fields=["incomplete_copies"])
        for kind in (findings.CAPTURE_STOPPED, findings.CHANGES_SKIPPED):
            findings.clear_findings(copy, kind, now=now)


def stop_left() -> int:
    """Stops the captures of datasets that are not captured any more: should they be again, changes are missing. How many."""
    live = Capture.objects.filter(captured_load=F("load")).exclude(stopped_load=F("load"))
    plugins = Capture.objects.values_list("feed__connection__plugin", flat=True).order_by().distinct()
    uncaptured = [plugin for plugin in plugins if plugin is not None and not is_captured(plugin)]
    left = live.filter(
        Q(feed__dataset__offboarded_at__isnull=False)
        | Q(feed__dataset__ingested=False)
        | ~Q(feed__kind=FeedKind.CONNECTION)
        | Q(feed__connection__plugin__in=uncaptured)
    )
    captures = [*left.select_related("feed")]
    for capture in captures:
        note_stopped(capture.topic, capture.load, _LEFT)
    return len(captures)


def tell_stops(reasons: Mapping[int, str], *, now: datetime) -> None:
    """By dataset, why it is not captured; empty: it is. As findings, which are cleared where it is captured again and nothing is missing."""
    copies = [*DatasetCopy.objects.filter(dataset__in=reasons)]
    raised = Finding.objects.filter(copy__in=copies, kind=findings.CAPTURE_STOPPED, cleared_at=None)
    captures = Capture.objects.filter(feed__dataset__in=reasons).values_list("incomplete_copies", flat=True)
    incomplete = {pk for copies_of_it in captures for pk in copies_of_it}
    messages = dict(raised.values_list("copy", "detail__message"))
    for copy in copies:
        why = reasons[copy.dataset_id]
        if why and messages.get(copy.pk) != why:
            findings.raise_finding(copy, findings.CAPTURE_STOPPED, EVERYTHING, why, {}, now=now)
        elif not why and copy.pk in messages and copy.pk not in incomplete:
            findings.clear_findings(copy, findings.CAPTURE_STOPPED, now=now)
