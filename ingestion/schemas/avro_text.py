"""A schema as somebody sends it: is it Avro, and is it the same as another, however it is laid out?"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from avro.errors import AvroException
from avro.schema import make_avsc_object
from fastavro import parse_schema
from fastavro.schema import SchemaParseException

from lakehub.kernel.errors import Refused

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_BYTES = 512 * 1024
MAX_DEPTH = 60
"""Of lists and objects within each other: parsers go down into them."""


def parsed(text: str) -> Any:
    """The schema as JSON. Raises Refused. Apache's parser is the stricter one, fastavro's the one that messages are read with."""
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise Refused(f"The schema has more than {MAX_BYTES // 1024} KiB. Split it into several subjects.")
    if _depth(text) > MAX_DEPTH:
        raise Refused(f"The schema is nested deeper than {MAX_DEPTH} levels of JSON.")
    try:
        schema = json.loads(text)
    except ValueError as problem:
        raise Refused(f"The schema is not JSON: {problem}.") from problem
    try:
        make_avsc_object(schema)
        parse_schema(schema)
    except (AvroException, SchemaParseException, ValueError, TypeError, LookupError, AttributeError) as problem:
        reason = str(problem) or type(problem).__name__
        raise Refused(f"The schema is not an Avro schema: {reason}.") from problem
    if unfit := [name for name in _field_names(schema) if not _NAME.fullmatch(name)]:
        raise Refused(
            f"The schema is not an Avro schema: {unfit[0]!r} is no name of a field, which has letters, digits and _."
        )
    return schema


def _field_names(schema: Any) -> Iterator[str]:
    """However deep: neither of the parsers looks at them."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            fields = node.get("fields", []) if node.get("type") in ("record", "error") else []
            yield from (field["name"] for field in fields)
            waiting += [*(field["type"] for field in fields), *(node.get(part) for part in ("type", "items", "values"))]


def digest_of(schema: Any) -> str:
    """Equal for equal schemas: the order of keys and white space say nothing, documentation and defaults do."""
    return hashlib.sha256(json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _depth(text: str) -> int:
    """At most; brackets in texts count too."""
    depth = deepest = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest
