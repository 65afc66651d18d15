"""The keys that are in more than one partition of a table: grouped by the engine, or where they are too many found by a Bloom filter.

The filter takes two passes over the columns of the key: the first finds which keys may repeat, the second counts just these,
exactly. Memory is the filter (128 MiB at most) and the candidates; what is only taken for a repetition is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Protocol, runtime_checkable

import numpy as np

from quality.domain.bloom.keys import Hashes, UnsupportedKeyType, encode_key, hash_keys
from quality.domain.bloom.repeats import MAX_CANDIDATES, RepeatFinder, in_slice, slices_for
from quality.domain.language.measures import Measure
from quality.domain.language.values import error
from quality.engines.sql.fused_query import QueryRefused
from quality.engines.sql.measure_sql import (
    MAX_SHOWN_ROWS,
    RowSelection,
    SqlDialect,
    Statement,
    scanned_column,
    shown_column,
    whole_key,
)

SHOWN_COLUMNS = ("rows with this key", "first partition", "last partition")


@runtime_checkable
class StreamingBackend(Protocol):
    """An engine on one machine: more keys than it groups at ease are read in batches."""

    def batches(self, statement: Statement) -> Iterator[Sequence[Sequence[Any]]]:
        """The rows of a statement, some thousands at a time."""


@runtime_checkable
class HashingBackend(Protocol):
    """An engine that hashes keys itself, so that hashes are all that it hands over. Databases do not: each has another hash."""

    def key_hashes(self, measure: Measure, rows: RowSelection) -> Iterator[Hashes]:
        """Of the rows that have a key."""

    def rows_of_hashes(
        self, measure: Measure, rows: RowSelection, partition: str, hashes: Hashes
    ) -> Iterator[Sequence[Sequence[Any]]]:
        """The key and the partition of the rows whose key has one of these hashes of `key_hashes`."""


@dataclass(frozen=True)
class RepeatedKeys:
    """Of `keyed` rows with a key, `keys` keys are in more than one partition, with `repeated` rows beyond their first.

    `named`: some of the keys as (values of the key, rows, first partition, last partition). `at_least`: there are more keys,
    and `repeated` is estimated.
    """

    keyed: int
    keys: int
    repeated: int
    named: Sequence[tuple[Sequence[Any], int, Any, Any]]
    method: str
    at_least: bool = False


def grouped_counts(dialect: SqlDialect, measure: Measure, rows: RowSelection, partition: str) -> Statement:
    """One row: the rows that have a key, the keys in more than one partition, their rows beyond the first of each."""
    groups = _groups(dialect, measure, rows, partition)
    several = "CASE WHEN lo <> hi THEN {} ELSE 0 END"
    text = (
        f"SELECT COALESCE(SUM(n), 0), COALESCE(SUM({several.format('1')}), 0), "  # noqa: S608  # quoted names only
        f"COALESCE(SUM({several.format('n - 1')}), 0) FROM ({groups}) AS counted"
    )
    return Statement(text, {**rows.table.parameters, **rows.parameters})


def grouped_names(dialect: SqlDialect, measure: Measure, rows: RowSelection, partition: str) -> Statement:
    """Some of the keys, those with most rows first, as they are shown."""
    groups = _groups(dialect, measure, rows, partition)
    shown = ", ".join(
        f"{shown_column(f'k{place}', rows.columns[name])} AS s{place}" for place, name in enumerate(measure.columns)
    )
    text = (
        f"SELECT {shown}, n, lo, hi FROM ({groups}) AS counted WHERE lo <> hi ORDER BY n DESC LIMIT {MAX_SHOWN_ROWS:d}"  # noqa: S608
    )
    return Statement(text, {**rows.table.parameters, **rows.parameters})


def _groups(dialect: SqlDialect, measure: Measure, rows: RowSelection, partition: str) -> str:
    names = ", ".join(f"k{place}" for place in range(len(measure.columns)))
    keyed = keyed_rows(dialect, measure, rows, partition)
    return f"SELECT {names}, COUNT(*) AS n, MIN(p) AS lo, MAX(p) AS hi FROM ({keyed}) AS keyed GROUP BY {names}"  # noqa: S608


def keyed_rows(dialect: SqlDialect, measure: Measure, rows: RowSelection, partition: str) -> str:
    """The columns k0, k1, ... of the key and the partition p of each row that has a key."""
    columns = [scanned_column(dialect, name, rows.columns) for name in measure.columns]
    named = ", ".join(f"{column} AS k{place}" for place, column in enumerate(columns))
    return f"SELECT {named}, {partition} AS p FROM {rows.table.text} AS scanned WHERE {whole_key(columns)}"  # noqa: S608


def find_repeated_keys(
    backend: StreamingBackend, dialect: SqlDialect, measure: Measure, rows: RowSelection, partition: str, total: int
) -> RepeatedKeys:
    """By the Bloom filter; `total` is how many rows there are. Raises QueryRefused."""
    slices, counted_keys = slices_for(total), _Counted()
    for number in range(slices):
        finder = RepeatFinder(total // slices)
        for hashes in _hashes(backend, dialect, measure, rows):
            counted_keys.keyed += len(hashes) if number == 0 else 0
            finder.add(in_slice(hashes, number, slices))
        counted_keys.again += finder.again
        counted_keys.is_cut |= finder.is_cut
        if len(finder.candidates):
            _count_candidates(counted_keys, backend, dialect, measure, rows, partition, finder.candidates)
    return counted_keys.result()


class _Counted:
    """The rows of the candidates, by key."""

    def __init__(self) -> None:
        self.keyed = self.again = 0
        self.is_cut = False
        self._keys: dict[tuple[Any, ...], tuple[int, Any, Any]] = {}

    def add(self, batch: Sequence[Sequence[Any]]) -> None:
        for *values, partition in batch:
            key = tuple(values)
            count, first, last = self._keys.get(key, (0, partition, partition))
            if partition is not None:
                first = partition if first is None else min(first, partition)
                last = partition if last is None else max(last, partition)
            self._keys[key] = (count + 1, first, last)

    def result(self) -> RepeatedKeys:
        """Raises QueryRefused where so many keys repeat within partitions that those of several are not found among them."""
        several = {key: counted for key, counted in self._keys.items() if counted[1] != counted[2]}
        most = sorted(several.items(), key=lambda item: -item[1][0])[:MAX_SHOWN_ROWS]
        repeated = sum(count - 1 for count, _, _ in several.values())
        if self.is_cut:
            if not repeated:
                raise QueryRefused(
                    error(
                        f"more than {MAX_CANDIDATES:,} keys repeat within their partitions: mend these first (duplicates)"
                    )
                )
            counted_again = sum(count - 1 for count, _, _ in self._keys.values())
            repeated = max(repeated, self.again * repeated // counted_again)
        named = [(key, *counted) for key, counted in most]
        return RepeatedKeys(self.keyed, len(several), repeated, named, "bloom", at_least=self.is_cut)


def _hashes(backend: StreamingBackend, dialect: SqlDialect, measure: Measure, rows: RowSelection) -> Iterator[Hashes]:
    if isinstance(backend, HashingBackend):
        yield from backend.key_hashes(measure, rows)
        return
    text = keyed_rows(dialect, measure, rows, "NULL")
    for batch in backend.batches(Statement(text, {**rows.table.parameters, **rows.parameters})):
        yield _hash_rows([row[:-1] for row in batch], measure)


def _hash_rows(keys: Sequence[Sequence[Any]], measure: Measure) -> Hashes:
    try:
        return hash_keys([encode_key(map(_exact, key), measure.columns) for key in keys])
    except UnsupportedKeyType as unfit:
        raise QueryRefused(error(str(unfit))) from unfit


def _exact(value: Any) -> Any:
    """SQLite hands decimals over as doubles; within one table these are written alike."""
    if not isinstance(value, float):
        return value
    return Decimal(repr(value)) if isfinite(value) else repr(value)


def _count_candidates(
    counted_keys: _Counted,
    backend: StreamingBackend,
    dialect: SqlDialect,
    measure: Measure,
    rows: RowSelection,
    partition: str,
    candidates: Hashes,
) -> None:
    if isinstance(backend, HashingBackend):
        for batch in backend.rows_of_hashes(measure, rows, partition, candidates):
            counted_keys.add(batch)
        return
    text = keyed_rows(dialect, measure, rows, partition)
    for batch in backend.batches(Statement(text, {**rows.table.parameters, **rows.parameters})):
        hashes = _hash_rows([row[:-1] for row in batch], measure)
        counted_keys.add([batch[place] for place in np.flatnonzero(np.isin(hashes, candidates)).tolist()])


def as_answer(
    repeated: RepeatedKeys, columns: Sequence[str], named: Sequence[Sequence[str | None]]
) -> Mapping[str | None, Any]:
    """What the measure answers; `named` are the keys as texts."""
    return {
        "keyed": repeated.keyed,
        "keys": repeated.keys,
        "repeated": repeated.repeated,
        "columns": [*columns, *SHOWN_COLUMNS],
        "rows": named,
        "report": {"searched": repeated.method, "keys": repeated.keys}
        | ({"at_least": True} if repeated.at_least else {}),
    }
