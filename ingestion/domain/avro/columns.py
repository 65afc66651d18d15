"""The columns of a schema as a list: fields, and below a structure its fields by their paths, such as `row.stops[].lat`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ingestion.domain.avro.schema_tree import Field, Node, tree_of
from ingestion.domain.avro.type_words import (
    MAX_DOC,
    MAX_NAME,
    avro_type,
    is_named,
    is_nullable,
    json_text,
    lake_type,
    short_name,
    shortened,
    values_of,
)

MAX_COLUMNS = 1_000
MAX_LEVELS = 30
"""Of structures within each other that are listed."""
_MAX_SYMBOLS = 20


@dataclass(frozen=True)
class Located:
    """`path`: of a field in a schema; empty: the schema itself, which may be no record and have no fields."""

    path: str

    @property
    def name(self) -> str:
        return name_of_path(self.path)

    @property
    def parent(self) -> str:
        return parent_of_path(self.path)


@dataclass(frozen=True)
class AvroColumn(Located):
    """Texts are cut where they are too long to be shown."""

    level: int
    """0: a field of the schema itself."""
    type: str
    """In words of the lake."""
    avro_type: str
    is_nullable: bool
    default: str | None
    """JSON; None: it has no default."""
    doc: str = ""
    aliases: tuple[str, ...] = ()
    symbols: str = ""
    """Of an enumeration."""
    shown_at: str = ""
    """Where the fields of its type are listed, if not here."""


@dataclass(frozen=True)
class ColumnList:
    columns: tuple[AvroColumn, ...]
    is_cut: bool = False
    """There are more of them."""


def columns_of(schema: Any, *, most: int = MAX_COLUMNS) -> ColumnList:
    """In order; the fields of a named type where it is first used. Raises NotAvro."""
    columns: list[AvroColumn] = []
    for column in _Lister().columns(tree_of(schema)):
        if len(columns) == most:
            return ColumnList(tuple(columns), is_cut=True)
        columns.append(column)
    return ColumnList(tuple(columns))


def column_of(each: Field, path: str, level: int = 0, shown_at: str = "") -> AvroColumn:
    return AvroColumn(
        path,
        level,
        lake_type(each.type),
        avro_type(each.type),
        is_nullable(each.type),
        json_text(each.default) if each.has_default else None,
        shortened(each.doc, MAX_DOC),
        tuple(shortened(alias, MAX_NAME) for alias in each.aliases[:_MAX_SYMBOLS]),
        symbols_of(each.type),
        shown_at,
    )


def symbols_of(node: Node) -> str:
    """Of the enumerations in it, but for those within structures."""
    enums = (inner for inner, _ in named_types(node, "") if inner.kind == "enum")
    return "; ".join(listed(inner.symbols) for inner in enums)


def listed(names: tuple[str, ...]) -> str:
    more = [f"and {len(names) - _MAX_SYMBOLS:,} more"] if len(names) > _MAX_SYMBOLS else []
    return ", ".join([*(shortened(name, MAX_NAME) for name in names[:_MAX_SYMBOLS]), *more])


def named_types(node: Node, path: str) -> Iterator[tuple[Node, str]]:
    """Structures and other named types that a value may be, and the paths of their values; not what is within structures."""
    if is_named(node):
        yield node, path
    elif node.kind in ("array", "map"):
        yield from named_types(node.types[0], f"{path}[]")
    elif node.kind == "union":
        branches = values_of(node)
        for branch in branches:
            yield from named_types(branch, branch_path(path, branch, len(branches)))


def branch_path(path: str, branch: Node, branches: int) -> str:
    """`event(Click)`: of several structures which one."""
    return f"{path}({short_name(branch)})" if branches > 1 and is_named(branch) else path


def parent_of_path(path: str) -> str:
    """`row.stops[].` for `row.stops[].lat`."""
    return path[: path.rfind(".") + 1]


def name_of_path(path: str) -> str:
    """`lat` for `row.stops[].lat`."""
    return path[path.rfind(".") + 1 :]


def path_within(path: str, name: str) -> str:
    return f"{path}.{shortened(name, MAX_NAME)}" if path else shortened(name, MAX_NAME)


@dataclass
class _Lister:
    """Goes down without recursion: types may name each other in chains of thousands."""

    _shown: dict[int, str] = field(default_factory=dict)
    """By structure where its fields are listed."""

    def columns(self, root: Node) -> Iterator[AvroColumn]:
        if root.kind not in ("record", "error"):
            yield column_of(Field("", root, (), False), "")
        waiting = [self._fields_within(root, "", 0)]
        while waiting:
            following = next(waiting[-1], None)
            if following is None:
                waiting.pop()
                continue
            each, path, level = following
            records = [(node, at) for node, at in named_types(each.type, path) if node.kind in ("record", "error")]
            known = next((self._shown[id(node)] for node, _ in records if id(node) in self._shown), "")
            yield column_of(each, path, level, known)
            if level < MAX_LEVELS:
                waiting += [self._fields(node, at, level + 1) for node, at in reversed(records)]

    def _fields_within(self, root: Node, path: str, level: int) -> Iterator[tuple[Field, str, int]]:
        for node, at in named_types(root, path):
            yield from self._fields(node, at, level)

    def _fields(self, node: Node, path: str, level: int) -> Iterator[tuple[Field, str, int]]:
        if self._shown.setdefault(id(node), path) != path or node.kind not in ("record", "error"):
            return
        for each in node.fields:
            yield each, path_within(path, each.name), level
