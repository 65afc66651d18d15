"""How the capture of a dataset goes, for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ingestion.models import Capture, SchemaVersion, TapServer
from ingestion.schemas.subjects.lake_tables import LakeTable, lake_tables
from lakehub.catalog.models import Dataset


@dataclass(frozen=True)
class CaptureState:
    """`address`: of the server that is tapped; empty, and `server` None: no tap has taken the dataset on yet. `version`: of its newest schema; None: it has
    none yet."""

    capture: Capture
    address: str
    server: TapServer | None
    version: int | None
    tables: list[LakeTable]

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
        return "" if self.server is None else self.server.error


def capture_state(dataset: Dataset) -> CaptureState | None:
    """None: its changes are not captured. One query then, else five."""
    capture = Capture.objects.filter(feed__dataset=dataset).first()
    if capture is None:
        return None
    address, _, _ = capture.captured_table.partition("/")
    server = TapServer.objects.filter(address=address).first() if address else None
    versions = SchemaVersion.objects.filter(subject__name=capture.topic).order_by("-version")
    newest = versions.values_list("version", flat=True).first()
    return CaptureState(capture, address, server, newest, lake_tables(dataset))
