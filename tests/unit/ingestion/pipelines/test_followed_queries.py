"""Which SELECTs are followed, what is said of others, and how much is read for those that are."""

from __future__ import annotations

import re
import time

import pytest

from ingestion.domain.pipelines.affected.affected_keys import affected_keys, check_followed, partition_source
from ingestion.domain.pipelines.affected.not_followed import NotFollowed
from ingestion.domain.pipelines.affected.query_shape import MAX_DEPTH, MAX_TABLES, QueryShape
from ingestion.domain.pipelines.reading import read_pipeline
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM, problems

COLUMNS = {"f": ("id", "day", "tail", "carrier", "delay"), "c": ("carrier", "country"), "p": ("tail", "maker")}
NEWEST = "SELECT *, row_number() OVER (PARTITION BY tail ORDER BY day DESC, id) AS place FROM f"


def refusal(sql: str, *keys: str) -> str:
    shape = QueryShape.of(sql, COLUMNS)
    check_followed(shape, keys, sorted(shape.inputs))
    return ""


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM f LIMIT 5", "It has LIMIT"),
        ("SELECT t.id FROM (SELECT id FROM f ORDER BY day LIMIT 5) t", "It has LIMIT"),
        ("SELECT f.id FROM f FULL JOIN p ON f.tail = p.tail", "It has a FULL JOIN: write it with JOIN or LEFT JOIN."),
        ("SELECT f.id FROM f NATURAL JOIN p", "It has a NATURAL JOIN"),
        ("SELECT id, sum(delay) OVER (ORDER BY day) AS d FROM f", "It has a window without PARTITION BY, `SUM(delay) OVER (ORDER BY day)`"),
        ("SELECT id, lag(delay) OVER w AS d FROM f WINDOW w AS (ORDER BY day)", "It has a window without PARTITION BY"),
        ("SELECT id, sum(delay) OVER (PARTITION BY day) AS a, sum(delay) OVER (PARTITION BY tail) AS b FROM f", "Its windows share no column in PARTITION BY"),
        ("SELECT t.id FROM (SELECT id, count(*) OVER (PARTITION BY tail) AS id2 FROM f) t QUALIFY count(*) OVER (PARTITION BY t.id2) = 1", "Its windows share no column in PARTITION BY"),
        ("SELECT row_number() OVER (PARTITION BY day ORDER BY tail) AS id FROM f", "The key `id` is computed by a window"),
        ("SELECT max(id) AS id FROM f GROUP BY day", "The key `id` is computed from a group"),
        ("SELECT t.n AS id FROM (SELECT day, count(*) AS n FROM f GROUP BY day) t", "The key `id` comes from `t.n`, which is computed from a group or a window: make the query of `t` a pipeline of its own"),
        ("SELECT id FROM f UNION ALL SELECT count(*) FROM c GROUP BY carrier", "The key `id` is computed from a group"),
        ("SELECT f.id FROM f JOIN (SELECT country, max(carrier) AS carrier FROM c GROUP BY country) t ON f.carrier = t.carrier", "`f` and `t` are joined by what is computed from a group or a window (f.carrier = t.carrier): make the query that computes it a pipeline of its own"),
        ("SELECT f.id, (SELECT max(country) FROM c) AS m FROM f", "It has a query within an expression, `(SELECT MAX(country) FROM c)`"),
        ("SELECT f.id FROM f WHERE f.carrier NOT IN (SELECT carrier FROM c)", "or write NOT EXISTS where it stands after NOT IN."),
        ("SELECT f.id FROM f WHERE f.carrier IN (SELECT carrier + 1 FROM c)", "write the columns out in the SELECT of IN, each with a name"),
        ("SELECT f.id FROM f WHERE f.carrier IN (SELECT max(carrier) AS m FROM c GROUP BY country)", "`f` and the query of IN or EXISTS are joined by what is computed from a group or a window (f.carrier = m)"),
        ("SELECT f.id FROM f WHERE EXISTS (SELECT 1 FROM (SELECT country, max(carrier) AS m FROM c GROUP BY country) t WHERE t.m = f.carrier)", "the query of IN or EXISTS"),
        ("SELECT id FROM f WHERE id IN (SELECT tail FROM p) OR delay NOT IN (SELECT maker FROM p)", "It has a query within an expression, `(SELECT maker FROM p)`"),
        ("SELECT id FROM f WHERE id IN (SELECT tail FROM p) OR delay = (SELECT max(maker) FROM p)", "It has a query within an expression, `(SELECT MAX(maker) FROM p)`"),
        ("SELECT id FROM f WHERE EXISTS (SELECT 1 FROM p WHERE p.tail = f.tail) OR NOT (EXISTS (SELECT 1 FROM p) AND day > 0)", "It has a query within an expression, `SELECT 1 FROM p`"),
        ("SELECT id, count(*) OVER w AS n FROM f WINDOW w AS (PARTITION BY day, (SELECT max(carrier) FROM c))", "It has a query within an expression, `(SELECT MAX(carrier) FROM c)`"),
        ("SELECT id FROM f WHERE (id, day) IN (SELECT a.tail, b.tail FROM p a JOIN p b ON a.maker = b.maker)", "each with a name of its own"),
        ("SELECT concat_ws('-', *) AS id FROM f LEFT JOIN c ON f.carrier = c.carrier", "The key `id` is `CONCAT_WS('-', *)`, of which nobody can say which rows it is made from."),
        ("SELECT concat_ws('-', c.*) AS id FROM f JOIN c ON f.carrier = c.carrier", "of which nobody can say which rows it is made from."),
        ("SELECT id AS lakehub_part_0 FROM f", "names that begin with `lakehub_` are for what is made of it."),
        ("SELECT x.id FROM f AS lakehub_x", "names that begin with `lakehub_` are for what is made of it."),
        ("WITH lakehub_any_f AS (SELECT id FROM f) SELECT id FROM lakehub_any_f", "names that begin with `lakehub_` are for what is made of it."),
        ("SELECT count(*) AS id FROM f", "It has an aggregate and no GROUP BY"),
        ("SELECT f.id FROM f CROSS JOIN (SELECT max(country) AS m FROM c) t", "It has an aggregate and no GROUP BY"),
        ("SELECT day AS id FROM f GROUP BY ROLLUP (day)", "GROUP BY has ROLLUP"),
        ("SELECT t.x AS id FROM (SELECT id FROM f) AS t(x)", "It has `t(x)`: name the columns in the SELECT itself, by AS."),
        ("WITH t(x) AS (SELECT id FROM f) SELECT x AS id FROM t", "name the columns in the SELECT itself, by AS."),
        ("WITH RECURSIVE t AS (SELECT id FROM f UNION ALL SELECT id FROM t) SELECT id FROM t", "It has WITH RECURSIVE"),
        ("SELECT id FROM f UNION ALL SELECT carrier, country FROM c", "Its UNION has 1 columns in one SELECT and 2 in another."),
        ("SELECT * FROM f UNION ALL SELECT * FROM other", "It has UNION over a `*` of which the columns are not known"),
        ("SELECT f.id FROM f JOIN f ON f.id = f.id", "Two tables are called `f`"),
        ("SELECT f.id FROM (f JOIN c ON f.carrier = c.carrier)", "write a table or a query there"),
        ("SELECT 1 AS id", "It reads no table"),
        ("SELECT v.id FROM (VALUES (1)) AS v(id)", "It has `"),
        ("SELECT p.maker AS id FROM f LEFT JOIN p ON f.tail = p.tail", "The key `id` may come from `p`, which is joined by LEFT JOIN and so may have no row"),
        ("SELECT tail AS id FROM f LEFT JOIN p ON f.tail = p.tail", "The key `id` has `tail`, which may be a column of several tables: write its table before it."),
        ("SELECT f.id FROM f WHERE EXISTS (SELECT carrier FROM c QUALIFY count(*) OVER (PARTITION BY carrier) > 1)", "write one SELECT, without a window, in EXISTS"),
        ("SELECT f.id FROM f WHERE f.carrier IN (SELECT c.carrier FROM c WHERE c.country = f.delay)", "`f.delay` is of no table that its SELECT reads"),
        ("SELECT f.id FROM f JOIN (SELECT c.country FROM c WHERE c.carrier = f.carrier) t ON true", "`f.carrier` is of no table that its SELECT reads"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_with_what_to_write(sql: str, expected: str) -> None:
    with pytest.raises(NotFollowed, match=re.escape(expected)):
        refusal(sql, "id")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT coalesce(p.maker, -1) AS id FROM f LEFT JOIN p ON f.tail = p.tail",
        "SELECT Id FROM f WHERE day IN (1, 2)",
        f"WITH t AS ({NEWEST}) SELECT t.tail AS id, c.country FROM t JOIN c ON t.carrier = c.carrier WHERE t.place = 1",
        "SELECT u.id FROM (SELECT * EXCEPT (delay) FROM f UNION ALL SELECT tail, maker, 1, 2 FROM p) u",
        "SELECT f.id FROM f CROSS JOIN c ORDER BY row_number() OVER (ORDER BY f.day)",
    ],
)
def test_what_can_be_followed_is_taken(sql: str) -> None:
    assert refusal(sql, "id") == ""


def test_whoever_looks_for_the_newest_row_of_each_key_reads_the_changed_rows_alone() -> None:
    """The key is that of the partition: neither the other rows nor the tables that are joined are read."""
    sql = f"SELECT t.tail, c.country FROM ({NEWEST}) t JOIN c ON t.carrier = c.carrier WHERE t.place = 1 AND t.day > 2"
    query = affected_keys(QueryShape.of(sql, COLUMNS), ["tail"], "f")
    assert re.findall(r"lakehub_\w+_[fcp]\b", query) == ["lakehub_changed_f"]


def test_by_another_key_all_rows_of_the_partitions_are_read() -> None:
    query = affected_keys(QueryShape.of(f"SELECT t.id FROM ({NEWEST}) t WHERE t.place = 1", COLUMNS), ["id"], "f")
    assert re.findall(r"lakehub_\w+_[fcp]\b", query) == ["lakehub_any_f", "lakehub_changed_f"]
    assert "IS NOT DISTINCT FROM" in query


def test_what_only_narrows_by_what_cannot_be_told_is_left_out() -> None:
    sql = "SELECT f.id FROM f JOIN (SELECT day, max(carrier) AS last FROM f GROUP BY day) t ON f.day = t.day JOIN c ON t.last = c.carrier"
    shape = QueryShape.of(sql, COLUMNS)
    query = affected_keys(shape, ["id"], "f")
    assert ("lakehub_any_c" in query, "last" in query) == (False, False)
    with pytest.raises(NotFollowed, match="`c` and `f` are joined by what is computed from a group"):
        affected_keys(shape, ["id"], "c")


def doubled(times: int) -> str:
    """Each step reads the one before twice."""
    steps = ", ".join(f"s{n + 1} AS (SELECT x.id FROM s{n} x JOIN s{n} y ON x.id = y.id)" for n in range(times))
    return f"WITH s0 AS (SELECT id FROM f), {steps} SELECT id FROM s{times}"


def in_steps(times: int) -> str:
    """Each with a window over the one before, by another column."""
    steps = ", ".join(
        f"s{n + 1} AS (SELECT *, count(*) OVER (PARTITION BY {('day', 'tail')[n % 2]}) AS n{n} FROM s{n})"
        for n in range(times)
    )
    return f"WITH s0 AS (SELECT * FROM f), {steps} SELECT id FROM s{times}"


def test_what_would_grow_without_bounds_is_refused_at_once() -> None:
    begin = time.process_time()
    with pytest.raises(NotFollowed, match=f"It reads more than {MAX_TABLES} tables"):
        QueryShape.of(doubled(30), COLUMNS)
    with pytest.raises(NotFollowed, match=f"nested more than {MAX_DEPTH} deep"):
        QueryShape.of(in_steps(MAX_DEPTH), COLUMNS)
    columns = ", ".join(f"x{n} + x{n} AS x{n + 1}" for n in range(40))
    with pytest.raises(NotFollowed, match="computed from each other too often"):
        QueryShape.of(f"SELECT id, day AS x0, {columns} FROM f", COLUMNS)
    assert refusal(doubled(5), "id") == ""
    assert refusal(in_steps(MAX_DEPTH - 2), "id") == ""
    assert time.process_time() - begin < 20


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        ("SELECT t.dely AS x FROM (SELECT id, delay FROM f) t", [("dely", "t", " Did you mean `delay`?")]),
        ("WITH t AS (SELECT id, dely FROM f) SELECT t.id FROM t", [("dely", "", " Did you mean `delay`?")]),
        ("SELECT id FROM f UNION ALL SELECT contry FROM c", [("contry", "", " Did you mean `country`?")]),
        ("SELECT id FROM f WHERE carrier IN (SELECT carier FROM c)", [("carier", "", " Did you mean `carrier`?")]),
        ("SELECT f.nope FROM f QUALIFY count(*) OVER (PARTITION BY f.day) > 1", [("nope", "f", " There are: `carrier`, `day`, `delay`, `id`, `tail`.")]),
        ("SELECT f.delay + 1 AS late, late * 2 AS twice FROM f ORDER BY twice", []),
        (f"SELECT t.place, t.DAY FROM ({NEWEST}) t LEFT SEMI JOIN c ON t.carrier = c.carrier", []),
        ("SELECT f.delay.part, o.anything FROM f JOIN other o ON f.id = o.id", []),
    ],
)  # fmt: skip
def test_columns_that_stand_for_nothing_are_named(sql: str, missing: list[tuple[str, str, str]]) -> None:
    shape = QueryShape.of(sql, COLUMNS)
    assert [(each.name, each.owner, each.hint) for each in shape.missing_columns()] == missing


def source_of(transform: str) -> str:
    columns = {"flights": ("day", "carrier", "delay"), "airlines": ("carrier", "name")}
    files = {
        "table.sql": TABLE,
        "pipeline.yaml": PIPELINE + "operation: insert_overwrite\n",
        "transform.sql": transform,
    }
    made = read_pipeline(files, columns)
    return partition_source(QueryShape.of(made.transform, columns), made, "flights")


def test_queries_hand_on_the_column_that_names_partitions_but_windows_and_unions_do_not() -> None:
    late = TRANSFORM.replace("<SRC> f", "(SELECT * FROM <SRC> WHERE delay > 0) f")
    assert (
        source_of(f"WITH late AS (SELECT day, carrier, delay FROM <SRC>) {TRANSFORM.replace('<SRC>', 'late')}") == "day"
    )
    with_window = TRANSFORM.replace("<SRC> f", "(SELECT day, carrier, sum(delay) OVER (PARTITION BY carrier) AS delay FROM <SRC>) f")  # fmt: skip
    assert source_of(with_window) == ""
    assert source_of(late.replace("WHERE delay > 0", "WHERE delay > 0 UNION ALL SELECT * FROM <SRC>")) == ""


def test_a_pipeline_may_have_all_of_it() -> None:
    steps = (
        "WITH late AS (SELECT * FROM <SRC> QUALIFY row_number() OVER (PARTITION BY day, carrier ORDER BY delay) < 9) "
    )
    assert problems(transform=steps + TRANSFORM.replace("<SRC>", "late")) == []
    first_value = "SELECT day, name AS airline, 1 AS flights, first_value(delay) OVER (PARTITION BY day ORDER BY delay) AS delay FROM <SRC> JOIN airlines USING (carrier)"
    assert problems(transform=first_value) == []


def test_a_star_puts_the_columns_of_using_first_as_spark_does() -> None:
    both = {**COLUMNS, "k": ("continent", "country", "carrier")}
    for sql, expected in (
        ("SELECT * FROM f JOIN c USING (carrier)", ("carrier", "id", "day", "tail", "delay", "country")),
        ("SELECT * FROM c JOIN k USING (country, carrier)", ("country", "carrier", "continent")),
        ("SELECT * FROM f JOIN p USING (tail) LEFT SEMI JOIN c USING (carrier)", ("carrier", "tail", "id", "day", "delay", "maker")),
        ("SELECT f.*, maker FROM f JOIN p USING (tail)", ("id", "day", "tail", "carrier", "delay", "maker")),
    ):  # fmt: skip
        assert QueryShape.of(sql, both).query.columns == expected, sql


def test_a_condition_over_all_columns_is_left_out() -> None:
    shape = QueryShape.of("SELECT f.id FROM f LEFT JOIN c ON f.carrier = c.carrier WHERE coalesce(*) > 1", COLUMNS)
    assert "COALESCE" not in affected_keys(shape, ["id"], "f")


def test_a_union_of_as_many_selects_as_there_are_inputs_is_not_deep() -> None:
    branches = " UNION ALL ".join(f"SELECT id, day FROM f{number}" for number in range(20))
    shape = QueryShape.of(f"WITH u AS ({branches}) SELECT id, max(day) AS day FROM u GROUP BY id")
    check_followed(shape, ["id"], sorted(shape.inputs))
    assert shape.query.depth == 3
    assert "lakehub_changed_f7" in affected_keys(shape, ["id"], "f7")


def test_hundreds_of_conditions_are_followed() -> None:
    conditions = " AND ".join(f"f.delay > {number}" for number in range(600))
    shape = QueryShape.of(f"SELECT f.id FROM f JOIN c ON f.carrier = c.carrier WHERE {conditions}", COLUMNS)
    assert affected_keys(shape, ["id"], "c").count(" > ") == 600
