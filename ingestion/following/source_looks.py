"""Is there anything new in the source of a copy? Asked without Spark and without our database, so many are asked at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from ingestion.domain.checkpoint import Checkpoint, is_restamp_due, source_position
from ingestion.domain.pace import piece_rows
from ingestion.sources import SOURCES, Source, SourceConfig, has_changes
from ingestion.spark.contract.secret_refs import resolve_secret, resolved_options
from ingestion.spark.contract.spec import JobSpec, SourceSpec
from ingestion.spark.tables.timeline import MIN_COMMITS_KEPT, Timeline
from lakehub.source_databases.interruption import Interruption, interruptible

POSITION_KEPT = timedelta(minutes=1)
"""How long a position is believed that was read from the timeline: others may have loaded the table anew, or restored it."""
_LOOK_ROWS = 1_000
"""A look needs only to know that there are rows."""


class SourceLook:
    """The looks at the source of one copy, one after the other. What a look has learned stays for the next: the source with its
    columns, and the position. Neither survives `forget`, which a batch or an error brings."""

    def __init__(self) -> None:
        self._config: tuple[str, SourceConfig] | None = None
        self._source: Source | None = None
        self._checkpoint: Checkpoint | None = None
        self._read_at: datetime | None = None
        self._interruption: Interruption | None = None
        self.rows_read = 0
        """By the latest look."""

    def has_changes(self, spec: JobSpec, secrets: Mapping[str, str], *, now: datetime) -> bool:
        """Would an incremental job with this spec find anything to do? Raises SourceError, and what a timeline raises."""
        self.rows_read = 0
        with interruptible() as self._interruption:
            return self._has_changes(spec, secrets, now)

    def interrupt(self, reason: str) -> None:
        """The look that is under way ends with a SourceError, where it reads a database. From another thread, again and again."""
        if self._interruption is not None:
            self._interruption.interrupt(reason)

    def _has_changes(self, spec: JobSpec, secrets: Mapping[str, str], now: datetime) -> bool:
        checkpoint = self._position(spec.table.uri, now)
        if checkpoint is None or spec.source is None:
            return True  # the job says what is missing
        if is_restamp_due(checkpoint, commits_kept=MIN_COMMITS_KEPT):
            return True
        try:
            source, position = self._open(spec.source, secrets), source_position(checkpoint.position)
            return has_changes(source, position, upto=spec.upto_at, tell_rows=self._note_handed_over)
        except Exception:
            self.forget()
            raise

    def forget(self) -> None:
        self._config = self._source = self._checkpoint = self._read_at = None

    def _add_rows(self, rows: int) -> None:
        self.rows_read += rows

    def _note_handed_over(self, rows: int) -> None:
        """Of a source that does not tell what it reads."""
        self.rows_read = max(self.rows_read, rows)

    def _position(self, uri: str, now: datetime) -> Checkpoint | None:
        if self._read_at is None or not self._read_at <= now < self._read_at + POSITION_KEPT:
            timeline = Timeline(uri)
            self._checkpoint = timeline.checkpoint() if timeline.exists else None
            self._read_at = now
        return self._checkpoint

    def _open(self, origin: SourceSpec, secrets: Mapping[str, str]) -> Source:
        config = SourceConfig(
            resolve_secret(origin.url_ref, secrets),
            origin.object,
            origin.cursor_column,
            origin.overlap_s,
            min(piece_rows(origin.chunk_rows, origin.rows_per_s), _LOOK_ROWS),
            resolved_options(origin, secrets),
            on_rows_read=self._add_rows,
        )
        if self._source is None or self._config != (origin.plugin, config):
            self._source, self._config = SOURCES.get(origin.plugin)(config), (origin.plugin, config)
        return self._source
