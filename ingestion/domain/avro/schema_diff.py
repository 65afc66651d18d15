"""What is different between two versions of a schema: columns that were added, removed, renamed (by an alias) or changed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ingestion.domain.avro.columns import (
    MAX_LEVELS,
    AvroColumn,
    Located,
    branch_path,
    column_of,
    listed,
    path_within,
)
from ingestion.domain.avro.schema_tree import Field, Node, tree_of
from ingestion.domain.avro.type_words import (
    MAX_DOC,
    MAX_NAME,
    avro_type,
    is_named,
    is_nullable,
    json_text,
    lake_type,
    lake_type_in_full,
    short_name,
    shortened,
    values_of,
)

MAX_CHANGES = 500
_MAX_PAIRS = 20_000
"""Of structures that are compared: types may hold themselves in circles of different lengths."""


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True)
class Difference:
    """`what`: name, type, default, documentation, aliases, order (of fields), symbols, order of symbols, type name, type documentation.

    `before` and `after` as they are shown; empty: there was none. Of symbols only those that were removed, and those that were added.
    """

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class ColumnChange(Located):
    """Its path is that in the newer schema, or in the older one if the column was removed."""

    kind: ChangeKind
    column: AvroColumn | None = None
    """That was added or removed."""
    full_type: str = ""
    """Its type in words of the lake, with the fields of structures."""
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class SchemaDiff:
    """In the order of the newer schema, and in each structure what was removed at the end. `is_same`: nothing differs, not even what is no column's."""

    changes: tuple[ColumnChange, ...] = ()
    is_same: bool = False
    is_cut: bool = False
    """There are more changes."""

    @property
    def added(self) -> int:
        return self._count(ChangeKind.ADDED)

    @property
    def removed(self) -> int:
        return self._count(ChangeKind.REMOVED)

    @property
    def changed(self) -> int:
        return self._count(ChangeKind.CHANGED)

    def _count(self, kind: ChangeKind) -> int:
        """Columns, without the schema itself."""
        return sum(change.kind == kind and bool(change.path) for change in self.changes)


def schema_diff(old: Any, new: Any) -> SchemaDiff:
    """Of two schemas as JSON. What changed in a structure that is used at several places is said at the first. Raises NotAvro."""
    if _laid_out(old) == _laid_out(new):
        return SchemaDiff(is_same=True)
    comparison = _Comparison()
    comparison.run(tree_of(old), tree_of(new))
    return SchemaDiff(tuple(comparison.changes()), is_cut=comparison.is_cut)


def _laid_out(schema: Any) -> str:
    """Python takes true for 1."""
    return json.dumps(schema, sort_keys=True)


@dataclass(frozen=True)
class _Pair:
    """Two types, or two fields with their types, that stand in each other's place."""

    path: str
    level: int
    old: Node
    new: Node
    old_field: Field | None = None
    new_field: Field | None = None


@dataclass
class _Comparison:
    """Goes down without recursion: types may name each other in chains of thousands."""

    is_cut: bool = False
    _changes: list[ColumnChange] = field(default_factory=list)
    _compared: set[tuple[int, int]] = field(default_factory=set)

    def run(self, old: Node, new: Node) -> None:
        if not (_is_record(old) and _is_record(new)):
            self._note("", [*_type_differences(old, new)])
        waiting: list[Iterator[_Pair]] = [iter([_Pair("", 0, old, new)])]
        while waiting and not self.is_cut:
            pair = next(waiting[-1], None)
            if pair is None:
                waiting.pop()
                continue
            if pair.old_field is not None and pair.new_field is not None:
                self._note(pair.path, [*_field_differences(pair.old_field, pair.new_field)])
            if pair.level <= MAX_LEVELS:
                waiting.append(self._within(pair))
            self.is_cut = self.is_cut or len(self._changes) > MAX_CHANGES or len(self._compared) > _MAX_PAIRS

    def changes(self) -> Iterator[ColumnChange]:
        yield from self._changes[:MAX_CHANGES]

    def _within(self, pair: _Pair) -> Iterator[_Pair]:
        """The pairs of what the two are made of."""
        old, new, path = pair.old, pair.new, pair.path
        if (id(old), id(new)) in self._compared:
            return
        self._compared.add((id(old), id(new)))
        if _is_record(old) and _is_record(new):
            self._note(path, [*_named_differences(old, new, path)])
            yield from self._fields(old, new, path, pair.level)
        elif old.kind == new.kind == "enum":
            self._note(path, [*_named_differences(old, new, path), *_symbol_differences(old, new)])
        elif old.kind == new.kind == "fixed":
            self._note(path, [*_named_differences(old, new, path)])
        elif old.kind == new.kind and old.kind in ("array", "map"):
            yield _Pair(f"{path}[]", pair.level, old.types[0], new.types[0])
        elif "union" in (old.kind, new.kind):
            yield from _branches(pair)

    def _fields(self, old: Node, new: Node, path: str, level: int) -> Iterator[_Pair]:
        twins, names_taken = _twins(old, new)
        self._note(path, [*_order_differences(old, new, twins, names_taken)])
        for each in new.fields:
            inner, twin = path_within(path, each.name), twins.get(each.name)
            if twin is None:
                self._note_column(inner, ChangeKind.ADDED, each)
            else:
                yield _Pair(inner, level + 1, twin.type, each.type, twin, each)
        for each in old.fields:
            if each.name not in names_taken:
                self._note_column(path_within(path, each.name), ChangeKind.REMOVED, each)

    def _note_column(self, path: str, kind: ChangeKind, each: Field) -> None:
        if len(self._changes) <= MAX_CHANGES:
            self._changes.append(ColumnChange(path, kind, column_of(each, path), lake_type_in_full(each.type)))

    def _note(self, path: str, differences: list[Difference]) -> None:
        if not differences:
            return
        latest = self._changes[-1] if self._changes else None
        if latest is not None and latest.path == path and latest.kind == ChangeKind.CHANGED:
            self._changes[-1] = ColumnChange(
                path, latest.kind, differences=tuple(dict.fromkeys((*latest.differences, *differences)))
            )
        else:
            self._changes.append(ColumnChange(path, ChangeKind.CHANGED, differences=tuple(differences)))


def _twins(old: Node, new: Node) -> tuple[dict[str, Field], set[str]]:
    """By name of a newer field the older one that it continues; and the names of those. A name goes before an alias."""
    written = {each.name: each for each in old.fields}
    twins = {each.name: written[each.name] for each in new.fields if each.name in written}
    taken = set(twins)
    for each in new.fields:
        if each.name not in twins:
            former = next((alias for alias in each.aliases if alias in written and alias not in taken), None)
            if former is not None:
                twins[each.name] = written[former]
                taken.add(former)
    return twins, taken


def _order_differences(
    old: Node, new: Node, twins: Mapping[str, Field], taken: Collection[str]
) -> Iterator[Difference]:
    """Of the fields that both have."""
    kept = [each.name for each in new.fields if each.name in twins]
    before = [each.name for each in old.fields if each.name in taken]
    if [twins[name].name for name in kept] != before:
        yield Difference("order", listed(tuple(before)), listed(tuple(kept)))


def _branches(pair: _Pair) -> Iterator[_Pair]:
    """Of which at least one is a union: named types are those of a name or an alias, others those of a kind."""
    older, newer = values_of(pair.old), values_of(pair.new)
    if len(older) == len(newer) == 1:
        yield _Pair(pair.path, pair.level, older[0], newer[0])
        return
    unnamed = {branch.kind: branch for branch in older if not is_named(branch)}
    named = {(branch.kind, short_name(branch)): branch for branch in older if is_named(branch)}
    for branch in newer:
        if is_named(branch):
            twin = next((named[branch.kind, name] for name in _names(branch) if (branch.kind, name) in named), None)
        else:
            twin = unnamed.get(branch.kind)
        if twin is not None:
            most = max(len(older), len(newer))
            yield _Pair(branch_path(pair.path, branch, most), pair.level, twin, branch)


def _names(branch: Node) -> list[str]:
    own = short_name(branch)
    return [own, *sorted(name for name in branch.names if name != own)]


def _field_differences(old: Field, new: Field) -> Iterator[Difference]:
    if old.name != new.name:
        yield Difference("name", shortened(old.name, MAX_NAME), shortened(new.name, MAX_NAME))
    yield from _type_differences(old.type, new.type)
    before, after = (_default_words(each) for each in (old, new))
    if before != after or old.default != new.default:
        yield Difference("default", before, after)
    if old.doc != new.doc:
        yield Difference("documentation", shortened(old.doc, MAX_DOC), shortened(new.doc, MAX_DOC))
    aliases = tuple(alias for alias in new.aliases if alias != old.name)
    if set(aliases) != set(old.aliases):
        yield Difference("aliases", listed(old.aliases), listed(aliases))


def _default_words(each: Field) -> str:
    return json_text(each.default) if each.has_default else ""


def _type_differences(old: Node, new: Node) -> Iterator[Difference]:
    """In words of the lake, or in Avro's where the lake has one for both."""
    for words in (lake_type, avro_type):
        if words(old) != words(new):
            yield Difference("type", _with_null(words(old), old), _with_null(words(new), new))
            return
    if is_nullable(old) != is_nullable(new):
        yield Difference("type", _with_null(lake_type(old), old), _with_null(lake_type(new), new))


def _with_null(words: str, node: Node) -> str:
    return f"{words}, may be null" if is_nullable(node) and words != "null" else words


def _named_differences(old: Node, new: Node, path: str) -> Iterator[Difference]:
    """Of the schema itself it is its own name and documentation, of a column those of its type."""
    of_type = "type " if path else ""
    if old.name != new.name:
        yield Difference(f"{of_type}name", shortened(old.name, MAX_NAME), shortened(new.name, MAX_NAME))
    if old.doc != new.doc:
        yield Difference(f"{of_type}documentation", shortened(old.doc, MAX_DOC), shortened(new.doc, MAX_DOC))


def _symbol_differences(old: Node, new: Node) -> Iterator[Difference]:
    if old.symbols == new.symbols:
        return
    known, after = frozenset(old.symbols), frozenset(new.symbols)
    removed = tuple(symbol for symbol in old.symbols if symbol not in after)
    added = tuple(symbol for symbol in new.symbols if symbol not in known)
    if removed or added:
        yield Difference("symbols", listed(removed), listed(added))
    else:
        yield Difference("order of symbols", listed(old.symbols), listed(new.symbols))


def _is_record(node: Node) -> bool:
    return node.kind in ("record", "error")
