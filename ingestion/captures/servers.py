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
from ingestion.captures.policies import follows_drop, follows_truncate, required_columns_of, stops_at_narrowing
from ingestion.captures.records import capture_of
from ingestion.models import Capture
from lakehub.accounts.models import Team
from lakehub.catalog.models import Connection, Feed, FeedKind
from lakehub.catalog.storages import has_cells, is_captured
from lakehub.kernel.cells.cell_tables import NotCells, read_cell_object
from lakehub.source_databases.urls import DatabaseUrl, UnusableUrl, read_url, with_mariadb_driver
from lakehub.source_topics.address import read_topics_url
from lakehub.source_topics.kafka_url import UnusableKafkaUrl

TOPIC_OPTIONS = ("topic_begin", "topic_key")
"""Of a feed, for its tap."""


@dataclass(frozen=True)
class PlannedCapture:
    """A dataset as the tap of its server captures it. `url`: of its connection. `options`: of its feed, how a topic is read."""

    dataset: int
    capture: Capture
    spec: CaptureSpec
    team: Team
    url: str = field(repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Its changes are being captured: they must not be lost."""
        return self.capture.is_captured


def is_same_plan(plan: Sequence[PlannedCapture], other: Sequence[PlannedCapture]) -> bool:
    """Whether a tap that serves the one serves the other too."""
    return [(each.spec, each.url, each.options) for each in plan] == [
        (each.spec, each.url, each.options) for each in other
    ]


def current_plan(plan: Sequence[PlannedCapture]) -> list[PlannedCapture]:
    """With the captures as the database has them now, without those that are gone. One query."""
    captures = Capture.objects.in_bulk([each.capture.pk for each in plan])
    return [
        replace(each, capture=capture, spec=replace(each.spec, load=capture.load))
        for each in plan
        if (capture := captures.get(each.capture.pk)) is not None
    ]


def urls_of(plan: Sequence[PlannedCapture]) -> list[str]:
    """Each once: those of one server may have several accounts."""
    return [*dict.fromkeys(each.url for each in plan)]


def is_kafka(url: str) -> bool:
    return url.startswith("kafka:")


def server_of(url: str) -> str:
    """`host:port` of a connection's URL, of a Kafka `kafka:host:port,host:port`. Raises UnusableUrl."""
    if not is_kafka(url):
        return _address(read_url(with_mariadb_driver(url)))
    try:
        return read_topics_url(url).server
    except UnusableKafkaUrl as problem:
        raise UnusableUrl(str(problem)) from problem


def captures_by_server() -> dict[str, list[PlannedCapture]]:
    """All that is to be captured, by `host:port`. Three queries; one more for each dataset that is new."""
    connections = _connections()
    by_server: dict[str, list[PlannedCapture]] = defaultdict(list)
    for feed in _captured_feeds(connections) if connections else ():
        connection = connections[feed.connection_id or 0]
        try:
            by_server[connection.server].append(_planned(feed, connection))
        except NotCells:
            continue  # whoever onboards or changes one is told
    return dict(by_server)


def _captured_feeds(connections: Collection[int]) -> list[Feed]:
    feeds = Feed.objects.filter(kind=FeedKind.CONNECTION, connection__in=connections)
    live = feeds.filter(dataset__ingested=True, dataset__offboarded_at=None)
    return [*live.select_related("dataset__team", "capture").order_by("pk")]


@dataclass(frozen=True)
class _CapturedConnection:
    url: str = field(repr=False)
    server: str
    has_cells: bool


def _connections() -> Mapping[int, _CapturedConnection]:
    """By their ids, without those that cannot be opened: whoever changes one is told."""
    plugins = Connection.objects.values_list("plugin", flat=True).order_by("plugin").distinct()
    captured = [plugin for plugin in plugins if is_captured(plugin)]
    known = {}
    for connection in Connection.objects.filter(plugin__in=captured) if captured else ():
        try:
            server = server_of(connection.url)
        except UnusableUrl:
            continue
        known[connection.pk] = _CapturedConnection(connection.url, server, has_cells(connection.plugin))
    return known


def _planned(feed: Feed, connection: _CapturedConnection) -> PlannedCapture:
    """Raises NotCells."""
    capture, url = feed.capture if hasattr(feed, "capture") else capture_of(feed), connection.url
    text, cells = read_cell_object(feed.object) if connection.has_cells else (feed.object, None)
    database, table = _captured_object(text, url)
    key = tuple(feed.dataset.record_key)
    spec = CaptureSpec(
        capture.topic,
        database,
        table,
        capture.load,
        key,
        hidden_columns_of(feed),
        cells,
        required=required_columns_of(feed),
        follows_truncate=follows_truncate(feed),
        follows_drop=follows_drop(feed),
        stops_at_narrowing=stops_at_narrowing(feed),
    )
    options = {name: str(feed.options[name]) for name in TOPIC_OPTIONS if name in feed.options} if is_kafka(url) else {}
    return PlannedCapture(feed.dataset_id, capture, spec, feed.dataset.team, url, options)


def _captured_object(text: str, url: str) -> tuple[str, str]:
    """Database and table; a topic is in no database."""
    if is_kafka(url):
        return "", text
    return named_table(text, read_url(with_mariadb_driver(url)).address.database or "")


def _address(target: DatabaseUrl) -> str:
    host = (target.address.host or "").lower()
    return f"{f'[{host}]' if ':' in host else host}:{target.port}"
