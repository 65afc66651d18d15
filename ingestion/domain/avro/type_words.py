"""How a type of Avro is called: in the words of the lake (`long`, `array<struct>`), and in Avro's own where two types are one in the lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ingestion.domain.avro.schema_tree import NAMED, Node

_LAKE = {"bytes": "binary", "fixed": "binary", "enum": "string", "record": "struct", "error": "struct"}
_LAKE_LOGICAL = {
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp",
    "local-timestamp-micros": "timestamp",
}
_USUAL_BASE = {"date": "int", "time-millis": "int", "uuid": "string", "duration": "fixed", "decimal": "bytes"}
"""Of annotated types; of the others it is `long`."""
_MAX_BRANCHES = 8
_MAX_FIELDS = 8
_MAX_WORDS = 40
"""In a type with the fields of its structures."""
MAX_NAME = 100
MAX_VALUE = 200
MAX_DOC = 1_000


def lake_type(node: Node) -> str:
    """Without the fields of structures, and without null."""
    return _lake(node, None)


def lake_type_in_full(node: Node) -> str:
    """With the fields of structures, as far as a line has room for them."""
    return _lake(node, iter(range(_MAX_WORDS)))


def avro_type(node: Node) -> str:
    """Without null where it is a choice at the top; without the names of its named types, and without their fields."""
    return _either([_avro(branch) for branch in values_of(node)]) or "null"


def is_nullable(node: Node) -> bool:
    return node.kind == "null" or any(branch.kind == "null" for branch in node.types if node.kind == "union")


def values_of(node: Node) -> tuple[Node, ...]:
    """The branches of a union but null; another type alone."""
    branches = node.types if node.kind == "union" else (node,)
    return tuple(branch for branch in branches if branch.kind != "null")


def short_name(node: Node) -> str:
    """Of a named type, without its namespace."""
    return shortened(node.name.rpartition(".")[2], MAX_NAME)


def json_text(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), MAX_VALUE)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def _lake(node: Node, room: Iterator[int] | None) -> str:
    """`room`: so many words more; None: without the fields of structures. Types may name each other without an end."""
    if room is not None and next(room, None) is None:
        return "…"
    if node.kind == "union":
        branches = node.types if room is None else node.types[: _MAX_BRANCHES + 1]
        return _either([_lake(branch, room) for branch in branches if branch.kind != "null"]) or "null"
    if node.logical is not None:
        name = str(node.logical[0])
        return _parameters(node) or _LAKE_LOGICAL.get(name, name)
    if node.kind == "array":
        return f"array<{_lake(node.types[0], room)}>"
    if node.kind == "map":
        return f"map<string,{_lake(node.types[0], room)}>"
    if node.kind in ("record", "error") and room is not None:
        return f"struct<{_fields(node, room)}>"
    return _LAKE.get(node.kind, node.kind)


def _fields(node: Node, room: Iterator[int]) -> str:
    texts = [f"{shortened(each.name, MAX_NAME)}:{_lake(each.type, room)}" for each in node.fields[:_MAX_FIELDS]]
    return ",".join([*texts, *(["…"] if len(node.fields) > _MAX_FIELDS else [])])


def _avro(node: Node) -> str:
    if node.kind == "union":
        return _either([_avro(branch) for branch in node.types])
    base = f"fixed({node.size})" if node.kind == "fixed" else node.kind
    if node.logical is not None:
        name = str(node.logical[0])
        words = _parameters(node) or name
        return words if node.kind == _USUAL_BASE.get(name, "long") else f"{words} in {base}"
    if node.kind in ("array", "map"):
        return f"{node.kind}<{_avro(node.types[0])}>"
    return base


def _parameters(node: Node) -> str:
    """Of a decimal: it is called the same in the lake."""
    if node.logical is None or node.logical[0] != "decimal":
        return ""
    return f"decimal({node.logical[1]},{node.logical[2]})"


def _either(words: list[str]) -> str:
    """Each word once: a choice of many structures is `struct`."""
    distinct = list(dict.fromkeys(words))
    more = " or more" if len(distinct) > _MAX_BRANCHES else ""
    return " or ".join(distinct[:_MAX_BRANCHES]) + more


def is_named(node: Node) -> bool:
    return node.kind in NAMED
