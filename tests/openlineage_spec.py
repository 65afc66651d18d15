"""What an event of OpenLineage has to have, as its specification says it (https://openlineage.io, events of 2-0-2), written down for what Lakehub sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

Json = dict[str, Any]
TEXT: Json = {"type": "string"}
URI: Json = {"type": "string", "format": "uri", "pattern": "^[a-z]+:"}
TIME: Json = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}
UUID: Json = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
KINDS = ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]


def fields(*optional: str, **required: Json) -> Json:
    """An object with these fields; `optional` ones are texts."""
    return {"type": "object", "required": [*required], "properties": {**required, **dict.fromkeys(optional, TEXT)}}


def list_of(each: Json) -> Json:
    return {"type": "array", "items": each}


INPUT_COLUMN = fields(namespace=TEXT, name=TEXT, field=TEXT)
INPUT_COLUMN["properties"]["transformations"] = list_of(
    fields("subtype", "description", type={"enum": ["DIRECT", "INDIRECT"]})
)
EVENT = fields(
    eventType={"enum": KINDS},
    eventTime=TIME,
    producer=URI,
    schemaURL=URI,
    run=fields(runId=UUID),
    job=fields(namespace=TEXT, name=TEXT),
    inputs=list_of(fields(namespace=TEXT, name=TEXT)),
    outputs=list_of(fields(namespace=TEXT, name=TEXT)),
)
FACETS = {
    "columnLineage": fields(
        fields={"type": "object", "additionalProperties": fields(inputFields=list_of(INPUT_COLUMN))}
    ),
    "schema": fields(fields=list_of(fields("type", name=TEXT))),
    "symlinks": fields(identifiers=list_of(fields(namespace=TEXT, name=TEXT, type=TEXT))),
    "outputStatistics": fields(rowCount={"type": "integer"}),
    "errorMessage": fields(message=TEXT, programmingLanguage=TEXT),
    "jobType": fields("jobType", processingType=TEXT, integration=TEXT),
    "sql": fields("dialect", query=TEXT),
}
FACETS["columnLineage"]["properties"]["dataset"] = list_of(INPUT_COLUMN)
OF_EACH_FACET = fields(_producer=URI, _schemaURL=URI)


def problems_of(event: Json) -> list[str]:
    """Of the event, and of each of its facets; a facet that is not known here is one."""
    problems = _problems(EVENT, event)
    for name, facet in _facets(event):
        known = FACETS.get(name)
        problems += [f"unknown facet {name}"] if known is None else _problems({"allOf": [OF_EACH_FACET, known]}, facet)
    return problems


def _problems(schema: Json, value: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]


def _facets(event: Json) -> Iterator[tuple[str, Any]]:
    holders = [event.get("run"), event.get("job"), *event.get("inputs", ()), *event.get("outputs", ())]
    for holder in (each for each in holders if isinstance(each, dict)):
        for kind in ("facets", "inputFacets", "outputFacets"):
            yield from holder.get(kind, {}).items()
