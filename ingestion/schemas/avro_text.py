"""A schema as somebody sends it: is it Avro, and is it the same as another, however it is laid out?"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from avro.errors import AvroException
from avro.schema import make_avsc_object
from fastavro import parse_schema
from fastavro.schema import SchemaParseException

from ingestion.domain.avro.schema_tree import tree_of
from lakehub.kernel.errors import Refused

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_BYTES = 512 * 1024
MAX_DEPTH = 60
"""Of lists and objects within each other: parsers go down into them."""
_PARSER_ERRORS = (AvroException, SchemaParseException, ValueError, TypeError, LookupError, AttributeError)


def parsed(text: str) -> Any:
    """The schema as JSON. Raises Refused."""
    schema = _json(text)
    if _depth(schema) > MAX_DEPTH:
        raise Refused(f"The schema is nested deeper than {MAX_DEPTH} levels of JSON.")
    try:
        # Apache's parser is the stricter one, fastavro's reads messages, and ours compares versions.
        make_avsc_object(schema)
        parse_schema(schema)
        tree_of(schema)
    except _PARSER_ERRORS as problem:
        reason = str(problem) or type(problem).__name__
        raise Refused(f"The schema is not an Avro schema: {reason[:500]}.") from problem
    if unfit := [name for name in _field_names(schema) if not _NAME.fullmatch(name)]:
        raise Refused(
            f"The schema is not an Avro schema: {unfit[0][:80]!r} is not a name of a field, which has letters, digits and _."
        )
    return schema


def digest_of(schema: Any) -> str:
    """Equal for equal schemas: the order of keys and white space say nothing, documentation and defaults do."""
    return hashlib.sha256(json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _json(text: str) -> Any:
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise Refused(f"The schema has more than {MAX_BYTES // 1024} KiB. Split it into several subjects.")
    try:
        schema = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(schema, ensure_ascii=False).encode()
    except RecursionError:
        raise Refused(f"The schema is nested deeper than {MAX_DEPTH} levels of JSON.") from None
    except UnicodeEncodeError:
        raise Refused(
            "The schema has half of a surrogate pair (\\ud800 to \\udfff) in it: write whole characters."
        ) from None
    except ValueError as problem:
        raise Refused(f"The schema is not JSON: {problem}.") from problem
    return schema


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a value of JSON")


def _depth(schema: Any) -> int:
    deepest, waiting = 0, [(schema, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        waiting += ((part, depth + 1) for part in parts if isinstance(part, dict | list))
    return deepest


def _field_names(schema: Any) -> Iterator[str]:
    """However deep: none of the parsers looks at them."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            fields = node.get("fields", []) if node.get("type") in ("record", "error") else []
            yield from (field["name"] for field in fields)
            waiting += [*(field["type"] for field in fields), *(node.get(part) for part in ("type", "items", "values"))]
