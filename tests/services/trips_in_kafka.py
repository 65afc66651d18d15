"""The table whose changes a stream of Spark reads: without a database, as its own process has none."""

from __future__ import annotations

import pyarrow as pa

from ingestion.domain.schema import Schema
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.subject_schema import SubjectSchema

COLUMNS = Schema.of({"id": "long", "city": "string", "fare": "decimal(8,2)"})
SCHEMA = SubjectSchema("trips", 1, 7, event_schema("trips", COLUMNS))
DECODER = Decoder("trips", ("id",), int, {7: SCHEMA}.get)
TRIPS = pa.schema(
    [("id", pa.int64()), ("city", pa.string()), ("fare", pa.decimal128(8, 2)), ("reference_key", pa.int64()), ("is_deleted", pa.bool_())]
)  # fmt: skip
