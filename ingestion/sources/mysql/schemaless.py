"""A table of cells, as Uber's Schemaless keeps them in a MariaDB: the rows that they make, then each new cell as a change of some columns of its row."""

from __future__ import annotations

from typing import ClassVar

from ingestion.capture.null_instead import required_columns
from ingestion.capture.snapshot.cell_chunks import CellReader
from ingestion.capture.snapshot.definitions import named_table
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import SourceError
from ingestion.sources.mysql.cell_snapshot import CellWalk
from ingestion.sources.mysql.server import TIMEOUTS, OpenServer
from ingestion.sources.mysql.source import MysqlSource, Walk
from lakehub.kernel.cells.cell_tables import NotCells, read_cell_object


class SchemalessSource(MysqlSource):
    reference_type: ClassVar[type[bytes | int]] = int

    def _columns(self, server: OpenServer) -> Schema:
        """Those of the registry, and what some cells have besides."""
        table = server.captured_cells(self._spec, self._topic)
        with server.source.at_most(TIMEOUTS.silence):
            sample = CellReader(server.connection, table.definition, table.columns).sample()
        table.take_types(table.sampled_types(sample))
        return table.schema.row_columns

    def _walk(self, start: Position, meter: BatchMeter) -> Walk:
        return CellWalk(self._server, self._spec, self._topic, self._config, start, meter)

    @property
    def _spec(self) -> CaptureSpec:
        """Raises SourceError."""
        try:
            text, options = read_cell_object(self._config.object)
        except NotCells as problem:
            raise SourceError(str(problem)) from problem
        database, table = named_table(text, self._server.database)
        required, key = required_columns(self._config.options), self._config.key_columns
        return CaptureSpec(self._topic.topic, database, table, record_key=key, cells=options, required=required)
