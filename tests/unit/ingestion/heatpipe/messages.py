"""A dataset of trips, whose events the tests of the heatpipe encode and decode."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from ingestion.domain.merging.events import ChangeEvent, Operation, ReferenceKey
from ingestion.domain.schema import Schema
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.encoder import Encoder
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.subject_schema import SubjectSchema

NOW = datetime(2026, 11, 26, 12, 0, 0, 123_000, tzinfo=UTC)
COMMITTED = datetime(2026, 11, 26, 11, 59, 58, tzinfo=UTC)
POSITION = (3, 17)
TRIPS = Schema.of(
    {
        "id": "long",
        "city": "string",
        "fare": "decimal(8,2)",
        "began": "timestamp",
        "day": "date",
        "is_shared": "boolean",
        "seats": "int",
        "distance": "double",
        "token": "binary",
        "stops": "array<struct<lat:double,names:map<string,string>>>",
    }
)
TRIP: dict[str, Any] = {
    "id": 42,
    "city": "München",
    "fare": Decimal("12.50"),
    "began": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    "day": date(2026, 11, 26),
    "is_shared": False,
    "seats": 4,
    "distance": -0.0,
    "token": b"\x00\xff",
    "stops": [{"lat": 48.1, "names": {"de": "Bahnhof", "en": None}}, None],
}


def subject_schema(columns: Schema = TRIPS, *, version: int = 1, schema_id: int = 7) -> SubjectSchema:
    return SubjectSchema("trips", version, schema_id, event_schema("trips", columns))


def encoder(schema: SubjectSchema | None = None) -> Encoder:
    return Encoder(schema or subject_schema(), ("id",), "mysql:ops/shop.trips", "dc1", lambda: NOW)


def decoder(*schemas: SubjectSchema, subject: str = "trips", reference_type: Any = int) -> Decoder:
    known = {schema.schema_id: schema for schema in schemas or (subject_schema(),)}
    return Decoder(subject, ("id",), reference_type, known.get)


def change(
    values: dict[str, Any] | None = None, *, reference: ReferenceKey | None = 5, key: Any = 42, **facts: Any
) -> ChangeEvent:
    operation = facts.pop("operation", Operation.UPDATE)
    values = TRIP if values is None else values
    return ChangeEvent(operation, (key,), reference, POSITION, values, 1, COMMITTED, data_center="dc1", **facts)
