"""Ways to read a table, or a row, that a gate can overlook: each is asked for, as widely as it can be meant, or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_names import UnsupportedSql
from incidents.domain.gate.sql_reads import TableReads, parse_query, row_functions, tables_read
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.partitions import Grain, partition_at, partition_name

UTC_ZONE = ZoneInfo("UTC")
NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
SHAPES = {
    "flights": TableShape("flight_date", Grain.DAY, UTC_ZONE, "ts", frozenset({"flight_date", "ts", "carrier", "id"})),
    "planes": TableShape("", Grain.NONE, UTC_ZONE, "", frozenset({"id", "built"})),
}
DAY = "flight_date = '2026-11-16'"


def read(sql: str, dialect: str) -> dict[str, TableReads]:
    query = parse_query(sql, dialect)
    assert {name.lower() for name in query.names} <= set(SHAPES), "a table that is no dataset"
    return {table.dataset: table for table in tables_read(query, SHAPES, QueryClock(NOW, UTC_ZONE))}


WHOLE = {
    "a recursive WITH of its own name": ("duckdb", f"WITH RECURSIVE flights AS (SELECT * FROM flights) SELECT * FROM flights WHERE {DAY}"),
    "a WITH of its own name": ("duckdb", f"WITH flights AS (SELECT * FROM flights) SELECT * FROM flights WHERE {DAY}"),
    "a recursion that may be the table": ("postgres", "WITH RECURSIVE flights AS (SELECT 1 x UNION ALL SELECT x FROM flights) SELECT * FROM flights"),
    "a WITH within a WITH of its name": ("duckdb", "WITH a AS (WITH flights AS (SELECT 1 x) SELECT * FROM flights) SELECT * FROM a, flights"),
    "IN with a name": ("sqlite", "SELECT id FROM planes WHERE id IN flights"),
    "IN of rows with a name": ("sqlite", "SELECT id FROM planes WHERE (id, built) IN main.flights"),
    "IN in ClickHouse": ("clickhouse", "SELECT id FROM planes WHERE id GLOBAL IN flights"),
    "IN with a list that may be a table": ("duckdb", "SELECT id FROM planes WHERE id IN flights"),
    "IN with a name in parentheses": ("clickhouse", "SELECT id FROM planes WHERE id NOT IN (flights)"),
    "a TABLE": ("postgres", "TABLE flights"),
    "a TABLE in a union": ("mysql", "SELECT id FROM planes UNION TABLE flights"),
    "a value that a WITH names": ("clickhouse", "WITH 1 AS flights SELECT * FROM flights"),
    "a query's value that a WITH names": ("clickhouse", "WITH (SELECT 1) AS flights SELECT * FROM flights"),
    "a WITH in other letters, quoted": ("postgres", 'WITH "Flights" AS (SELECT 1) SELECT * FROM flights'),
    "a WITH in other letters": ("clickhouse", "WITH Flights AS (SELECT 1) SELECT * FROM flights"),
    "a WITH in other letters, quoted where quotes fold": ("duckdb", 'WITH "FLIGHTS" AS (SELECT 1) SELECT * FROM flights'),
    "a WITH in quotes": ("snowflake", 'WITH "flights" AS (SELECT 1) SELECT * FROM flights'),
    "a quoted name in FROM": ("duckdb", "SELECT * FROM 'flights'"),
    "quoted in capitals": ("postgres", 'SELECT * FROM lake.public."FLIGHTS"'),
    "a name that a text gives": ("clickhouse", "SELECT id, dictGet('flights', 'carrier', id) FROM planes"),
    "a name that a join gives": ("clickhouse", "SELECT id, joinGet(flights, 'carrier', id) FROM planes"),
    "a query in a text": ("postgres", "SELECT query_to_xml('SELECT * FROM public.flights', true, true, '') FROM planes"),
    "ASOF": ("duckdb", f"SELECT * FROM planes p ASOF JOIN flights f ON p.id >= f.id WHERE f.{DAY}"),
    "ASOF before": ("duckdb", f"SELECT * FROM flights f ASOF JOIN planes p ON p.id >= f.id ASOF JOIN planes q USING (id) WHERE f.{DAY}"),
    "POSITIONAL": ("duckdb", f"SELECT * FROM planes p POSITIONAL JOIN flights f WHERE f.{DAY}"),
    "TABLESAMPLE": ("duckdb", f"SELECT * FROM flights TABLESAMPLE reservoir(3 ROWS) WHERE {DAY}"),
    "USING SAMPLE": ("duckdb", f"SELECT * FROM flights WHERE {DAY} USING SAMPLE 3"),
    "USING SAMPLE around a SELECT": ("duckdb", f"SELECT * FROM (SELECT id FROM flights WHERE {DAY}) f RIGHT JOIN planes USING (id) USING SAMPLE 3"),
    "another's TABLESAMPLE": ("postgres", f"SELECT * FROM flights f, planes TABLESAMPLE system (1) WHERE f.{DAY}"),
    "CONNECT BY": ("oracle", f"SELECT * FROM flights WHERE {DAY} START WITH id = 1 CONNECT BY PRIOR id = id + 1"),
    "ANY JOIN": ("clickhouse", f"SELECT * FROM planes p ANY LEFT JOIN flights f ON f.id = p.id WHERE f.{DAY}"),
    "ANY JOIN of the other": ("clickhouse", f"SELECT * FROM flights f ANY JOIN planes p ON f.id = p.id WHERE f.{DAY}"),
    "ARRAY JOIN": ("clickhouse", f"SELECT * FROM flights f ARRAY JOIN xs AS flight_date WHERE {DAY}"),
    "FINAL": ("clickhouse", f"SELECT * FROM flights FINAL WHERE {DAY}"),
    "an outer join that fills in": ("clickhouse", "SELECT * FROM planes p LEFT JOIN flights f ON f.id = p.id WHERE f.ts < '2026-11-16'"),
    "an outer join that fills the first": ("clickhouse", "SELECT * FROM flights f RIGHT JOIN planes p ON f.id = p.id WHERE f.ts < '2026-11-16'"),
    "an alias that wins": ("clickhouse", "SELECT now() AS ts FROM flights WHERE ts > '2026-11-16'"),
    "an alias in front": ("duckdb", "SELECT ts: now() FROM flights WHERE ts > '2026-11-16'"),
    "an alias within an expression": ("clickhouse", "SELECT (now() AS ts) + 1 FROM flights WHERE ts > '2026-11-16'"),
    "a value of a WITH that wins": ("clickhouse", "WITH now() AS ts SELECT id FROM flights WHERE ts > '2026-11-16'"),
    "an alias like the table's": ("bigquery", "SELECT STRUCT(1 AS ts) AS f FROM flights f WHERE f.ts > '2026-11-16'"),
    "an alias with a dot": ("clickhouse", 'SELECT now() AS "f.ts" FROM flights f WHERE f.ts > \'2026-11-16\''),
    "an outer table in other letters": ("postgres", f'SELECT * FROM planes f WHERE EXISTS (SELECT 1 FROM flights "F" WHERE f.{DAY})'),
    "another column in other letters": ("postgres", "SELECT * FROM flights WHERE \"TS\" > '2026-11-16'"),
    "a field of a column": ("bigquery", "SELECT * FROM flights f WHERE x.f.ts > '2026-11-16'"),
    "a column that a join shares": ("duckdb", f"SELECT * FROM planes RIGHT JOIN flights USING (flight_date) WHERE {DAY}"),
    "a column that any join may share": ("duckdb", f"SELECT * FROM planes NATURAL FULL JOIN flights WHERE {DAY}"),
    "a column of a WITH that is called as a dataset": ("duckdb", f"WITH planes AS (SELECT 1 AS flight_date) SELECT * FROM flights, planes WHERE {DAY}"),
    "PIVOT": ("duckdb", f"SELECT * FROM (PIVOT flights ON carrier USING count(*)) WHERE {DAY}"),
    "PIVOT of a table": ("snowflake", f"SELECT * FROM flights PIVOT (SUM(id) FOR carrier IN ('AA')) WHERE {DAY}"),
    "PIVOT behind another": ("spark", f"SELECT * FROM flights f, planes p PIVOT (SUM(id) FOR built IN ('x')) WHERE f.{DAY}"),
    "MATCH_RECOGNIZE": ("snowflake", f"SELECT * FROM flights MATCH_RECOGNIZE (ORDER BY id MEASURES id AS y PATTERN (a) DEFINE a AS id > 1) WHERE {DAY}"),
    "an earlier state": ("spark", f"SELECT * FROM flights VERSION AS OF 3 WHERE {DAY}"),
    "a WHERE outside of a limit": ("duckdb", f"SELECT * FROM (SELECT * FROM flights ORDER BY ts LIMIT 3) WHERE {DAY}"),
    "a WHERE outside of a window": ("duckdb", f"SELECT * FROM (SELECT *, lag(ts) OVER (ORDER BY ts) FROM flights) WHERE {DAY}"),
    "a WHERE outside of a sum": ("duckdb", f"SELECT * FROM (SELECT flight_date, sum(sum(id)) OVER () FROM flights GROUP BY 1) WHERE {DAY}"),
    "a WHERE outside of DISTINCT ON": ("duckdb", f"SELECT * FROM (SELECT DISTINCT ON (id) * FROM flights ORDER BY ts) WHERE {DAY}"),
    "QUALIFY": ("duckdb", f"SELECT * FROM flights QUALIFY row_number() OVER (ORDER BY ts) = 1 AND {DAY}"),
    "HAVING": ("duckdb", f"SELECT flight_date FROM flights GROUP BY ALL HAVING {DAY}"),
    "a FILTER": ("duckdb", f"SELECT count(*) FILTER (WHERE {DAY}) FROM flights"),
    "a WHERE of a correlated query": ("duckdb", f"SELECT * FROM flights f WHERE EXISTS (SELECT 1 FROM planes p WHERE f.{DAY})"),
    "a LATERAL": ("postgres", f"SELECT * FROM planes p, LATERAL (SELECT * FROM flights LIMIT 1) f WHERE f.{DAY}"),
    "the right of a SEMI JOIN, by its WHERE": ("duckdb", f"SELECT * FROM planes SEMI JOIN flights ON planes.id = flights.id WHERE {DAY}"),
    "XOR": ("mysql", f"SELECT * FROM flights WHERE id = 1 XOR id = 2 AND {DAY}"),
    "NOT": ("duckdb", f"SELECT * FROM flights WHERE NOT ({DAY} AND id = 1)"),
    "a comparison of a comparison": ("sqlite", "SELECT * FROM flights WHERE (flight_date > '2026-11-16') = 0"),
    "BETWEEN SYMMETRIC": ("postgres", "SELECT * FROM flights WHERE flight_date BETWEEN SYMMETRIC '2026-11-16' AND '2026-11-15'"),
    "a number in SQLite": ("sqlite", "SELECT * FROM flights WHERE ts > CAST('2026-11-16' AS TIMESTAMP)"),
    "a cast in SQLite": ("sqlite", "SELECT * FROM flights WHERE CAST(ts AS DATE) = '2026-11-16'"),
    "a cast that reads in its own way": ("bigquery", "SELECT * FROM flights WHERE CAST(ts AS DATE FORMAT 'DDMMYY') = DATE '2026-11-16'"),
    "a cast that rounds": ("postgres", "SELECT * FROM flights WHERE ts::timestamp(0) = TIMESTAMP '2026-11-16 00:00:00'"),
    "a day that sorts before all its year": ("sqlite", "SELECT * FROM flights WHERE ts < '20261116'"),
    "the other half of a union": ("duckdb", f"SELECT * FROM flights WHERE {DAY} UNION ALL SELECT * FROM flights"),
    "what is taken away": ("duckdb", f"SELECT * FROM flights WHERE {DAY} EXCEPT SELECT * FROM flights"),
    "a day in a zone": ("bigquery", "SELECT * FROM flights WHERE DATE(ts, 'Pacific/Kiritimati') = '2026-11-16'"),
    "a constant day in a zone": ("bigquery", "SELECT * FROM flights WHERE ts < DATE('2026-11-16', 'Pacific/Kiritimati')"),
    "an interval of which the last unit counts": ("postgres", "SELECT * FROM flights WHERE ts < now() - INTERVAL '10' YEAR TO MONTH"),
    "an interval of days to seconds": ("postgres", "SELECT * FROM flights WHERE ts < now() - INTERVAL '5' DAY TO SECOND"),
    "a field of a column with the table's alias": ("bigquery", "SELECT * FROM flights carrier WHERE carrier.ts < '2026-11-16'"),
    "a field of another's column": ("bigquery", "SELECT * FROM flights built, planes WHERE built.ts < '2026-11-16'"),
    "a variable that counts": ("mysql", f"SELECT * FROM flights WHERE (@n := @n + 1) > 3 AND {DAY}"),
    "a join in parentheses": ("postgres", f"SELECT * FROM (planes p FULL JOIN flights f ON p.id = f.id) WHERE f.{DAY}"),
}  # fmt: skip


@pytest.mark.parametrize("form", WHOLE)
def test_it_is_asked_for_as_a_whole(form: str) -> None:
    dialect, sql = WHOLE[form]
    try:
        assert not read(sql, dialect)["flights"].bounded
    except UnsupportedSql:
        pytest.fail(f"refused: {sql}")


REFUSED = {
    "TABLE of a name": ("snowflake", "SELECT * FROM TABLE(flights)"),
    "TABLE of a name in Spark": ("spark", "SELECT * FROM TABLE(flights)"),
    "IDENTIFIER of a text": ("snowflake", "SELECT * FROM IDENTIFIER('flights')"),
    "query_table": ("duckdb", "SELECT * FROM query_table('flights')"),
    "a query in a text": ("tsql", "SELECT * FROM OPENQUERY(lake, 'SELECT * FROM flights')"),
    "an argument of a function": ("bigquery", "SELECT * FROM GAP_FILL(TABLE flights, ts_column => 'ts')"),
    "SUMMARIZE": ("duckdb", "SELECT * FROM (SUMMARIZE flights)"),
    "rows from functions": ("postgres", "SELECT * FROM ROWS FROM (f(1), g(2)) x, flights"),
    "a function after IN": ("sqlite", "SELECT id FROM planes WHERE id IN flights(1)"),
    "a comment that runs": ("mysql", "SELECT id FROM planes /*! , flights */"),
    "a comment that MariaDB runs": ("mysql", "SELECT id FROM planes /*M!100100 , flights */"),
    "a comment in a comment": ("postgres", "SELECT id FROM planes /* /* */ , flights -- */ */"),
    "a comment of a template, which MySQL runs": ("mysql", f"SELECT * FROM flights WHERE {DAY} AND id = {{# \n x 1}} OR 1=1 #}} 3"),
    "a comment that Spark continues": ("spark", f"SELECT * FROM flights WHERE id = 1 -- \\\n AND {DAY}"),
    "an interval that runs back": ("postgres", "SELECT * FROM flights WHERE ts < now() - INTERVAL '50 days ago'"),
    "an interval with more than is understood": ("duckdb", "SELECT * FROM flights WHERE ts < now() - INTERVAL '50 days -1200:00:00'"),
    "a quote behind a backslash": ("postgres", "SELECT '\\' FROM planes, flights -- '"),
    "a quote behind a backslash that a mode overlooks": ("mysql", "SELECT '\\' FROM planes, flights -- '"),
    "pipes": ("bigquery", f"FROM flights |> LIMIT 3 |> WHERE {DAY}"),
    "an upsert that reads": ("postgres", "INSERT INTO x SELECT id FROM planes ON CONFLICT (id) DO UPDATE SET id = (SELECT 1 FROM flights)"),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_it_is_refused(form: str) -> None:
    dialect, sql = REFUSED[form]
    with pytest.raises(UnsupportedSql):
        parse_query(sql, dialect)


@pytest.mark.parametrize(
    ("dialect", "call"),
    [
        ("postgres", "query_to_xml('SELECT * FROM fli' || 'ghts', true, true, '')"),
        ("postgres", "my_schema.lower(id)"),
        ("clickhouse", "dictGet('flights', 'a', id)"),
        ("duckdb", "my_macro(id)"),
        ("spark", "TRANSFORM (id) USING 'read flights'"),
        ("bigquery", "AI.GENERATE('what is in flights?')"),
        ("snowflake", "lake.public.my_function(id)"),
        ("postgres", "id OPERATOR(mine.+) 1"),
    ],
)
def test_a_function_that_may_read_anything_is_named(dialect: str, call: str) -> None:
    assert parse_query(f"SELECT {call} FROM planes", dialect).functions


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", "SELECT date_trunc('day', ts), count(*) FILTER (WHERE id > 1), now() FROM flights GROUP BY ALL"),
        ("postgres", "SELECT pg_catalog.lower(carrier), string_agg(carrier, ',' ORDER BY id) FROM flights"),
        ("clickhouse", "SELECT sumIf(id, id > 1), quantiles(0.5)(id), toDate(ts) FROM flights"),
        ("spark", "SELECT percentile_approx(id, 0.5), collect_set(carrier), from_unixtime(id) FROM flights"),
        ("bigquery", "SELECT SAFE.SUBSTR(carrier, 1), NET.HOST(carrier) FROM flights"),
        ("mysql", "SELECT date_format(ts, '%Y'), group_concat(carrier) FROM flights"),
        ("sqlite", "SELECT strftime('%Y', ts), julianday(ts), total(id) FROM flights"),
    ],
)
def test_what_every_database_computes_with_is_known(dialect: str, sql: str) -> None:
    query = parse_query(sql, dialect)
    assert (query.functions, query.mentions & {"flights", "planes"}) == (frozenset(), frozenset())


BOUNDED = {
    "with its own name": ("duckdb", "WITH flights AS (SELECT * FROM flights WHERE {}) SELECT * FROM flights"),
    "in other letters": ("postgres", "WITH Days AS (SELECT * FROM Flights F WHERE f.{}) SELECT * FROM days"),
    "quoted": ("postgres", 'SELECT * FROM "flights" WHERE "flights".{}'),
    "in a schema of its name": ("postgres", "SELECT * FROM flights.flights WHERE {}"),
    "with a text of its name": ("postgres", "SELECT 'flights' AS flights FROM flights f WHERE carrier = 'flights' AND {}"),
    "joined": ("duckdb", "SELECT * FROM flights f LEFT JOIN planes p ON f.id = p.id WHERE f.{}"),
    "joined in ClickHouse": ("clickhouse", "SELECT * FROM flights f LEFT JOIN planes p ON f.id = p.id WHERE f.{}"),
    "joined naturally": ("duckdb", "SELECT * FROM flights f NATURAL JOIN planes WHERE f.{}"),
    "exploded": ("spark", "SELECT * FROM flights f LATERAL VIEW explode(split(carrier, ',')) t AS x WHERE f.{}"),
    "limited": ("duckdb", "SELECT * FROM flights WHERE {} ORDER BY ts LIMIT 3"),
    "with windows": ("duckdb", "SELECT lag(ts) OVER (ORDER BY ts) FROM flights WHERE {} QUALIFY true"),
    "by a column of its schema's path": ("bigquery", "SELECT * FROM `p.d.flights` WHERE {}"),
    "by an interval": ("postgres", "SELECT * FROM flights WHERE ts > now() - INTERVAL '5 days' AND {}"),
    "in a comment": ("duckdb", "SELECT * FROM flights -- flights of a day\nWHERE {}"),
    "inserted": ("spark", "INSERT INTO planes SELECT id, carrier FROM flights WHERE {}"),
}  # fmt: skip


@pytest.mark.parametrize("form", BOUNDED)
def test_what_is_sure_stays_bounded(form: str) -> None:
    dialect, sql = BOUNDED[form]
    (table,) = (reads for name, reads in read(sql.format(DAY), dialect).items() if name == "flights")
    assert table.bounded, table


def test_texts_in_sqlite_compare_by_letters() -> None:
    """Rows that are written with a blank stand before the `T` of the same day."""
    (piece,) = read("SELECT * FROM flights WHERE ts < '2026-11-16T00:00:00'", "sqlite")["flights"].ranges
    assert piece.end > datetime(2026, 11, 16, 23, 59, tzinfo=UTC)


def test_an_offset_in_sqlite_is_letters_too() -> None:
    """The row `2026-11-17 01:00` stands before `2026-11-17 02:00+05:00`, which is 21:00 UTC of the day before."""
    (below,) = read("SELECT * FROM flights WHERE ts < '2026-11-17 02:00+05:00'", "sqlite")["flights"].ranges
    assert below.end > datetime(2026, 11, 17, 1, tzinfo=UTC)
    (above,) = read("SELECT * FROM flights WHERE ts > '2026-11-15T22:00-05:00'", "sqlite")["flights"].ranges
    assert above.start <= datetime(2026, 11, 15, 23, tzinfo=UTC)


def test_a_time_that_is_cast_may_be_rounded_up_to_the_next_day() -> None:
    (piece,) = read("SELECT * FROM flights WHERE CAST(ts AS DATE) = '2026-11-16'", "mysql")["flights"].ranges
    assert piece.start <= datetime(2026, 11, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("dialect", "condition"),
    [
        ("tsql", "ts <= '2026-11-15 23:59:59.999'"),
        ("tsql", "ts <= CAST('2026-11-15 23:59:59.999' AS DATETIME)"),
        ("mysql", "ts <= CAST('2026-11-15 23:59:59.6' AS DATETIME)"),
        ("sqlite", "ts < '2026-11-16 00:00:00'"),
    ],
)
def test_the_first_moment_of_the_next_day_may_be_read(dialect: str, condition: str) -> None:
    """A constant is rounded up to midnight; in SQLite `2026-11-16` stands before `2026-11-16 00:00:00`."""
    (piece,) = read(f"SELECT * FROM flights WHERE {condition}", dialect)["flights"].ranges
    assert piece.end > datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.parametrize("dialect", ["mysql", "tsql", "duckdb"])
def test_a_midnight_is_not_rounded(dialect: str) -> None:
    (piece,) = read("SELECT * FROM flights WHERE ts < '2026-11-16 00:00:00'", dialect)["flights"].ranges
    assert piece.end == datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.parametrize("dialect", ["mysql", "sqlite", "duckdb"])
def test_the_name_of_a_day_that_is_cast_is_not_rounded(dialect: str) -> None:
    (piece,) = read("SELECT * FROM flights WHERE date(flight_date) < '2026-11-16'", dialect)["flights"].ranges
    assert piece.end == datetime(2026, 11, 16, tzinfo=UTC)


def test_the_name_of_an_hour_in_sqlite_is_compared_as_it_is_written() -> None:
    shape = TableShape("hour", Grain.HOUR, UTC_ZONE)
    name = partition_name(
        partition_at(datetime(2026, 11, 16, 5, tzinfo=UTC), Grain.HOUR, UTC_ZONE), Grain.HOUR, UTC_ZONE
    )
    query = parse_query(f"SELECT * FROM flights WHERE hour < '{name}'", "sqlite")
    (table,) = tables_read(query, {"flights": shape}, QueryClock(NOW, UTC_ZONE))
    assert table.ranges[0].end >= datetime(2026, 11, 16, 5, tzinfo=UTC)


def test_a_table_behind_a_with_of_other_letters_is_no_dataset_and_is_named() -> None:
    assert parse_query('WITH "Secret" AS (SELECT 1) SELECT * FROM secret', "postgres").names == ("secret",)
    assert parse_query("WITH Recent AS (SELECT * FROM flights) SELECT * FROM recent", "postgres").names == ("flights",)
    assert parse_query(
        "WITH RECURSIVE n AS (SELECT 1 x UNION ALL SELECT x FROM n) SELECT * FROM n, flights", "duckdb"
    ).names == ("flights",)
    left = "(WITH secret AS (SELECT 1) SELECT * FROM secret) UNION SELECT * FROM secret"
    assert parse_query(left, "postgres").names == ("secret",)


def test_what_a_table_has_beside_it_mentions_the_table() -> None:
    query = parse_query("SELECT id FROM lake.flights.snapshots", "spark")
    assert query.names == ("snapshots",)
    assert query.mentions >= {"flights"}


# Functions behind a dot

ROW_FUNCTIONS = {
    "of a table": ("SELECT max(flights.evil) FROM flights", {"evil"}),
    "of an alias": ('SELECT max(f."evil") FROM flights AS f', {"evil"}),
    "of a table of a schema": ("SELECT public.flights.evil FROM public.flights", {"evil"}),
    "of another table that has none": ("SELECT p.carrier FROM planes p JOIN flights f ON p.id = f.id", {"carrier"}),
    "of a query": ("SELECT s.evil FROM (SELECT * FROM flights) AS s", {"evil"}),
    "of a query with other columns": ("SELECT s.ts FROM (SELECT id, carrier AS c FROM flights) AS s", {"ts"}),
    "of a WITH": ("WITH w AS (SELECT id FROM flights) SELECT w.ts FROM w", {"ts"}),
    "of a WITH that hands on": ("WITH a AS (SELECT id FROM flights), b AS (SELECT * FROM a) SELECT b.id, b.ts FROM b", {"ts"}),
    "of columns that were renamed": ("SELECT f.id FROM flights AS f(a, b)", {"id"}),
    "of a WITH that was renamed": ("WITH w(a) AS (SELECT id FROM flights) SELECT w.id, w.a FROM w", {"id"}),
    "of a join in brackets": ("SELECT j.evil, j.built FROM (flights f JOIN planes p ON f.id = p.id) AS j", {"evil"}),
    "of a recursion": ("WITH RECURSIVE w AS (SELECT id FROM flights UNION SELECT w.evil FROM w) SELECT w.id FROM w", {"evil"}),
    "within": ("SELECT 1 FROM planes p WHERE EXISTS (SELECT 1 FROM flights f WHERE f.id = p.evil)", {"evil"}),
    "in ON": ("SELECT 1 FROM planes p JOIN flights f ON f.evil = p.id", {"evil"}),
    "of one of two that are called so": ("SELECT 1 FROM planes x WHERE EXISTS (SELECT x.built FROM flights x)", {"built"}),
    "of values": ("SELECT v.evil, v.column1 FROM (VALUES (1)) AS v, flights", {"evil"}),
    "of the rows of a function": ("SELECT g.evil, g.g FROM generate_series(1, 2) AS g, flights", {"evil"}),
    "of a LATERAL": ("SELECT l.evil, l.q FROM flights f, LATERAL (SELECT f.id AS q) AS l", {"evil"}),
    "of what is called nothing": ("SELECT nosuch.evil FROM flights", {"evil"}),
    "of a value": ("SELECT (id).evil FROM flights", {"evil"}),
    "of a column that is called so in other capitals": ('SELECT w.id FROM (SELECT id AS "ID" FROM flights) AS w', {"id"}),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "calls"), ROW_FUNCTIONS.values(), ids=ROW_FUNCTIONS)
def test_a_name_behind_a_dot_that_is_no_known_column_counts_as_a_function(sql: str, calls: set[str]) -> None:
    assert row_functions(parse_query(sql, "postgres"), SHAPES, ()) == calls
    assert row_functions(parse_query(sql, "duckdb"), SHAPES, ()) == set()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f.id, F.TS, f.ctid, flights2.carrier FROM flights f, flights AS flights2",
        "SELECT public.flights.id FROM public.flights",
        "WITH w AS (SELECT f.*, p.built AS made FROM flights f JOIN planes p USING (id)) SELECT w.made, w.ts FROM w",
        "WITH flights AS (SELECT flights.id AS n FROM flights) SELECT flights.n FROM flights",
        "WITH RECURSIVE w AS (SELECT id, 1 AS n FROM flights UNION ALL SELECT id, w.n + 1 FROM w) SELECT w.id, w.n FROM w",
        "SELECT s.flight_date, s.count FROM (SELECT flight_date::date, count(*) FROM flights GROUP BY 1) AS s",
        "SELECT s.id FROM ((SELECT id FROM flights) UNION (SELECT id FROM planes)) AS s",
        "SELECT f.id, p.built FROM (flights f JOIN planes p ON f.id = p.id)",
        "SELECT count(f.*) FROM flights f",
        "SELECT d.day FROM generate_series(1, 2) AS d(day), flights",
        "SELECT u.a, u.b FROM flights, unnest(ARRAY[1]) WITH ORDINALITY AS u(a, b)",
        "SELECT j.a FROM flights, LATERAL (VALUES (1)) AS j(a)",
        "SELECT 1 FROM planes p WHERE p.id IN (SELECT f.id FROM flights f WHERE f.id = p.id ORDER BY f.ts)",
    ],
)
def test_a_known_column_behind_a_dot_calls_nothing(sql: str) -> None:
    for dialect in ("postgres", "redshift"):
        assert row_functions(parse_query(sql, dialect), SHAPES, ()) == set()


def test_a_value_of_redshift_has_an_inside() -> None:
    query = parse_query("SELECT carrier.name, f.carrier.name, f.evil FROM flights f", "redshift")
    assert row_functions(query, SHAPES, ()) == {"evil"}


def test_who_leaves_a_table_out_knows_its_columns() -> None:
    query = parse_query("SELECT o.amount, f.evil FROM orders o JOIN flights f ON o.id = f.id", "postgres")
    assert row_functions(query, SHAPES, {"orders"}) == {"evil"}
    assert row_functions(query, {}, {"orders"}) == {"evil", "id"}


def test_queries_that_hand_on_each_others_columns_are_looked_at_once() -> None:
    """Each WITH reads the one before twice: by all ways there are 2^40."""
    chain = "".join(f", w{n} AS (SELECT a.* FROM w{n - 1} a, w{n - 1} b)" for n in range(1, 41))
    query = parse_query(
        f"WITH w0 AS (SELECT id FROM flights){chain} SELECT w40.evil, w15.evil, w15.id FROM w40, w15", "postgres"
    )
    assert row_functions(query, SHAPES, ()) == {"evil"}
