"""A side of an exact comparison in the lake or in files: DuckDB hashes the rows and adds up their cells, with no JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import duckdb
import numpy as np

from lakehub.catalog.metadata.tables import Files, HudiCopy
from lakehub.kernel.lake_names import OWN_PREFIXES
from quality.domain.difference.agreement import Agreement, ColumnForm, HashedColumn
from quality.domain.difference.kept_sums import MAX_KEPT_BITS, KeptSums, WithinCells
from quality.domain.difference.reconcile import WantedRows, depth_for
from quality.domain.difference.records import Row
from quality.domain.difference.sums import KEY_SHIFT, ROW_MASK, CellSums, Hashes
from quality.engines.backends.duckdb_parts import PartReader, open_part, part_sql, value_sql
from quality.engines.backends.duckdb_sql import quote_name
from quality.engines.scans.parts import Part
from quality.engines.scans.row_endpoint import MAX_ROWS_OF_KEY, MAX_TEXT
from quality.engines.scans.scan import Limits

_WORD_MASK = 2**64 - 1
_SMALL_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


def open_row_endpoint(table: HudiCopy | Files, part: Part, limits: Limits) -> DuckDbRows:
    """Raises CannotRead where there is no such table."""
    return DuckDbRows(open_part(table, part, limits))


class DuckDbRows:
    native_hash = f"duckdb-{duckdb.__version__}"

    def __init__(self, part: PartReader) -> None:
        self._part = part

    def columns(self) -> Mapping[str, ColumnForm] | None:
        with self._part.rows() as rows:
            if rows is None:
                return None
            kinds = zip(rows.columns, map(str, rows.types), strict=True)
            return {name: _form(name, kind) for name, kind in kinds if not name.startswith(OWN_PREFIXES)}

    def count(self) -> int:
        with self._part.rows() as rows:
            return 0 if rows is None else len(rows)

    def side(self, agreement: Agreement, rows: int) -> DuckDbSide:
        return DuckDbSide(self._part, agreement, depth_for(rows, MAX_KEPT_BITS))


class DuckDbSide(KeptSums):
    def __init__(self, part: PartReader, agreement: Agreement, depth: int) -> None:
        super().__init__(self._scan_sums, depth)
        self._part = part
        self._agreement = agreement

    def _scan_sums(self, depth: int, within: WithinCells | None) -> CellSums:
        with self._part.rows() as rows:
            if rows is None:
                return CellSums.none(depth)
            kinds = _kinds(rows)
            keyed = rows.project(f"{self._row_hash(kinds)} AS r, {self._key_hash(kinds)} AS k")
            chosen = keyed if within is None else keyed.filter(_is_among(f"k >> {64 - within.depth}", within.prefixes))
            product = f"(k >> {KEY_SHIFT}) * (r & {ROW_MASK})"
            terms = chosen.project(f"k >> {64 - depth} AS prefix, r, {product} AS p")
            words = ", ".join(f"(sum({name}) & {_WORD_MASK})::UBIGINT AS {name}_sum" for name in ("r", "p"))
            sums = terms.aggregate(f"prefix, count(*)::UBIGINT AS n, {words}", "prefix").fetchnumpy()
        prefixes, *columns = (np.asarray(sums[name], np.uint64) for name in ("prefix", "n", "r_sum", "p_sum"))
        return CellSums(depth, prefixes, np.stack(columns, axis=1)).merged()

    def rows(self, wanted: WantedRows) -> Sequence[Row]:
        with self._part.rows() as rows:
            if rows is None:
                return ()
            kinds = _kinds(rows)
            hashed = rows.project(f"*, {self._key_hash(kinds)} AS lakehub_k")
            chosen = hashed.filter(_is_wanted(wanted))
            texts = (f"{_shown_sql(column, kinds)} AS c{place}" for place, column in enumerate(self._agreement.columns))
            written = chosen.project(f"lakehub_k AS k, {self._row_hash(kinds)} AS r, {', '.join(texts)}")
            shown = [f"any_value(c{place})" for place in range(len(self._agreement.columns))]
            counted = written.aggregate(f"k, r, count(*) AS n, {', '.join(shown)}", "k, r")
            bounded = counted.project("*, row_number() OVER (PARTITION BY k ORDER BY r) AS place")
            fetched = bounded.filter(f"place <= {MAX_ROWS_OF_KEY}").fetchall()
        return [Row(key, row, tuple(values[:-1]), count) for key, row, count, *values in fetched]

    def _key_hash(self, kinds: Mapping[str, str]) -> str:
        names = self._agreement.key
        return self._hash([column for column in self._agreement.columns if column.name in names], kinds)

    def _row_hash(self, kinds: Mapping[str, str]) -> str:
        return self._hash(self._agreement.columns, kinds)

    def _hash(self, columns: Iterable[HashedColumn], kinds: Mapping[str, str]) -> str:
        if self._agreement.native:
            return f"hash({', '.join(_value_sql(column, kinds) for column in columns)})"
        texts = ", ".join(part_sql(column.name, _text_sql(column.name, kinds)) for column in columns)
        return f"('0x' || left(md5(concat({texts})), 16))::UBIGINT"


def _kinds(rows: duckdb.DuckDBPyRelation) -> dict[str, str]:
    return dict(zip(rows.columns, map(str, rows.types), strict=True))


def _form(name: str, kind: str) -> ColumnForm:
    written = value_sql(quote_name(name), kind) is not None
    return ColumnForm("BIGINT" if kind in _SMALL_INTEGERS else kind, has_text=written)


def _value_sql(column: HashedColumn, kinds: Mapping[str, str]) -> str:
    """What DuckDB's own hash is applied to: integers of all widths as one, as they have one form."""
    if column.by_text:
        return _text_sql(column.name, kinds)
    name = quote_name(column.name)
    return f"{name}::BIGINT" if kinds[column.name] in _SMALL_INTEGERS else name


def _text_sql(name: str, kinds: Mapping[str, str]) -> str:
    return value_sql(quote_name(name), kinds[name]) or f"{quote_name(name)}::VARCHAR"


def _shown_sql(column: HashedColumn, kinds: Mapping[str, str]) -> str:
    """A long text is shown by its beginning, its length and its MD5: that says whether it differs."""
    text = _text_sql(column.name, kinds)
    short = f"concat(left({text}, {MAX_TEXT // 2}), '... (', length({text}), ' characters, md5 ', md5({text}), ')')"
    return f"CASE WHEN length({text}) > {MAX_TEXT} THEN {short} ELSE {text} END"


def _is_wanted(wanted: WantedRows) -> str:
    choices = []
    if len(wanted.key_bits):
        choices.append(_is_among(f"lakehub_k >> {KEY_SHIFT}", wanted.key_bits))
    if len(wanted.prefixes):
        choices.append(_is_among(f"lakehub_k >> {64 - wanted.depth}", wanted.prefixes))
    return " OR ".join(choices)


def _is_among(number: str, values: Hashes) -> str:
    """One text of all the numbers: to parse each of them takes longer than to read the rows."""
    listed = ",".join(map(str, values.tolist()))
    return f"({number}) IN (SELECT unnest(string_split('{listed}', ',')::UBIGINT[]))"
