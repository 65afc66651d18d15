"""The gate over SQL misses no table and no row, of random queries that DuckDB and SQLite run.

`LAKEHUB_FUZZ_QUERIES` says how many, `LAKEHUB_FUZZ_SEED` which; without it they are new each time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

from incidents.domain.gate import sql_names, sql_times
from tests.contracts.random_queries.engines import EMBEDDED, DuckDb, Engine, Sqlite
from tests.contracts.random_queries.fuzz import Overlooked, check_worth, fuzz, number_of_queries, random_seed

SHARES = {DuckDb: 0.4, Sqlite: 0.6}
"""DuckDB takes three times as long to plan a query."""


@pytest.mark.parametrize("engine", EMBEDDED)
def test_rows_that_are_not_claimed_change_no_answer(engine: type[Engine]) -> None:
    outcome = fuzz(engine, seed=random_seed(), queries=int(number_of_queries(1_500) * SHARES[engine]))
    check_worth(outcome, engine.dialect)


# The fuzz is tested: gates with a hole

_meaning = sql_names._meaning


def _only_the_first(pieces: Any) -> Any:
    return tuple(pieces)[:1]


def _with_wins(*place: Any) -> Any:
    meaning = _meaning(*place)
    return sql_names._Meaning.WITH if meaning is sql_names._Meaning.EITHER else meaning


_by_name, _by_form = sql_times._Bounds._by_name, sql_times._Bounds._by_form


def _ends_early(self: Any, kind: Any, moment: Any, width: Any) -> Any:
    if moment.is_name and moment.is_typed:
        moment = replace(moment, latest=moment.earliest - 2 * sql_times._UNIT_WIDTHS["day"])
    return _by_name(self, kind, moment, width)


def _of_any_type(self: Any, kind: Any, left: Any, right: Any, form: Any) -> Any:
    self._column = replace(self._column, has_numbers=not getattr(right.unnest(), "is_string", True))
    return _by_form(self, kind, left, right, form)


PLANTED: dict[str, tuple[type[Engine], dict[str, Any], tuple[str, ...]]] = {
    "every join pairs rows alone": (
        DuckDb,
        {"sql_bounds._is_plain_join": lambda join: True},
        ("ASOF JOIN", "ASOF LEFT JOIN", "POSITIONAL JOIN"),
    ),
    "a sample is taken behind the WHERE": (
        DuckDb,
        {"sql_bounds._has_only": lambda node, parts: True, "sql_bounds.QueryContext.draws_rows": False},
        ("USING SAMPLE", "{0} TABLESAMPLE reservoir(3 ROWS) REPEATABLE (7)"),
    ),
    "IN reads no table": (
        Sqlite,
        {"sql_names._TABLE_AFTER_IN": frozenset(), "sql_reads.unaccounted_names": lambda *text: frozenset()},
        ("IN name",),
    ),
    "a WITH of its own name reads itself": (
        DuckDb,
        {
            "sql_names._is_recursion": lambda place, cte: True,
            "sql_names._SELF_RECURSIVE": frozenset({"duckdb"}),
            "sql_names._meaning": _with_wins,
        },
        ("with",),
    ),
    "of an OR only one side counts": (Sqlite, {"sql_times.union": _only_the_first}, ("{0} > {c} OR NULL",)),
    "SQLite casts a time to a time": (
        Sqlite,
        {
            "sql_times._Bounds._is_cast_to_time": lambda self, node: (
                isinstance(node, exp.Cast) and node.to.this in sql_times._TIMES
            )
        },
        ("{0} {op} CAST('{d}' AS TIMESTAMP)", "CAST({0} AS DATE) {op} '{d}'"),
    ),
    "a range ends before a date that is cast twice": (
        Sqlite,
        {"sql_times._Bounds._by_name": _ends_early},
        ("{0} {op} date(date('{d}'))",),
    ),
    "SQLite compares every column by its type": (
        Sqlite,
        {"sql_times._Bounds._by_form": _of_any_type, "sql_reads.has_unary_plus": lambda *text: False},
        ("+{0} {op} {n}", "+{0} {op} '{n}'"),
    ),
    "the ON of an outer join takes rows of both sides": (
        DuckDb,
        {"sql_bounds._FILTERED_SIDE": {(side, ""): "both" for side in ("", "LEFT", "RIGHT", "FULL")}},
        ("LEFT JOIN", "FULL JOIN"),
    ),
}


@pytest.mark.parametrize("hole", PLANTED)
def test_the_fuzz_finds_a_gate_with_a_hole(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, patches, favourites = PLANTED[hole]
    for place, planted in patches.items():
        monkeypatch.setattr(f"incidents.domain.gate.{place}", planted)
    with pytest.raises(Overlooked) as overlooked:
        fuzz(engine, seed=random_seed(), queries=20_000, favourites=favourites)
    print(f"{hole}: {str(overlooked.value).partition(',')[0]}")
