"""Keys and rows as databases write and hash them themselves: the texts of `quality.domain.bloom.keys`, and 64 bits of their MD5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from quality.domain.bloom.keys import NULL_PART
from quality.domain.difference.agreement import ColumnForm
from quality.domain.difference.sums import KEY_SHIFT, ROW_MASK
from quality.engines.backends.database_dialects import column_type_of
from quality.engines.scans.column_types import ColumnType
from quality.engines.scans.row_endpoint import MAX_TEXT

Text: TypeAlias = sa.ColumnElement[Any]
Number: TypeAlias = sa.ColumnElement[Any]

_WRITTEN = frozenset(ColumnType) - {ColumnType.FLOAT, ColumnType.NESTED, ColumnType.OTHER}


def text_form(column: sa.Column[Any]) -> ColumnForm:
    """What a column is here, and whether its values are written alike everywhere."""
    kind = column_type_of(column.type)
    if isinstance(column.type, sa.Uuid | sa.Enum):
        return ColumnForm(ColumnType.TEXT, has_text=True)
    return ColumnForm(str(column.type) if kind is ColumnType.OTHER else kind, has_text=kind in _WRITTEN)


@dataclass(frozen=True)
class HashWords:
    """Two hashes in halves of 32 bits, which no sum of a database runs over."""

    k_high: Number
    k_low: Number
    r_high: Number
    r_low: Number

    def prefix(self, depth: int) -> Number:
        return self.k_high.op(">>")(sa.literal_column(str(32 - depth)))

    def key_bits(self) -> Number:
        return self.k_high * sa.literal_column(str(1 << (32 - KEY_SHIFT))) + self.k_low.op(">>")(
            sa.literal_column(str(KEY_SHIFT))
        )

    def terms(self) -> tuple[Number, ...]:
        product = self.key_bits() * self.r_low.op("&")(sa.literal_column(str(ROW_MASK)))
        return self.r_high, self.r_low, product


class DatabaseHashes(ABC):
    """How one database writes values and hashes texts."""

    @abstractmethod
    def text(self, column: sa.Column[Any], value: Text) -> Text:
        """A value that is not null, as every engine writes it."""

    @abstractmethod
    def byte_length(self, text: Text) -> Number: ...

    @abstractmethod
    def half(self, digest: Text, start: int) -> Number:
        """Eight hexadecimal digits of a digest from `start` (1 is the first) as a number."""

    @abstractmethod
    def fenced(self, statement: sa.Select[Any]) -> sa.Subquery:
        """A subquery whose expressions are computed once, where the database would do it at each mention."""

    def md5(self, text: Text) -> Text:
        return sa.func.md5(text)

    def key_text(self, table: sa.Table, names: Sequence[str]) -> Text:
        return self.concatenated(table, {name: table.columns[name] for name in names})

    def concatenated(self, table: sa.Table, values: Mapping[str, Text]) -> Text:
        """The bytes of a key of these columns."""
        return sa.func.concat("", *(self._part(table.columns[name], value) for name, value in values.items()))

    def _part(self, column: sa.Column[Any], value: Text) -> Text:
        text = self.text(column, value)
        written = sa.func.concat(self.byte_length(text), ":", text, ",")
        return sa.case((value.is_(None), NULL_PART), else_=written)

    def shown(self, column: sa.Column[Any], value: Text) -> Text:
        """A long text by its beginning, its length and its MD5."""
        text = self.text(column, value)
        length = sa.func.char_length(text)
        short = sa.func.concat(
            sa.func.left(text, MAX_TEXT // 2), "... (", length, " characters, md5 ", self.md5(text), ")"
        )
        return sa.case((value.is_(None), sa.null()), (length > MAX_TEXT, short), else_=text)

    def words(self, key: Text, row: Text) -> HashWords:
        return HashWords(self.half(key, 1), self.half(key, 9), self.half(row, 1), self.half(row, 9))


def _without_zeros(text: Text) -> Text:
    """Of a number with a point, without the zeros at its end."""
    return sa.case((text.contains("."), sa.func.regexp_replace(text, "[.]?0+$", "")), else_=text)


class PostgreSqlHashes(DatabaseHashes):
    def text(self, column: sa.Column[Any], value: Text) -> Text:
        kind, plain = column_type_of(column.type), sa.cast(value, sa.Text())
        match kind:
            case ColumnType.BOOLEAN:
                return sa.case((value.is_(True), "true"), else_="false")
            case ColumnType.DECIMAL:
                return _without_zeros(plain)
            case ColumnType.LOCAL | ColumnType.INSTANT:
                # Infinity has no form; it stays what it is called.
                return sa.func.coalesce(sa.func.to_char(value, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), plain)
            case ColumnType.BINARY:
                return sa.func.encode(value, "hex")
            case _:
                return plain

    def byte_length(self, text: Text) -> Number:
        return sa.func.octet_length(text)

    def half(self, digest: Text, start: int) -> Number:
        digits = sa.literal_column("'x'").concat(sa.func.substr(digest, start, 8))
        return sa.cast(sa.cast(digits, postgresql.BIT(32)), sa.BigInteger())

    def fenced(self, statement: sa.Select[Any]) -> sa.Subquery:
        return statement.offset(0).subquery()


class MySqlHashes(DatabaseHashes):
    def text(self, column: sa.Column[Any], value: Text) -> Text:
        kind, plain = column_type_of(column.type), sa.cast(value, sa.CHAR())
        match kind:
            case ColumnType.BOOLEAN:
                return sa.case((value != sa.literal_column("0"), "true"), else_="false")
            case ColumnType.DECIMAL:
                return _without_zeros(plain)
            case ColumnType.LOCAL | ColumnType.INSTANT:
                return sa.func.date_format(value, "%Y-%m-%dT%H:%i:%s.%fZ")
            case ColumnType.BINARY:
                return sa.func.lower(sa.func.hex(value))
            case ColumnType.TEXT | ColumnType.OTHER:
                return sa.func.convert(value.op("USING")(sa.literal_column("utf8mb4")))
            case _:
                return plain

    def byte_length(self, text: Text) -> Number:
        return sa.func.length(text)

    def half(self, digest: Text, start: int) -> Number:
        return sa.cast(sa.func.conv(sa.func.substr(digest, start, 8), 16, 10), mysql.BIGINT(unsigned=True))

    def fenced(self, statement: sa.Select[Any]) -> sa.Subquery:
        return statement.subquery()


DATABASE_HASHES: Mapping[str, DatabaseHashes] = {
    "postgresql": PostgreSqlHashes(),
    "mysql": MySqlHashes(),
    "mariadb": MySqlHashes(),
}
