"""Column types as trees: parsed from their text, written again, and merged where a table's columns change.

The text is what Spark's DDL says (`struct<a:long,b:array<string>>`), so that it can be given to Spark as it is. Map keys are texts:
other keys have no twin in Avro, in which tables of the lake name their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from lakehub.kernel.lake_names import names_unfit_for_the_lake
from lakehub.kernel.suggest import did_you_mean

SIMPLE_TYPES = ("boolean", "int", "long", "float", "double", "string", "binary", "date", "timestamp")
MAX_DEPTH = 10
"""Of types within types; a plain type has depth 1. What lies deeper in a source is kept as JSON text."""
MAX_FIELDS = 1_000
"""Of one structure, those of the structures in it included; what has more in a source is kept as JSON text."""
MAX_PRECISION = 38
_CERTAIN_KEY = re.compile(r"string|int|long|bigint|date|decimal\(\d+,\s*0\)")
_KNOWN_NAMES = (*SIMPLE_TYPES, "decimal(10,2)", "array<string>", "map<string,string>", "struct<name:string>")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|[<>,:]|decimal\(\s*[0-9]+\s*,\s*[0-9]+\s*\)|[^\s<>,:`()]+)")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WIDENINGS = {("int", "long"), ("int", "double"), ("float", "double")}


class UnknownType(ValueError):
    """No column type has that name."""


@dataclass(frozen=True)
class Plain:
    """One of SIMPLE_TYPES, or `decimal(precision,scale)`."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Its precision and scale."""
        match = _DECIMAL.fullmatch(self.name)
        return None if match is None else (int(match[1]), int(match[2]))


@dataclass(frozen=True)
class ArrayOf:
    element: ColumnType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True)
class MapOf:
    """Keys are texts."""

    value: ColumnType

    def __str__(self) -> str:
        return f"map<string,{self.value}>"


@dataclass(frozen=True)
class StructOf:
    """Fields in order, one at least, each name once."""

    fields: tuple[tuple[str, ColumnType], ...]

    def __str__(self) -> str:
        return f"struct<{','.join(f'{_quoted(name)}:{type_}' for name, type_ in self.fields)}>"

    @property
    def types(self) -> dict[str, ColumnType]:
        return dict(self.fields)


ColumnType = Plain | ArrayOf | MapOf | StructOf
STRING = Plain("string")


@dataclass(frozen=True)
class TypeEvolution:
    """`conflicts`: (path within the column, stored type, incoming type), where the stored type stays."""

    target: ColumnType
    conflicts: tuple[tuple[str, str, str], ...] = ()


@lru_cache(maxsize=4096)
def parse_type(text: str) -> ColumnType:
    """Raises UnknownType, which says what is wrong."""
    tokens = _Tokens(text)
    parsed = _read_type(tokens, 1)
    if tokens.peek():
        tokens.refuse(f"`{tokens.peek()}` follows its end")
    return parsed


def is_nested(text: str) -> bool:
    return not isinstance(parse_type(text), Plain)


def has_map(type_: ColumnType) -> bool:
    """Whether there is a map in it, however deep: Spark does not compare maps."""
    match type_:
        case MapOf():
            return True
        case ArrayOf(element):
            return has_map(element)
        case StructOf(fields):
            return any(has_map(field) for _, field in fields)
    return False


def depth_of(type_: ColumnType) -> int:
    match type_:
        case ArrayOf(inner) | MapOf(inner):
            return 1 + depth_of(inner)
        case StructOf(fields):
            return 1 + max(depth_of(field) for _, field in fields)
    return 1


def plain_types_in(type_: ColumnType) -> int:
    """How many columns of values it takes in a file."""
    match type_:
        case ArrayOf(inner) | MapOf(inner):
            return plain_types_in(inner)
        case StructOf(fields):
            return sum(plain_types_in(field) for _, field in fields)
    return 1


def struct_in_lake(fields: Mapping[str, ColumnType]) -> ColumnType:
    """The structure, or text (JSON) where the lake cannot hold these fields: none, too many, or names that it cannot have."""
    if not 0 < sum(map(plain_types_in, fields.values())) <= MAX_FIELDS or names_unfit_for_the_lake(fields):
        return STRING
    return StructOf(tuple(fields.items()))


def in_lake(type_: ColumnType, allowed: int = MAX_DEPTH) -> ColumnType:
    """The type with all that lies deeper than `allowed` as text (JSON)."""
    match type_:
        case Plain():
            return type_
        case _ if allowed <= 1:
            return STRING
        case ArrayOf(element):
            return ArrayOf(in_lake(element, allowed - 1))
        case MapOf(value):
            return MapOf(in_lake(value, allowed - 1))
        case StructOf(fields):
            return StructOf(tuple((name, in_lake(field, allowed - 1)) for name, field in fields))


def unfit_field_names(type_: ColumnType, path: str) -> Iterator[str]:
    """Paths of the fields whose names no table of the lake can have."""
    match type_:
        case ArrayOf(inner) | MapOf(inner):
            yield from unfit_field_names(inner, f"{path}[]")
        case StructOf(fields):
            yield from (f"{path}.{name}" for name in names_unfit_for_the_lake(type_.types))
            for name, field in fields:
                yield from unfit_field_names(field, f"{path}.{name}")


def evolve_type(stored: ColumnType, incoming: ColumnType, path: str) -> TypeEvolution:
    """Structures take new fields behind their own, and what is inside widens. Whatever else differs is a conflict at its path.

    What is stored as text holds every nested value (as JSON): that is no conflict.
    """
    match stored, incoming:
        case StructOf(), StructOf():
            return _evolve_struct(stored, incoming, path)
        case ArrayOf(old), ArrayOf(new):
            inner = evolve_type(old, new, f"{path}[]")
            return TypeEvolution(ArrayOf(inner.target), inner.conflicts)
        case MapOf(old), MapOf(new):
            inner = evolve_type(old, new, f"{path}[]")
            return TypeEvolution(MapOf(inner.target), inner.conflicts)
        case Plain(), Plain() if is_plain_widening(stored, incoming):
            return TypeEvolution(incoming)
        case Plain(), Plain() if is_plain_widening(incoming, stored):
            return TypeEvolution(stored)
        case Plain("string"), ArrayOf() | MapOf() | StructOf():
            return TypeEvolution(stored)
    return TypeEvolution(stored, ((path, str(stored), str(incoming)),))


def is_plain_widening(narrow: Plain, wide: Plain) -> bool:
    """Every value of `narrow` is a value of `wide`, and the table format can change the one into the other."""
    if narrow == wide or (narrow.name, wide.name) in _WIDENINGS:
        return True
    if narrow.decimal is None or wide.decimal is None:
        return False
    (precision, scale), (wide_precision, wide_scale) = narrow.decimal, wide.decimal
    return wide_scale >= scale and wide_precision - wide_scale >= precision - scale


def _evolve_struct(stored: StructOf, incoming: StructOf, path: str) -> TypeEvolution:
    arriving = incoming.types
    conflicts: list[tuple[str, str, str]] = []
    fields: list[tuple[str, ColumnType]] = []
    for name, type_ in stored.fields:
        field = evolve_type(type_, arriving.get(name, type_), f"{path}.{name}")
        fields.append((name, field.target))
        conflicts += field.conflicts
    folded = {name.casefold() for name, _ in stored.fields}
    for name, type_ in incoming.fields:
        if name in stored.types:
            continue
        if name.casefold() in folded or len(fields) >= MAX_FIELDS:
            conflicts.append((f"{path}.{name}", "(none)", str(type_)))
        else:
            fields.append((name, type_))
    return TypeEvolution(StructOf(tuple(fields)), tuple(conflicts))


class _Tokens:
    """The words and signs of a type's text, in order."""

    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0

    def peek(self) -> str:
        """The next one; empty at the end."""
        match = _TOKEN.match(self._text, self._place)
        return match[1] if match else self._text[self._place :].strip()

    def take(self) -> str:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            self.refuse("it ends too soon" if not self.peek() else f"`{self.peek()}` cannot stand there")
        self._place = match.end()
        return match[1]

    def expect(self, sign: str) -> None:
        if self.peek() != sign:
            self.refuse(f"`{sign}` is missing" + (f" before `{self.peek()}`" if self.peek() else " at its end"))
        self.take()

    def refuse(self, reason: str, suggestion: str = "") -> NoReturn:
        raise UnknownType(f"`{self._text}` is not a column type: {reason}.{suggestion}")


def _read_type(tokens: _Tokens, depth: int) -> ColumnType:
    if depth > MAX_DEPTH:
        tokens.refuse(f"it is nested deeper than {MAX_DEPTH}")
    word = tokens.take()
    if word in _NESTED:
        tokens.expect("<")
        nested = _NESTED[word](tokens, depth + 1)
        tokens.expect(">")
        return nested
    return _plain(tokens, word)


def _plain(tokens: _Tokens, word: str) -> Plain:
    if word in SIMPLE_TYPES:
        return Plain(word)
    match = _DECIMAL.fullmatch(word)
    if match is None:
        tokens.refuse(f"there is no type `{word}`", did_you_mean(word, (*_KNOWN_NAMES, *_NESTED)))
    precision, scale = int(match[1]), int(match[2])
    if not 0 < precision <= MAX_PRECISION or scale > precision:
        tokens.refuse(f"a decimal has 1 to {MAX_PRECISION} digits, and no more of them behind the point")
    return Plain(f"decimal({precision},{scale})")


def _read_array(tokens: _Tokens, depth: int) -> ColumnType:
    return ArrayOf(_read_type(tokens, depth))


def _read_map(tokens: _Tokens, depth: int) -> ColumnType:
    key = tokens.take()
    if key != "string":
        tokens.refuse(f"the keys of a map are texts, not `{key}`")
    tokens.expect(",")
    return MapOf(_read_type(tokens, depth))


def _read_struct(tokens: _Tokens, depth: int) -> ColumnType:
    fields: dict[str, ColumnType] = {}
    while not fields or tokens.peek() == ",":
        if fields:
            tokens.take()
        name = _unquoted(tokens.take())
        if name in fields:
            tokens.refuse(f"it has the field `{name}` twice")
        if len(fields) >= MAX_FIELDS:
            tokens.refuse(f"a structure has {MAX_FIELDS:,} fields at most")
        tokens.expect(":")
        fields[name] = _read_type(tokens, depth)
    return StructOf(tuple(fields.items()))


_NESTED = {"array": _read_array, "map": _read_map, "struct": _read_struct}


def is_certain_key(type_: str) -> bool:
    """Everyone writes its values alike as a text, by which changes name rows."""
    return _CERTAIN_KEY.fullmatch(type_) is not None


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _unquoted(token: str) -> str:
    return token[1:-1].replace("``", "`") if token.startswith("`") else token
