"""Texts that look for a way around the check of people's SQL, drawn at random.

`PLAIN` has a query for each part of SQL that may be used, and `function_calls` calls of each function. A hostile text is one of
them, or two spliced, in which something became a name, a type, a unit or a piece of SQL that an attacker would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from random import Random

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakehub.user_sql.allowed_functions import PARSED_FUNCTIONS
from lakehub.user_sql.sql_text import PARSER_ERRORS

DIALECTS = ("duckdb", "postgres", "mysql", "sqlite", "spark", "trino", "hive", "snowflake", "bigquery")
TABLES = ("this", "weather")

_PLAIN = r"""
SELECT a FROM this UNION SELECT b FROM weather
SELECT a FROM this INTERSECT SELECT b FROM this
SELECT a FROM this EXCEPT SELECT b FROM this
SELECT s.a FROM (SELECT a FROM this) AS s
WITH w AS (SELECT a FROM this), v AS (SELECT a FROM w) SELECT a FROM w WHERE a IN (SELECT a FROM v)
WITH RECURSIVE w AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM w WHERE a < 3) SELECT a FROM w, this
SELECT this.a FROM this JOIN weather USING (a)
SELECT this.a FROM this LEFT JOIN weather AS w ON this.a = w.a
SELECT a, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM this
SELECT a FROM this WHERE a = 1 GROUP BY a HAVING MAX(a) > 1 ORDER BY a LIMIT 1 OFFSET 2
SELECT a FROM this QUALIFY ROW_NUMBER() OVER (ORDER BY b) = 1
SELECT a FROM this FETCH FIRST 1 ROWS ONLY
SELECT DISTINCT a FROM this GROUP BY CUBE (a, b)
SELECT a FROM this GROUP BY ROLLUP (a, b)
SELECT a FROM this GROUP BY GROUPING SETS ((a, b), (a))
SELECT v.a FROM (VALUES (1, 2)) AS v(a, b)
SELECT COUNT(a) FILTER (WHERE b > 1) FROM this
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) FROM this
SELECT FIRST_VALUE(a IGNORE NULLS) OVER (ORDER BY b) FROM this
SELECT FIRST_VALUE(a RESPECT NULLS) OVER (ORDER BY b) FROM this
SELECT EXPLODE(a) AS (c, d) FROM this
SELECT COUNT(*), COUNT(DISTINCT a) FROM this
SELECT INTERVAL '1' DAY FROM this
SELECT DATE_TRUNC('month', a), EXTRACT(DAY FROM a) FROM this
SELECT a.b.c.d.e FROM this
SELECT a[1], a[1:2] FROM this
SELECT N'x', TRUE, FALSE, NULL, 1.5e3, 'it''s' FROM this
SELECT a FROM this WHERE a >= :start AND a < :end
SELECT a FROM this WHERE a >= @start
SELECT a FROM this WHERE a >= $start
SELECT CAST(a AS DECIMAL(10, 2)), CAST(b AS VARCHAR) FROM this
SELECT CAST(a AS STRUCT(x INT, y VARCHAR)) FROM this
SELECT CAST(a AS STRUCT<x: INT, y: STRING>) FROM this
SELECT LIST_CONTAINS(a, x -> x + 1) FROM this
SELECT MAKE_INTERVAL(days => 1) FROM this
SELECT LEN(k := 1) FROM this
SELECT {'k': a} FROM this
SELECT a AT TIME ZONE 'UTC' FROM this
SELECT a FROM this WHERE a LIKE 'x' ESCAPE '!'
SELECT a FROM this WHERE a ILIKE 'x' OR a SIMILAR TO 'y' OR a GLOB 'z'
SELECT a FROM this WHERE NOT a BETWEEN 1 AND 2 AND a IN (1, 2) AND a IS NULL
SELECT a FROM this WHERE a = 1 OR a <> 1 OR a > 1 OR a >= 1 OR a < 1 OR a <= 1
SELECT a IS NOT DISTINCT FROM b, a IS DISTINCT FROM b FROM this
SELECT a FROM this WHERE a = ANY(SELECT b FROM weather) OR a = ALL(SELECT b FROM weather)
SELECT a FROM this WHERE EXISTS(SELECT 1 FROM weather AS w WHERE w.a = this.a)
SELECT (a + 1 - 2) * 3 / 4 % 5, -a, a || 'x' FROM this
SELECT a // 2 FROM this
SELECT a & 1, a | 2, ~a, a << 1, a >> 1 FROM this
SELECT a ^ 1 FROM this
SELECT XOR(a, 1) FROM this
SELECT t.x FROM this AS t(x, y)
SELECT t.* FROM this AS t
SELECT * EXCLUDE (a) FROM this
SELECT SUM(a) OVER w FROM this WINDOW w AS (ORDER BY b)
SELECT a FROM this WHERE (a, b) = (1, 2)
SELECT CASE WHEN a > 1 THEN 1 ELSE 2 END AS c FROM this
SELECT "a", `b` FROM this
"""
PLAIN = tuple(_PLAIN.strip().splitlines())


def function_calls(name: str, dialect: str) -> Iterator[str]:
    """Texts that may be calls of a function that the lists name, in this dialect; each once."""
    kind = getattr(exp, name) if name in PARSED_FUNCTIONS else None
    texts: dict[str, None] = {}
    for call in () if kind is None else _calls(kind):
        with suppress(SqlglotError, *PARSER_ERRORS):  # what takes more than columns, in this dialect
            texts.setdefault(call.sql(dialect))
    names = [name] if kind is None else kind.sql_names()
    return iter({**texts, **{f"{called}({given})": None for called in names for given in ("a", "a, b", "a, 'x'", "")}})


def _calls(kind: type[exp.Func]) -> Iterator[exp.Expr]:
    fillers = (exp.column("a"), exp.Literal.string("x"), exp.Literal.number(1), exp.Var(this="DAY"))
    special = {"to": exp.DataType.build("int"), "ifs": [exp.If(this=exp.column("a"), true=exp.Literal.number(1))]}
    for filler in fillers:
        for wants_all in (False, True):
            names = [name for name, required in kind.arg_types.items() if required or wants_all]
            yield kind(
                **{name: special.get(name, [filler] * 2 if name == "expressions" else filler) for name in names}
            ).copy()


# What an attacker would write

NAMES = (
    "a), evil(", "a; DROP TABLE people; --", "a -- ", "a /* ", "*/ a", 'a" ', 'a"" ', "a` ", "a`` ", "a' ", "a'' ", "a\\", "a\\' ",
    "a\n-- ", "a’ ", "a＂ ", "a＇ ", "\u2028", "a\u00a0b", "people", "people p", "a FROM people --", "select", "from", "$$", "$a$", "a$b",
    "secs => 1)) FROM people; --", "DAY FROM people) --", "zz) + (SELECT MAX(a) FROM people) --", "int) FROM people --", "a.b", ":start",
    "%(start)s", "{x}", "#", "a # ", "[a]", "a]", "1", "1a", "", " ", "\t", "/*! evil */", "x'", "e'\\", "N'", "\ud7ff", "ſelect", "K",
)  # fmt: skip
SNIPPETS = (
    " IN people ", " IN main.people ", " IN (people) ", " IN (TABLE people) ", " IN evil(1) ", "('bob', 1) IN people", "(TABLE people)",
    "EXISTS(TABLE people)", "; SELECT a FROM people", " UNION TABLE people ", " FROM people ", ", people ", " JOIN people ", "(SELECT a FROM people)",
    "(FROM people)", "(VALUES (1))", "people.a", " -- ", " /* ", " */ ", " # ", "/*! + (SELECT a FROM people) */", "CAST(a AS evil)",
    "'people'::regclass", "evil(a)", "pg_catalog.length(a)", "main.length(a)", "a.length()", "COLUMNS('a')", "a COLLATE people", "{{ people }}",
    "INTERVAL '1' \"day) FROM people\"", "AS OF people", " TABLESAMPLE (1) ", " PIVOT ", "LATERAL people", "UNNEST(people)", "TABLE(people)",
    " INDEXED BY people ", "$$ people $$", "@people", "@@people", "?", ":people", "::people", " OVER people ", " USING (people) ", "a:people",
    "IDENTIFIER('people')", "'people'", '"people"', "`people`", "[people]", "*", "* EXCLUDE people", "DISTINCT ON (people) ", " WITH people AS (",
)  # fmt: skip
_QUOTES = ('"', "`", "'", "[]")
_PIECES = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|`[^`]*`|.")


def hostile_text(chance: Random, queries: list[str]) -> str:
    """Most have one thing changed: what is wrong in two places is refused for the first."""
    pieces = _PIECES.findall(chance.choice(queries))
    if chance.random() < 0.2:
        pieces = _spliced(chance, pieces, _PIECES.findall(chance.choice(queries)))
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        place = chance.randrange(len(pieces))
        change = chance.random()
        if change < 0.45:
            pieces[place] = _quoted(chance, chance.choice(NAMES))
        elif change < 0.7:
            pieces.insert(place, chance.choice(SNIPPETS))
        elif change < 0.8:
            pieces[place] = chance.choice(SNIPPETS)
        elif change < 0.9:
            pieces[place] = chance.choice(pieces)
        else:
            pieces.insert(place, chance.choice(NAMES))
    return "".join(pieces)


def _quoted(chance: Random, name: str) -> str:
    opening, *rest = chance.choice(_QUOTES)
    closing = rest[0] if rest else opening
    return opening + (name.replace(closing, closing * 2) if chance.random() < 0.8 else name) + closing


def _spliced(chance: Random, pieces: list[str], others: list[str]) -> list[str]:
    """A piece of one query in the place of a piece of another, often what stands between two brackets."""
    start, end = sorted(chance.randrange(len(others) + 1) for _ in range(2))
    place = chance.randrange(len(pieces))
    return [*pieces[:place], *others[start:end][:12], *pieces[place + 1 :]]
