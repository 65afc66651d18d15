"""The schemas of OpenLineage as its repository has them at 8f02abfb7a25 (`spec/`, Apache License 2.0), and what says whether an event is as they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

_SCHEMAS = [json.loads(path.read_text()) for path in sorted(Path(__file__).parent.glob("*.json"))]
_REGISTRY: Registry[Any] = Registry().with_resources(
    [(schema["$id"], Resource.from_contents(schema)) for schema in _SCHEMAS]
)


def problems_of(event: dict[str, Any]) -> list[str]:
    """Of the event by its `schemaURL`, and of each of its facets by its own."""
    checked = [(event, event["schemaURL"]), *((facet, facet["_schemaURL"]) for facet in _facets(event))]
    return [error.message for value, url in checked for error in _validator(url).iter_errors(value)]


def _validator(url: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": url}, registry=_REGISTRY, format_checker=Draft202012Validator.FORMAT_CHECKER)


def _facets(value: Any) -> Iterator[dict[str, Any]]:
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(each, dict) and "_schemaURL" in each:
            yield each
        else:
            yield from _facets(each)
