"""What the dialects of the databases that run random queries have beside what all have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """`{0}` in a form stands for a column, `{c}` for a constant of its kind, `{d}` for a day that is written, and `{n}` in
    digits only."""

    name: str
    joins: tuple[str, ...]
    set_operations: tuple[str, ...]
    table_forms: tuple[str, ...]
    """How a table may be written, besides by its name."""
    constants: Mapping[str, tuple[str, ...]]
    wrapped: Mapping[str, tuple[str, ...]]
    """Comparisons of a column that is wrapped."""
    odd_conditions: tuple[str, ...]
    """Over a time, as `{0}`, and constants of it."""
    features: frozenset[str]
    has_text_times: bool = False

    @property
    def forms(self) -> tuple[str, ...]:
        """All that the fuzz sees to."""
        wrapped = [form for forms in self.wrapped.values() for form in forms]
        everything = (
            *self.joins,
            *self.set_operations,
            *self.table_forms,
            *wrapped,
            *self.odd_conditions,
            *sorted(self.features),
        )
        return tuple(dict.fromkeys(everything))


_JOINS = (
    "JOIN",
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "CROSS JOIN",
    ",",
    "NATURAL JOIN",
    "NATURAL LEFT JOIN",
)
_FULL = ("FULL JOIN", "NATURAL FULL JOIN")
_SETS = ("UNION ALL", "UNION", "EXCEPT", "INTERSECT")
_ODD = (
    "NOT {0} > {c}", "{0} <> {c}", "{0} IS NULL", "{0} IS NOT NULL", "NOT ({0} < {c} OR {0} > {c})", "{0} NOT IN ({c}, {c})",
    "{0} NOT BETWEEN {c} AND {c}", "CASE WHEN {0} > {c} THEN 1 ELSE 0 END = 0", "COALESCE({0}, {c}) = {c}", "({0} > {c}) IS NULL",
    "{0} > {c} OR NULL", "NULLIF({0}, {c}) IS NULL", "({0} > {c}) = ({0} < {c})",
)  # fmt: skip
_FEATURES = frozenset(
    {"with", "recursive", "windows", "values", "column aliases", "parentheses", "correlated", "shadowing alias"}
)

DUCKDB = Dialect(
    "duckdb",
    (*_JOINS, *_FULL, "SEMI JOIN", "ANTI JOIN", "ASOF JOIN", "ASOF LEFT JOIN", "POSITIONAL JOIN", "LATERAL"),
    (*_SETS, "EXCEPT ALL", "INTERSECT ALL", "UNION BY NAME"),
    ('"{0}"', "main.{0}", "'{0}'", "{0} TABLESAMPLE reservoir(3 ROWS) REPEATABLE (7)", "(FROM {0})", "(TABLE {0})",
     "memory.main.{0}"),
    {
        "day": ("'{d}'",),
        "time": ("TIMESTAMP '{d} 07:00:00'", "TIMESTAMP '{d}'", "DATE '{d}'", "'{d}'", "'{d}T07:00:00'", "CAST('{d}' AS DATE)",
                 "DATE '{d}' + INTERVAL 1 DAY", "TIMESTAMP '{d} 12:00:00' - INTERVAL '5' HOUR", "'{d} 23:59:59.700'::TIMESTAMP", "'{d} 07:00+05'", "CAST(TIMESTAMP '{d} 07:00:00' AS DATE)"),
        "digits": ("'{n}'", "{n}"), "number": ("{n}", "'{n}'"),
    },
    {
        "day": ("CAST({0} AS DATE) {op} DATE '{d}'", "{0}::TIMESTAMP {op} TIMESTAMP '{d} 07:00:00'", "{0} {op} DATE '{d}'",
                "{0} {op} CAST(DATE '{d}' AS DATE)", "{0} {op} DATE(DATE('{d}'))", "{0} {op} '{d}'::DATE::DATE",
                "{0} {op} CAST(CAST('{d}' AS TIMESTAMP) AS DATE)", "{0} BETWEEN '2026-11-03' AND DATE '{d}'"),
        "time": ("CAST({0} AS DATE) {op} DATE '{d}'", "date_trunc('day', {0}) {op} TIMESTAMP '{d}'", "date_trunc('week', {0}) {op} DATE '{d}'",
                 "{0}::DATE {op} '{d}'", "date_trunc('hour', {0}) {op} TIMESTAMP '{d} 07:00:00'", "{0}::TIMESTAMPTZ {op} TIMESTAMPTZ '{d} 07:00:00+00'",
                 "{0} {op} DATE(DATE '{d}')", "{0} {op} '{d} 00:00:00+0530'", "{0} BETWEEN '{d} 07:00:00' AND DATE '2026-11-06'"),
        "digits": ("{0} BETWEEN '20261103' AND {n}", "{0} IN ('20261103', {n})"), "number": ("{0} BETWEEN 20261103 AND '{n}'",),
    },
    (*_ODD, "{0} IS NOT DISTINCT FROM {c}", "{0} IN [{c}, {c}]", "{0} = ANY (SELECT {c})", "({0}, 1) > ({c}, 2)"),
    _FEATURES | {"QUALIFY", "DISTINCT ON", "USING SAMPLE", "PIVOT", "MATERIALIZED", "other letters", "FROM first", "alias in front"},
)  # fmt: skip
SQLITE = Dialect(
    "sqlite",
    (*_JOINS, *_FULL),
    _SETS,
    ('"{0}"', "main.{0}", "'{0}'", "[{0}]", "`{0}`"),
    {"day": ("'{d}'",), "time": ("'{d}'", "'{d} 07:00:00'", "'{d}T07:00:00'", "'{d}T23:59:59.700'", "date('{d}')", "date(date('{d}'))"),
     "digits": ("'{n}'", "{n}"), "number": ("{n}", "'{n}'")},
    {
        "day": ("date({0}) {op} '{d}'", "CAST({0} AS DATE) {op} CAST('{d}' AS DATE)", "{0} {op} CAST('{d}' AS DATE)",
                "{0} {op} date(date('{d}'))", "{0} BETWEEN '2026-11-03' AND {n}", "+{0} {op} '{d}'"),
        "time": ("date({0}) {op} '{d}'", "date({0}) {op} date('{d}')", "{0} {op} CAST('{d}' AS TIMESTAMP)", "CAST({0} AS DATE) {op} '{d}'",
                 "{0} {op} '20261103'", "date({0}, '+3 days') {op} '{d}'", "datetime({0}) {op} '{d} 07:00:00'", "{0} {op} '{d} 07:00+05'"),
        "digits": ("+{0} {op} {n}", "{0} BETWEEN '20261103' AND {n}", "(+ {0}) {op} '{n}'"),
        "number": ("+{0} {op} '{n}'", "'{n}' {op} + {0}", "{0} BETWEEN 20261103 AND '{n}'", "{0} {op} +{n}"),
    },
    (*_ODD, "{0} IS {c}", "({0} > {c}) = 0", "{0} > {c} IS NULL", "{0} = {c} COLLATE NOCASE", "({0}, 1) > ({c}, 2)", "{0} > {c} > 0"),
    _FEATURES - {"column aliases"} | {"IN name", "MATERIALIZED", "other letters"},
    has_text_times=True,
)  # fmt: skip
POSTGRES = Dialect(
    "postgres",
    (*_JOINS, *_FULL, "LATERAL"),
    (*_SETS, "EXCEPT ALL", "INTERSECT ALL"),
    ('"{0}"', "public.{0}", "ONLY {0}", "{0} TABLESAMPLE system (50) REPEATABLE (7)", "(TABLE {0})"),
    {
        "day": ("'{d}'",),
        "time": ("TIMESTAMP '{d} 07:00:00'", "TIMESTAMP '{d}'", "DATE '{d}'", "'{d}'", "'{d}T07:00:00'", "CAST('{d}' AS DATE)",
                 "DATE '{d}' + INTERVAL '1 day'", "TIMESTAMP '{d} 12:00:00' - INTERVAL '5' HOUR", "'{d} 23:59:59.700'::timestamp", "'{d} 07:00+05'", "CAST(TIMESTAMP '{d} 07:00:00' AS DATE)"),
        "digits": ("'{n}'",), "number": ("{n}", "'{n}'"),
    },
    {
        "day": ("CAST({0} AS DATE) {op} DATE '{d}'", "{0}::timestamp {op} TIMESTAMP '{d} 07:00:00'",
                "CAST({0} AS DATE) {op} CAST(DATE '{d}' AS DATE)", "{0}::date {op} '{d}'::date::date",
                "CAST({0} AS DATE) {op} DATE(DATE('{d}'))", "CAST({0} AS DATE) BETWEEN '2026-11-03' AND DATE '{d}'"),
        "time": ("CAST({0} AS DATE) {op} DATE '{d}'", "date_trunc('day', {0}) {op} TIMESTAMP '{d}'", "date_trunc('week', {0}) {op} DATE '{d}'",
                 "{0}::timestamp(0) {op} TIMESTAMP '{d}'", "{0}::timestamptz {op} TIMESTAMPTZ '{d} 07:00:00+00'",
                 "{0} {op} DATE(DATE '{d}')", "{0} {op} '{d} 00:00:00+0530'", "{0} BETWEEN '{d} 07:00:00' AND DATE '2026-11-06'"),
        "digits": ("{0} {op} '{n}'",), "number": ("{0} BETWEEN 20261103 AND '{n}'", "+{0} {op} '{n}'"),
    },
    (*_ODD, "{0} IS NOT DISTINCT FROM {c}", "{0} BETWEEN SYMMETRIC {c} AND {c}", "{0} = ANY (SELECT {c})", "({0}, 1) > ({c}, 2)",
     "({0} > {c}) IS TRUE"),
    _FEATURES | {"DISTINCT ON", "MATERIALIZED", "other letters"},
)  # fmt: skip
MARIADB = Dialect(
    "mysql",
    (*_JOINS, "STRAIGHT_JOIN"),
    (*_SETS, "EXCEPT ALL", "INTERSECT ALL"),
    ("`{0}`",),
    {
        "day": ("'{d}'",),
        "time": ("TIMESTAMP '{d} 07:00:00'", "DATE '{d}'", "'{d}'", "'{d}T07:00:00'", "CAST('{d}' AS DATE)", "DATE '{d}' + INTERVAL 1 DAY",
                 "TIMESTAMP '{d} 12:00:00' - INTERVAL 5 HOUR", "CAST('{d} 23:59:59.700' AS DATETIME)", "'{d} 07:00+05'",
                 "'{d} 07:00:00+05:00'", "CAST(TIMESTAMP '{d} 07:00:00' AS DATE)"),
        "digits": ("'{n}'", "{n}"), "number": ("{n}", "'{n}'"),
    },
    {
        "day": ("CAST({0} AS DATE) {op} DATE '{d}'", "{0} {op} CAST(DATE '{d}' AS DATE)", "{0} {op} DATE(DATE('{d}'))",
                "{0} BETWEEN '{d}' AND 20261105", "{0} BETWEEN 20261103 AND '{d}'", "{0} BETWEEN '2026-11-03' AND DATE '{d}'",
                "{0} {op} DATE '{d}' - INTERVAL '٣' DAY", "+{0} {op} '{d}'", "{0} IN ('2026-11-03', {n})"),
        "time": ("CAST({0} AS DATE) {op} DATE '{d}'", "DATE({0}) {op} '{d}'", "CAST({0} AS DATETIME) {op} TIMESTAMP '{d} 00:00:00'",
                 "DATE({0}) {op} DATE '{d}'", "{0} {op} '{d} 00:00+0530'", "{0} {op} '{d} 00:00:00+0530'", "{0} {op} DATE('{d} 23:00+0530')",
                 "{0} {op} '{d}T07:00:00Z'", "{0} {op} DATE '{d}' - INTERVAL '٣' DAY", "{0} BETWEEN '{d} 07:00:00' AND 20261105"),
        "digits": ("{0} BETWEEN '20261103' AND {n}", "{0} IN ('20261103', {n})"), "number": ("{0} BETWEEN 20261103 AND '{n}'",),
    },
    (*_ODD, "{0} <=> {c}", "id = 1 XOR {0} > {c}", "({0} > {c}) = 0", "{0} > {c} = 0", "{0} BETWEEN {c} AND {c} = 0", "({0} > {c} || id = 1)",
     "! {0} = {c}"),
    _FEATURES - {"column aliases", "values", "windows"},  # nested windows end MariaDB 10.11 itself (setup_order)
)  # fmt: skip
