"""From which columns of its inputs each column of a pipeline's table is made, by its SELECT."""

from __future__ import annotations

import pytest

from ingestion.domain.pipelines.definition import Transformer
from ingestion.domain.pipelines.lineage.column_lineage import ColumnLineage, column_lineage
from ingestion.domain.pipelines.lineage.select_lineage import (
    MAX_COLUMNS,
    NotTraced,
    SelectLineage,
    _Tracer,
    trace_select,
)
from ingestion.domain.pipelines.lineage.uses import Use, Uses
from ingestion.domain.pipelines.reading import read_pipeline
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM

COLUMNS = {"flights": ("id", "day", "Carrier", "delay", "payload"), "airlines": ("carrier", "name", "country")}


def in_words(uses: Uses) -> dict[str, str]:
    return {f"{each.input}.{each.column}": " ".join(sorted(kinds)) for each, kinds in uses.items()}


def traced(sql: str) -> SelectLineage:
    return trace_select(sql, COLUMNS)


def columns_of(sql: str) -> dict[str, dict[str, str]]:
    return {name: in_words(uses) for name, uses in traced(sql).columns.items()}


def of_pipeline(transform: str = TRANSFORM, *transformers: str) -> ColumnLineage:
    read = read_pipeline({"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": transform}, COLUMNS)
    named = {**vars(read), "transformers": tuple(map(Transformer, transformers))}
    return column_lineage(type(read)(**named), COLUMNS)


def test_each_column_has_those_that_its_value_is_made_from() -> None:
    lineage = of_pipeline()
    assert {name: in_words(uses or {}) for name, uses in lineage.columns.items()} == {
        "day": {"flights.day": "IDENTITY"},
        "airline": {"airlines.name": "IDENTITY"},
        "flights": {},
        "delay": {"flights.delay": "AGGREGATION"},
    }
    assert lineage.problem == ""


def test_what_decides_which_rows_there_are_is_told_beside_and_names_are_those_of_the_catalog() -> None:
    lineage = of_pipeline(TRANSFORM.replace("GROUP BY", "WHERE a.country = 'US' GROUP BY"))
    assert in_words(lineage.rows) == {
        "flights.Carrier": "JOIN",
        "airlines.carrier": "JOIN",
        "airlines.country": "FILTER",
        "flights.day": "GROUP_BY",
        "airlines.name": "GROUP_BY",
    }


@pytest.mark.parametrize(
    ("value", "made_from"),
    [
        ("day", {"flights.day": "IDENTITY"}),
        ("upper(day)", {"flights.day": "TRANSFORMATION"}),
        ("(day)", {"flights.day": "IDENTITY"}),
        ("max(upper(day))", {"flights.day": "AGGREGATION"}),
        ("upper(max(day))", {"flights.day": "AGGREGATION"}),
        ("CASE WHEN delay > 0 THEN day END", {"flights.delay": "CONDITIONAL", "flights.day": "TRANSFORMATION"}),
        ("CASE delay WHEN 0 THEN day END", {"flights.delay": "CONDITIONAL", "flights.day": "TRANSFORMATION"}),
        ("sum(if(delay > 0, id, 0))", {"flights.delay": "CONDITIONAL", "flights.id": "AGGREGATION"}),
        ("count(id) FILTER (WHERE delay > 0)", {"flights.delay": "CONDITIONAL", "flights.id": "AGGREGATION"}),
        ("coalesce(delay, max(delay))", {"flights.delay": "AGGREGATION TRANSFORMATION"}),
        ("payload.city", {"flights.payload": "TRANSFORMATION"}),
        ("count(*)", {}),
        ("1", {}),
        (
            "sum(id) OVER (PARTITION BY day ORDER BY delay)",
            {"flights.id": "AGGREGATION", "flights.day": "WINDOW", "flights.delay": "WINDOW"},
        ),
    ],
)
def test_how_a_value_is_made(value: str, made_from: dict[str, str]) -> None:
    assert columns_of(f"SELECT {value} AS x FROM flights")["x"] == made_from


@pytest.mark.parametrize(
    "sql",
    [
        "WITH late AS (SELECT f.day, f.carrier, f.delay * 60 AS seconds FROM flights f WHERE f.id > 1) SELECT l.day, max(l.seconds) AS worst FROM late l JOIN airlines a ON l.carrier = a.carrier GROUP BY l.day",
        "SELECT l.day, max(l.seconds) AS worst FROM (SELECT *, delay * 60 AS seconds FROM flights WHERE id > 1) l JOIN airlines a USING (carrier) GROUP BY 1",
        "WITH a AS (SELECT * FROM flights WHERE id > 1), b(d, c, s) AS (SELECT day, carrier, delay * 60 FROM a) SELECT d AS day, max(s) AS worst FROM b, airlines WHERE c = airlines.carrier GROUP BY d",
    ],
)
def test_it_goes_through_with_and_queries_in_from(sql: str) -> None:
    lineage = traced(sql)
    assert columns_of(sql) == {"day": {"flights.day": "IDENTITY"}, "worst": {"flights.delay": "AGGREGATION"}}
    rows = in_words(lineage.rows)
    assert rows.keys() == {"flights.id", "flights.carrier", "airlines.carrier", "flights.day"}
    assert (rows["flights.id"], rows["flights.day"]) == ("FILTER", "GROUP_BY")


def test_a_column_of_a_union_is_made_from_those_in_its_place_on_each_side() -> None:
    sql = "SELECT day AS at, carrier FROM flights WHERE id > 0 UNION ALL SELECT country, upper(name) FROM airlines"
    assert columns_of(sql) == {
        "at": {"flights.day": "IDENTITY", "airlines.country": "IDENTITY"},
        "carrier": {"flights.carrier": "IDENTITY", "airlines.name": "TRANSFORMATION"},
    }
    assert in_words(traced(sql).rows) == {"flights.id": "FILTER"}
    assert in_words(traced(sql.replace("UNION ALL", "UNION")).rows)["airlines.country"] == "GROUP_BY"
    assert columns_of(f"SELECT at FROM ({sql}) u") == {"at": columns_of(sql)["at"]}


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("WHERE f.id IN (SELECT carrier FROM airlines WHERE country = 'US')", {"flights.id": "FILTER", "airlines.carrier": "FILTER", "airlines.country": "FILTER"}),
        ("WHERE EXISTS (SELECT 1 FROM airlines a WHERE a.carrier = f.carrier)", {"flights.carrier": "FILTER", "airlines.carrier": "FILTER"}),
        ("WHERE NOT EXISTS (SELECT 1 FROM airlines f WHERE f.carrier = 'UA')", {"airlines.carrier": "FILTER"}),
        ("LEFT SEMI JOIN (SELECT * FROM airlines WHERE country = 'US') a ON a.carrier = f.carrier", {"flights.carrier": "JOIN", "airlines.carrier": "JOIN", "airlines.country": "FILTER"}),
        ("LEFT ANTI JOIN airlines a ON a.carrier = f.carrier", {"flights.carrier": "JOIN", "airlines.carrier": "JOIN"}),
    ],
)  # fmt: skip
def test_tables_that_only_decide_over_rows_make_no_column(sql: str, rows: dict[str, str]) -> None:
    lineage = traced(f"SELECT f.day FROM flights f {sql}")
    assert in_words(lineage.columns["day"]) == {"flights.day": "IDENTITY"}
    assert in_words(lineage.rows) == rows


def test_a_query_in_where_sees_the_table_around_it_and_not_the_query_of_with_of_that_name() -> None:
    sql = "WITH a AS (SELECT day AS carrier FROM flights) SELECT a.carrier FROM airlines a WHERE EXISTS (SELECT 1 FROM flights f WHERE f.carrier = a.carrier)"
    assert in_words(traced(sql).rows) == {"flights.carrier": "FILTER", "airlines.carrier": "FILTER"}


@pytest.mark.parametrize("kind", ["EXCEPT", "INTERSECT"])
def test_what_is_compared_with_another_query_has_rows_of_the_first(kind: str) -> None:
    sql = f"SELECT day FROM flights WHERE id > 0 {kind} SELECT name FROM airlines WHERE country = 'US'"
    assert columns_of(sql) == {"day": {"flights.day": "IDENTITY"}}
    rows = in_words(traced(sql).rows)
    assert rows == {"flights.day": "FILTER GROUP_BY", "flights.id": "FILTER", "airlines.name": "FILTER", "airlines.country": "FILTER"}  # fmt: skip


def test_a_value_that_a_query_makes_is_made_from_what_it_reads() -> None:
    made = columns_of(
        "SELECT day, (SELECT max(country) FROM airlines a WHERE a.carrier = f.carrier) AS c FROM flights f"
    )
    assert made["c"] == {"airlines.country": "AGGREGATION", "airlines.carrier": "FILTER", "flights.carrier": "FILTER"}


def test_distinct_and_order_are_told_of_the_rows() -> None:
    rows = in_words(traced("SELECT DISTINCT day AS d, upper(carrier) AS c FROM flights ORDER BY c").rows)
    assert rows == {"flights.day": "GROUP_BY", "flights.carrier": "GROUP_BY SORT"}


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT nosuch FROM flights JOIN airlines ON true", "does not know whose"),
        ("SELECT carrier FROM flights JOIN airlines ON true", "does not know whose"),
        ("SELECT * FROM unknown_table", "which columns"),
        ("SELECT x AS a, a + 1 AS b FROM unknown_table", "does not know whose column"),
        ("SELECT u.x FROM unknown_table u", "does not know the columns of `unknown_table`"),
        (" UNION ALL ".join(["SELECT id FROM flights"] * 51), "51 queries within it"),
        ("SELECT x FROM flights LATERAL VIEW explode(array(day)) t AS x", "several rows of one"),
        ("WITH RECURSIVE r AS (SELECT id FROM flights UNION ALL SELECT id FROM r) SELECT id FROM r", "RECURSIVE"),
        ("SELECT day, id FROM flights UNION ALL SELECT name FROM airlines", "other columns"),
    ],
)
def test_what_cannot_be_traced_says_why(sql: str, why: str) -> None:
    with pytest.raises(NotTraced, match=why):
        traced(sql)


def test_stars_that_double_at_each_level_are_refused_before_they_are_written_out() -> None:
    levels = ["t0 AS (SELECT * FROM flights)"]
    levels += [f"t{n} AS (SELECT * FROM t{n - 1} a CROSS JOIN t{n - 1} b)" for n in range(1, 40)]
    with pytest.raises(NotTraced, match=rf"{MAX_COLUMNS:,} at most"):
        traced(f"WITH {', '.join(levels)} SELECT * FROM t39")


def test_a_name_of_the_select_stands_for_what_it_names_however_often() -> None:
    """Written out, each would be twice as long as the one before."""
    chain = ", ".join(f"a{n} + a{n} AS a{n + 1}" for n in range(40))
    made = columns_of(f"SELECT id AS a0, {chain} FROM flights WHERE a3 > 0")
    assert (made["a0"], made["a40"]) == ({"flights.id": "IDENTITY"}, {"flights.id": "TRANSFORMATION"})
    shadowed = "SELECT id AS day, day AS at FROM flights GROUP BY day, at HAVING count(*) > 1 AND at > 'a'"
    assert columns_of(shadowed)["at"] == {"flights.day": "IDENTITY"}, "a column of the table comes first"
    assert in_words(traced(shadowed).rows) == {"flights.day": "FILTER GROUP_BY"}


def test_a_query_that_is_read_many_times_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each level would take twice as long as the one below."""
    traces: list[object] = []
    trace = _Tracer._trace
    monkeypatch.setattr(_Tracer, "_trace", lambda tracer, scope: (traces.append(scope), trace(tracer, scope))[1])
    levels = ["t0 AS (SELECT id FROM flights)"]
    levels += [f"t{n} AS (SELECT a.id + b.id AS id FROM t{n - 1} a CROSS JOIN t{n - 1} b)" for n in range(1, 8)]
    assert columns_of(f"WITH {', '.join(levels)} SELECT id FROM t7") == {"id": {"flights.id": "TRANSFORMATION"}}
    assert len(traces) == len(levels) + 1


def test_what_transformers_may_make_is_not_traced() -> None:
    lineage = of_pipeline(TRANSFORM, "fares.py:round_fares")
    assert [name for name, uses in lineage.columns.items() if uses is None] == ["flights", "delay"]
    assert "fares.py:round_fares may make any column but" in lineage.problem
    assert in_words(lineage.rows)["flights.day"] == "GROUP_BY"


def test_of_a_select_that_is_not_traced_the_inputs_are_known_only() -> None:
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM.replace("a.name", "name")}
    lineage = column_lineage(read_pipeline(texts), {})
    assert lineage.columns == dict.fromkeys(("day", "airline", "flights", "delay"))
    assert (lineage.rows, "does not know the columns of" in lineage.problem) == ({}, True)


def test_what_is_made_of_what_was_made() -> None:
    assert Use.AGGREGATION.of(Use.IDENTITY) == Use.TRANSFORMATION.of(Use.AGGREGATION) == Use.AGGREGATION
    assert Use.JOIN.of(Use.AGGREGATION) == Use.JOIN
    assert Use.AGGREGATION.of(Use.CONDITIONAL) == Use.CONDITIONAL
    assert Use.IDENTITY.of(Use.IDENTITY) == Use.IDENTITY
