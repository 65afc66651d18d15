"""How the capture of a dataset goes, for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ingestion.captures.moves import destination, server_of_capture
from ingestion.lake.captured.histories import kept_since
from ingestion.models import Capture, SchemaVersion, TapServer
from ingestion.runs.job_specs import history_table_uri
from ingestion.schemas.subjects.lake_tables import LakeTable, lake_tables
from ingestion.spark.tables.timeline import DamagedTable
from lakehub.catalog.datasets.feed_options import effective_options_of, has_changelog
from lakehub.catalog.models import Dataset, DatasetCopy


@dataclass(frozen=True)
class CaptureState:
    """`address`: of the server that is tapped; empty, and `server` None: no tap has taken the dataset on yet. `version`: of its newest schema; None: it has
    none yet. `next_server`: that its connection leads to since, where it has not gone on yet."""

    capture: Capture
    address: str
    server: TapServer | None
    version: int | None
    tables: list[LakeTable]
    next_address: str = ""
    next_server: TapServer | None = None

    @property
    def table(self) -> str:
        """Or the topic of a cluster."""
        return self.capture.captured_table.partition("/")[2]

    @property
    def is_incomplete(self) -> bool:
        return bool(self.capture.incomplete_copies)

    @property
    def heard_at(self) -> datetime | None:
        return None if self.server is None else self.server.seen_at

    @property
    def error(self) -> str:
        """Of the next server, where there is one."""
        errors = [server.error for server in (self.next_server, self.server) if server is not None]
        return next(filter(None, errors), "")


@dataclass(frozen=True)
class HistoryPlace:
    """Where the history of a copy lies. `since`: None: it begins with the next changes, unless `problem` says why it cannot be read."""

    data_center: str
    uri: str
    since: datetime | None
    problem: str = ""


def history_places(dataset: Dataset) -> list[HistoryPlace]:
    """By data center; none where no history is kept now. Reads the newest commit of each from the lake."""
    if not (has_changelog(dataset) and effective_options_of(dataset).get("history")):
        return []
    return [_history_place(copy) for copy in dataset.copies.select_related("data_center").order_by("data_center__name")]


def _history_place(copy: DatasetCopy) -> HistoryPlace:
    uri = history_table_uri(copy)
    try:
        return HistoryPlace(copy.data_center.name, uri, kept_since(uri))
    except (DamagedTable, OSError) as problem:
        return HistoryPlace(copy.data_center.name, uri, None, str(problem))


def capture_state(dataset: Dataset) -> CaptureState | None:
    """None: its changes are not captured. One query then, else five; one more while it goes to another server."""
    capture = Capture.objects.filter(feed__dataset=dataset).select_related("feed__connection").first()
    if capture is None:
        return None
    address, next_address = server_of_capture(capture), destination(capture)
    server, next_server = _tap_of(address), _tap_of(next_address)
    versions = SchemaVersion.objects.filter(subject__name=capture.topic).order_by("-version")
    newest = versions.values_list("version", flat=True).first()
    return CaptureState(capture, address, server, newest, lake_tables(dataset), next_address, next_server)


def _tap_of(address: str) -> TapServer | None:
    return TapServer.objects.filter(address=address).first() if address else None
