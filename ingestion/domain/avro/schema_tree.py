"""An Avro schema as a tree in which names stand for their types: by full name, in the namespace that they are used in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PRIMITIVE = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED = frozenset(("record", "error", "enum", "fixed"))
_LOGICAL = frozenset(
    (
        *("date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos", "uuid", "duration"),
    )
)
"""Others are not known to readers, who take the type below."""
Logical = tuple[Any, ...]


class NotAvro(ValueError):
    """A schema that is none; the message says where."""


@dataclass(frozen=True)
class Field:
    name: str
    type: Node
    aliases: tuple[str, ...]
    has_default: bool
    default: Any = None
    """As JSON."""
    doc: str = ""


@dataclass(eq=False)
class Node:
    """`kind`: a primitive type, array, map, union, or one of NAMED. `types`: of an array or a map one, of a union its branches. `name`: full."""

    kind: str
    logical: Logical | None = None
    types: tuple[Node, ...] = ()
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    has_default: bool = False
    """Of an enumeration: a symbol stands for those that a reader does not know."""
    names: frozenset[str] = field(default_factory=frozenset)
    """Without namespaces: its own, and its aliases."""
    doc: str = ""


def tree_of(schema: Any) -> Node:
    """Raises NotAvro."""
    return _Builder().node(schema, "")


class _Builder:
    def __init__(self) -> None:
        self._named: dict[str, Node] = {}

    def node(self, schema: Any, namespace: str) -> Node:
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return Node("union", types=tuple(self.node(branch, namespace) for branch in schema))
        if not isinstance(schema, dict) or "type" not in schema:
            raise NotAvro(f"{str(schema)[:80]!r} is no type")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.node(kind, namespace)  # {"type": {...}}
        if kind in PRIMITIVE:
            return Node(kind, _logical(schema))
        if kind in ("array", "map"):
            return Node(kind, types=(self.node(schema["items" if kind == "array" else "values"], namespace),))
        return self._define(kind, schema, namespace) if kind in NAMED else self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVE:
            return Node(name)
        for full_name in (_full_name(name, namespace), name):
            if full_name in self._named:
                return self._named[full_name]
        raise NotAvro(f"there is no type {name[:80]!r}")

    def _define(self, kind: str, schema: Mapping[str, Any], namespace: str) -> Node:
        name = _full_name(str(schema.get("name", "")), schema.get("namespace") or namespace)
        inner = name.rpartition(".")[0]
        node = self._named[name] = Node(kind, _logical(schema), name=name, aliases=_texts(schema.get("aliases")))
        node.names = frozenset(each.rpartition(".")[2] for each in (name, *node.aliases))
        node.symbols, node.has_default = _texts(schema.get("symbols")), "default" in schema
        node.size, node.doc = int(schema.get("size", 0)), _text(schema.get("doc"))
        if kind in ("record", "error"):
            node.fields = tuple(self._field(each, inner) for each in schema.get("fields", ()))
        return node

    def _field(self, field: Mapping[str, Any], namespace: str) -> Field:
        type_, aliases = self.node(field["type"], namespace), _texts(field.get("aliases"))
        return Field(
            str(field["name"]), type_, aliases, "default" in field, field.get("default"), _text(field.get("doc"))
        )


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _logical(schema: Mapping[str, Any]) -> Logical | None:
    """With its parameters. One that lacks them is none."""
    name = schema.get("logicalType")
    if name == "decimal":
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        return (name, precision, scale) if isinstance(precision, int) and isinstance(scale, int) else None
    return (name,) if isinstance(name, str) and name in _LOGICAL else None
