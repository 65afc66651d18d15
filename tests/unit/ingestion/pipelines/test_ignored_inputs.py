"""Inputs whose changes are ignored: what the queries for the changes of the others ask of them, and which SELECTs cannot do without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingestion.domain.pipelines.affected.affected_keys import affected_keys, check_followed
from ingestion.domain.pipelines.affected.not_followed import NotFollowed
from ingestion.domain.pipelines.affected.query_shape import QueryShape
from ingestion.spark.etl.input_changes import ChangedFiles, HistoryGone, changed_files
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM, problems

COLUMNS = {
    "f": ("id", "day", "tail", "carrier", "delay"),
    "c": ("carrier", "country"),
    "k": ("country", "currency"),
    "p": ("tail", "maker"),
}
IGNORED = PIPELINE.replace("airlines: airlines", "airlines: {dataset: airlines, changes: ignored}")


def shape_of(sql: str, key: str = "id") -> QueryShape:
    """Of a pipeline that ignores the changes of `p` and `c`. Raises NotFollowed."""
    shape = QueryShape.of(sql, COLUMNS, {"P", "c"})
    check_followed(shape, [key], sorted(shape.inputs - {"p", "c"}))
    return shape


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f.id, p.maker, f.delay FROM f JOIN p ON f.tail = p.tail",
        "SELECT f.id, p.maker FROM f LEFT JOIN p ON f.tail = p.tail WHERE p.maker > 1 OR f.delay > 1",
        "SELECT id, maker FROM f JOIN p USING (tail) WHERE maker > 1",
        "SELECT f.id FROM f LEFT SEMI JOIN p ON f.tail = p.tail",
        "SELECT f.id FROM f LEFT ANTI JOIN p ON f.tail = p.tail",
        "SELECT f.id FROM f WHERE f.tail IN (SELECT tail FROM p)",
        "SELECT f.id FROM f WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.tail = f.tail AND p.maker > f.day)",
        "SELECT f.id, p.maker FROM p CROSS JOIN f",
        "SELECT f.id, max(p.maker) AS maker FROM f JOIN p ON f.tail = p.tail GROUP BY f.id, p.tail HAVING count(p.maker) > 1",
        "SELECT f.id, t.n FROM f JOIN (SELECT tail, count(*) AS n FROM p GROUP BY tail) t ON f.tail = t.tail",
        "SELECT t.id FROM (SELECT f.id, p.maker FROM f JOIN p ON f.tail = p.tail) t JOIN c ON t.maker = c.carrier",
        "SELECT f.id, r.maker FROM f JOIN (SELECT *, row_number() OVER (PARTITION BY maker ORDER BY tail) AS place FROM p) r ON f.tail = r.tail AND r.place = 1",
        "SELECT f.id, row_number() OVER (PARTITION BY f.id, p.maker ORDER BY f.day) AS n FROM f JOIN p ON f.tail = p.tail",
    ],
)  # fmt: skip
def test_a_change_of_another_input_is_not_joined_with_it(sql: str) -> None:
    """What a row was made from may be there no more: the view of all its rows has what is there now."""
    query = affected_keys(shape_of(sql), ["id"], "f")
    assert re.findall(r"lakehub_\w+_[fcp]\b", query) == ["lakehub_changed_f"]
    assert "WHERE" not in query


def test_the_other_joins_and_conditions_stay() -> None:
    sql = "SELECT f.id FROM f JOIN p ON f.tail = p.tail AND p.maker > 1 JOIN k ON f.day = k.country AND k.currency > p.maker WHERE f.delay > 2"
    query = affected_keys(shape_of(sql), ["id"], "k")
    assert re.findall(r"lakehub_\w+_[fkp]\b", query) == ["lakehub_any_f", "lakehub_changed_k"]
    assert (query.count(" = "), query.count(" > ")) == (1, 1)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT p.maker AS id FROM f JOIN p ON f.tail = p.tail", "The key `id` comes from `p.maker`, of the input `p`, whose changes are ignored, so rows would stay under the keys that were made of earlier values: take the key from an input whose changes are followed, or remove `changes: ignored` from `p`."),
        ("SELECT coalesce(p.maker, f.day) AS id FROM f LEFT JOIN p ON f.tail = p.tail", "The key `id` comes from `p.maker`, of the input `p`"),
        ("SELECT t.maker AS id FROM (SELECT maker, max(delay) AS late FROM f JOIN p USING (tail) GROUP BY maker) t", "The key `id` comes from `t.maker`, of the input `p`"),
        ("SELECT f.id FROM f UNION ALL SELECT p.tail FROM p", "The key `id` comes from `p.tail`, of the input `p`"),
        ("SELECT tail AS id FROM p JOIN f USING (tail)", "The key `id` comes from `p.tail`, of the input `p`"),
        ("SELECT t.id FROM (SELECT f.id FROM f EXCEPT SELECT p.tail FROM p) t", "The key `id` comes from `t.id`, of the input `p`"),
        ("SELECT f.id FROM f JOIN c ON f.carrier = c.carrier JOIN k ON c.country = k.country", "`f` and `k` are joined only by columns of the input `c`, whose changes are ignored (f.carrier = c.carrier, c.country = k.country): join them by columns of inputs whose changes are followed, or remove `changes: ignored` from `c`."),
        ("SELECT f.id FROM f LEFT JOIN (SELECT k.currency, c.carrier FROM k JOIN c ON c.country = k.country) t ON f.carrier = t.carrier", "`f` and `t` are joined only by columns of the input `c`"),
        ("SELECT f.id FROM f WHERE EXISTS (SELECT 1 FROM c JOIN k ON c.country = k.country WHERE c.carrier = f.carrier)", "`f` and the query of IN or EXISTS are joined only by columns of the input `c`"),
        ("SELECT f.id FROM f JOIN p ON f.tail = p.tail JOIN (SELECT country, max(currency) AS m FROM k GROUP BY country) t ON f.day = t.m", "`f` and `t` are joined by what is computed from a group or a window"),
        ("SELECT f.id, count(*) OVER (PARTITION BY p.maker) AS n FROM f JOIN p ON f.tail = p.tail", "Its windows are partitioned by `p.maker`, from the input `p`, whose changes are ignored, so a row that changes may reach all others: partition them by columns of inputs whose changes are followed as well, or remove `changes: ignored` from `p`."),
    ],
)  # fmt: skip
def test_what_cannot_do_without_it_is_refused_with_what_to_write(sql: str, expected: str) -> None:
    with pytest.raises(NotFollowed, match=re.escape(expected)):
        shape_of(sql)


def test_where_columns_are_unknown_a_name_without_its_table_may_be_of_the_ignored_input() -> None:
    sql = "SELECT f.id FROM f JOIN other ON f.tail = other.tail WHERE maker > 1"
    assert "maker" in affected_keys(QueryShape.of(sql), ["id"], "f")
    assert "maker" not in affected_keys(QueryShape.of(sql, ignored=["other"]), ["id"], "f")


def test_a_pipeline_whose_key_comes_from_an_ignored_input_is_not_registered() -> None:
    (problem,) = problems(pipeline=IGNORED)
    assert problem.startswith("transform.sql: What a change reaches cannot be said. The key `airline` comes from `a.name`, of the input `airlines`, whose changes are ignored")  # fmt: skip
    assert problems(pipeline=IGNORED, transform=TRANSFORM.replace("a.name", "f.carrier")) == []
    assert problems(TABLE, PIPELINE) == []


def table_in(folder: Path, *completed: str) -> str:
    """A timeline of commits that nobody can read."""
    timeline = folder / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    for completion in completed:
        (timeline / f"{completion}_{completion}.commit").touch()
    return folder.as_uri()


@pytest.mark.parametrize(
    ("after", "commits"),
    [
        pytest.param("30", 0, id="nothing is new"),
        pytest.param("20", 1, id="written since"),
        pytest.param("05", 3, id="archived, or not read before"),
        pytest.param("25", 1, id="the commit was taken back"),
        pytest.param("99", 0, id="the table was built anew with an earlier clock"),
    ],
)
def test_whatever_became_of_its_history_no_file_is_compared(tmp_path: Path, after: str, commits: int) -> None:
    uri = table_in(tmp_path, "10", "20", "30")
    changes = changed_files(uri, after, "30", is_followed=False)
    assert (changes, changes.is_empty) == (ChangedFiles(after, "30", commits), True)


def test_history_that_is_gone_is_still_said_of_a_followed_input_and_of_a_table_without_commits(tmp_path: Path) -> None:
    with pytest.raises(HistoryGone, match="are archived"):
        changed_files(table_in(tmp_path / "followed", "10", "20"), "05", "20")
    with pytest.raises(HistoryGone, match="has no commit"):
        changed_files(table_in(tmp_path / "empty"), "05", "05", is_followed=False)
