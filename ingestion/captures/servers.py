"""The servers that are tapped, and what is captured from each: the datasets of connections whose storage is one of those that are captured.

A dataset whose feed is paused is captured all the same: its changes wait in the changelog.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestion.capture.snapshot.definitions import named_table
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.captures.hidden_columns import hidden_columns_of
from ingestion.captures.records import capture_of
from ingestion.models import Capture
from lakehub.accounts.models import Team
from lakehub.catalog.models import Connection, Feed, FeedKind
from lakehub.catalog.storages import is_captured
from lakehub.source_databases.urls import DatabaseUrl, UnusableUrl, read_url, with_mariadb_driver


@dataclass(frozen=True)
class PlannedCapture:
    """A dataset as the tap of its server captures it. `url`: of its connection."""

    dataset: int
    capture: Capture
    spec: CaptureSpec
    team: Team
    url: str = field(repr=False)

    @property
    def is_live(self) -> bool:
        """Its changes are being captured: they must not be lost."""
        return self.capture.is_captured


def is_same_plan(plan: Sequence[PlannedCapture], other: Sequence[PlannedCapture]) -> bool:
    """Whether a tap that serves the one serves the other too."""
    return [(each.spec, each.url) for each in plan] == [(each.spec, each.url) for each in other]


def current_plan(plan: Sequence[PlannedCapture]) -> list[PlannedCapture]:
    """With the captures as the database has them now, without those that are gone. One query."""
    captures = Capture.objects.in_bulk([each.capture.pk for each in plan])
    return [
        replace(each, capture=capture, spec=replace(each.spec, load=capture.load))
        for each in plan
        if (capture := captures.get(each.capture.pk)) is not None
    ]


def server_of(url: str) -> str:
    """`host:port` of a connection's URL. Raises UnusableUrl."""
    return _address(read_url(with_mariadb_driver(url)))


def captures_by_server() -> dict[str, list[PlannedCapture]]:
    """All that is to be captured, by `host:port`. Three queries; one more for each dataset that is new."""
    urls = _urls()
    by_server: dict[str, list[PlannedCapture]] = defaultdict(list)
    for feed in _captured_feeds(urls) if urls else ():
        text, target = urls[feed.connection_id or 0]
        by_server[_address(target)].append(_planned(feed, text, target))
    return dict(by_server)


def _captured_feeds(connections: Collection[int]) -> list[Feed]:
    feeds = Feed.objects.filter(kind=FeedKind.CONNECTION, connection__in=connections)
    live = feeds.filter(dataset__ingested=True, dataset__offboarded_at=None)
    return [*live.select_related("dataset__team", "capture").order_by("pk")]


def _urls() -> Mapping[int, tuple[str, DatabaseUrl]]:
    """By connection, without those that cannot be opened: whoever changes one is told."""
    plugins = Connection.objects.values_list("plugin", flat=True).order_by("plugin").distinct()
    captured = [plugin for plugin in plugins if is_captured(plugin)]
    urls = {}
    for connection in Connection.objects.filter(plugin__in=captured) if captured else ():
        try:
            urls[connection.pk] = connection.url, read_url(with_mariadb_driver(connection.url))
        except UnusableUrl:
            continue
    return urls


def _planned(feed: Feed, url: str, target: DatabaseUrl) -> PlannedCapture:
    capture = feed.capture if hasattr(feed, "capture") else capture_of(feed)
    database, table = named_table(feed.object, target.address.database or "")
    record_key, hidden = tuple(feed.dataset.record_key), hidden_columns_of(feed)
    spec = CaptureSpec(capture.topic, database, table, capture.load, record_key, hidden)
    return PlannedCapture(feed.dataset_id, capture, spec, feed.dataset.team, url)


def _address(target: DatabaseUrl) -> str:
    host = (target.address.host or "").lower()
    return f"{f'[{host}]' if ':' in host else host}:{target.port}"
