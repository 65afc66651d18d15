"""Statements that change a table while everybody writes to it, and what the lake keeps of columns that the source has no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.soak.capture.accounting.binlog import Changes, Gap, Key, sequence_of
from tests.soak.capture.source import CapturedSource
from tests.soak.capture.tables import EMPTIED_TABLE, TABLES, Table

_BEYOND_INT = 5_000_000_000
_FIRST, _OTHER = "added", "renamed"
"""Of a column, by turns."""


@dataclass
class LostColumn:
    """Dropped, or called otherwise now. Rows that were not written since have in the lake what they had then, all others null (docs/change-capture.md).

    `sequence`: of the transaction that did it. `values`: by key, as they were then."""

    table: str
    name: str
    sequence: int
    values: Mapping[Key, Any]
    written: set[Key] = field(default_factory=set)
    is_loaded: bool = False
    """The table was loaded then, or since: a row that was read before still has its value, one that was read after has none."""

    def note_written(self, changes: Mapping[str, Changes]) -> None:
        self.written |= {change.key for change in changes.get(self.table, ()) if change.sequence > self.sequence}

    def may_be(self, key: Key, value: Any) -> bool:
        left = None if key in self.written else self.values.get(key)
        return value == left or (value is None and self.is_loaded)


class Alterations:
    """Each returns what it has done."""

    def __init__(self, source: CapturedSource, random: Random, gaps: Mapping[str, Gap]) -> None:
        """`gaps`: by table, of those that have another key now."""
        self._source, self._random, self._gaps, self._number = source, random, gaps, 0
        self.lost: list[LostColumn] = []
        self.loading: set[str] = set()
        """Tables that are loaded in this round."""

    @property
    def all(self) -> tuple[Callable[[], str], ...]:
        return self.add, self.rename, self.drop, self.widen, self.resize, self.truncate, self.remake

    def note_load(self, table: str) -> None:
        self.loading.add(table)
        for lost in self.lost:
            lost.is_loaded |= lost.table == table

    def note_written(self, changes: Mapping[str, Changes]) -> None:
        for lost in self.lost:
            lost.note_written(changes)

    def lost_of(self, table: Table) -> dict[str, LostColumn]:
        return {lost.name: lost for lost in self.lost if lost.table == table.name}

    def add(self) -> str:
        """The writers' statements name no columns, so it is invisible to them."""
        self._number += 1
        table, name = self._random.choice(TABLES).name, f"{_FIRST}_{self._number}"
        self._source.execute(
            f"ALTER TABLE {table} ADD {name} int INVISIBLE DEFAULT NULL", f"UPDATE {table} SET {name} = 7 LIMIT 90"
        )
        self._source.extra[table] = {**self._source.extra[table], name: "int"}
        return f"{table} gets {name}"

    def rename(self) -> str:
        """To a name that it may have had before."""
        return self._of_an_extra_column(self._rename) or self.add()

    def drop(self) -> str:
        return self._of_an_extra_column(self._drop) or self.add()

    def widen(self) -> str:
        return self._of_an_extra_column(self._widen) or self.add()

    def resize(self) -> str:
        """There and back: what is stored fits both."""
        table = self._random.choice([table for table in TABLES if table.sizes])
        name, types = self._random.choice([*table.sizes.items()])
        type_ = self._random.choice(types)
        self._source.execute(f"ALTER TABLE {table.name} MODIFY {name} {type_}")
        return f"{table.name}.{name} becomes {type_.split()[0]}"

    def truncate(self) -> str:
        self._source.execute(f"TRUNCATE {EMPTIED_TABLE.name}")
        return f"{EMPTIED_TABLE.name} is emptied"

    def remake(self) -> str:
        """A table that the others find gone for a moment. It has its first columns again, and what it has is written after that."""
        table = EMPTIED_TABLE
        if table.name in self._gaps:
            return ""
        create, rows = f"CREATE TABLE {table.name} ({table.create})", range(0, table.numbers, 5)
        statements = self._random.choice(
            ([f"DROP TABLE {table.name}", create], [create.replace("CREATE", "CREATE OR REPLACE")])
        )
        with self._source.session() as cursor:
            gone, self._source.extra[table.name] = self._source.extra[table.name], {}
            for statement in statements:
                cursor.execute(statement)
            sequence = last_transaction(cursor)
            cursor.execute(
                f"INSERT IGNORE INTO {table.name} VALUES {', '.join(f'({table.row(each, self._random)})' for each in rows)}"
            )
        is_loaded = table.name in self.loading
        self.lost += [LostColumn(table.name, name, sequence, {}, is_loaded=is_loaded) for name in gone]
        return f"{table.name} is made again"

    def _of_an_extra_column(self, alter: Callable[[Table, str], str]) -> str:
        columns = [(table, name) for table in TABLES for name in self._source.extra[table.name]]
        return alter(*self._random.choice(columns)) if columns else ""

    def _rename(self, table: Table, name: str) -> str:
        kind, _, number = name.partition("_")
        new = f"{_OTHER if kind == _FIRST else _FIRST}_{number}"
        self._lose(table, name, f"ALTER TABLE {table.name} RENAME COLUMN {name} TO {new}")
        # It has a value in each row again.
        self.lost = [lost for lost in self.lost if (lost.table, lost.name) != (table.name, new)]
        self._source.extra[table.name] |= {new: self._source.extra[table.name].pop(name)}
        return f"{table.name}.{name} becomes {new}"

    def _drop(self, table: Table, name: str) -> str:
        self._lose(table, name, f"ALTER TABLE {table.name} DROP COLUMN {name}")
        self._source.extra[table.name].pop(name)
        return f"{table.name} loses {name}"

    def _widen(self, table: Table, name: str) -> str:
        self._source.execute(
            f"ALTER TABLE {table.name} MODIFY {name} bigint INVISIBLE DEFAULT NULL",
            f"UPDATE {table.name} SET {name} = {_BEYOND_INT} LIMIT 9",
        )
        self._source.extra[table.name] |= {name: "bigint"}
        return f"{table.name}.{name} becomes bigint"

    def _lose(self, table: Table, name: str, statement: str) -> None:
        """Nobody writes between the look at the values and the statement."""
        with self._source.session() as cursor:
            cursor.execute(f"LOCK TABLES {table.name} WRITE")
            cursor.execute(f"SELECT {', '.join(table.key)}, {name} FROM {table.name}")
            values = {tuple(map(str, key)): value for *key, value in cursor.fetchall()}
            cursor.execute(statement)
            sequence = last_transaction(cursor)
            cursor.execute("UNLOCK TABLES")
        self.lost.append(LostColumn(table.name, name, sequence, values, is_loaded=table.name in self.loading))


def last_transaction(cursor: Any) -> int:
    """The number of the one that this session has made last."""
    cursor.execute("SELECT @@last_gtid")
    return sequence_of(cursor.fetchall()[0][0])
