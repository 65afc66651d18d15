"""The three files of a pipeline: what they say, and what is wrong in them, with the line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest
import yaml

from ingestion.domain.pipelines import pipeline_file
from ingestion.domain.pipelines.definition import PipelineInput
from ingestion.domain.pipelines.problems import MAX_PROBLEMS, BadPipeline
from ingestion.domain.pipelines.reading import read_pipeline
from lakehub.kernel.suggest import MAX_HINTS, did_you_mean

TABLE = """CREATE TABLE flights_by_day (
  day STRING,
  airline STRING,
  flights BIGINT,
  delay DECIMAL(12, 2)
)
"""
PIPELINE = """name: flights-by-day
team: flight-ops
tier: 2
record_key: [day, airline]
partition: day
grain: day
every: 30m
source: flights
inputs:
  airlines: airlines
"""
TRANSFORM = """SELECT f.day, a.name AS airline, count(*) AS flights, sum(f.delay) AS delay
FROM <SRC> f JOIN airlines a ON f.carrier = a.carrier
GROUP BY f.day, a.name
"""


def problems(table: str = TABLE, pipeline: str = PIPELINE, transform: str = TRANSFORM) -> list[str]:
    try:
        read_pipeline({"table.sql": table, "pipeline.yaml": pipeline, "transform.sql": transform})
    except BadPipeline as bad:
        return [str(problem) for problem in bad.problems]
    return []


def test_what_they_say() -> None:
    read = read_pipeline({"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM})
    assert (read.name, read.team, read.tier, read.every) == ("flights-by-day", "flight-ops", 2, timedelta(minutes=30))
    assert (read.record_key, read.partition, read.grain) == (("day", "airline"), "day", "day")
    assert read.inputs == (PipelineInput("flights", "flights"), PipelineInput("airlines", "airlines"))
    assert read.columns.types == {"day": "string", "airline": "string", "flights": "long", "delay": "decimal(12,2)"}
    assert "FROM `flights` AS f" in read.transform


def test_hudis_names_of_options_are_taken() -> None:
    hudi = PIPELINE.replace("record_key: [day, airline]", "hoodie.datasource.write.recordkey.field: day,airline")
    hudi = hudi.replace("partition: day", "hoodie.datasource.write.partitionpath.field: day")
    hudi += "hoodie.datasource.write.operation: upsert\nhoodie.datasource.write.precombine.field: flights\n"
    read = read_pipeline({"table.sql": TABLE, "pipeline.yaml": hudi, "transform.sql": TRANSFORM})
    assert (read.record_key, read.partition, read.precombine) == (("day", "airline"), "day", "flights")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("tier: 2", "tier: 9", "pipeline.yaml:3: `tier` is '9': it is a number from 0, the highest, to 5."),
        ("record_key:", "record_keys:", "pipeline.yaml:4: There is no field `record_keys`. Did you mean `record_key`?"),
        ("team: flight-ops\n", "", "pipeline.yaml: `team` is missing."),
        ("every: 30m", "every: soon", "pipeline.yaml:7: `every` is 'soon': write a duration from 30s to 366d, such as 15m or 2h, or `commit`."),
        ("tier: 2", "tier: 2\noperation: overwrite", "pipeline.yaml:4: `operation` is 'overwrite'. Did you mean `insert_overwrite`?"),
        ("[day, airline]", "airline\noperation: insert_overwrite", "pipeline.yaml:5: `operation` is `insert_overwrite`, which recomputes whole partitions: name the column of the partition in `partition`, and in `record_key` too, so that no key lies in two. Or leave it out."),
        ("grain: day", "grain: dya", "pipeline.yaml:6: `grain` is 'dya'. Did you mean `day`?"),
        ("[day, airline]", "[day, arline]", "pipeline.yaml:4: `record_key` names `arline`, which table.sql lacks. Did you mean `airline`?"),
        ("  airlines: airlines", "  airlines: [airlines", "pipeline.yaml:11: The YAML cannot be read: expected ',' or ']', but got '<stream end>'."),
        ("tier: 2", "tier: &x 2", "pipeline.yaml:3: Anchors and aliases are not taken: write the value out."),
        ("[day, airline]", "[day, airline, day]", "pipeline.yaml:4: `record_key` names `day` more than once."),
        ("tier: 2", "tier: 2\ntier: 3", "pipeline.yaml:4: `tier` is given twice."),
        ("  airlines: airlines", "  airlines: {dataset: airlines, changes: never}", "pipeline.yaml:10: `changes` is `followed` or `ignored`."),
        ("  airlines: airlines", "  airlines: flights-by-day", "pipeline.yaml:10: The input `airlines` is the target itself."),
        ("  airlines: airlines", "  lakehub_any_x: airlines", "pipeline.yaml:10: No input is called `lakehub_any_x`: names that begin with `lakehub_` are Lakehub's own."),
        ("source: flights", "source: Flights!", "pipeline.yaml:8: `source` is 'Flights!': it has the name of a dataset."),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_yaml_is_told_with_its_line(old: str, new: str, expected: str) -> None:
    assert expected in problems(pipeline=PIPELINE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("flights BIGINT", "flights BIGNUM", "table.sql:4: "),
        ("flights BIGINT", "`a b` BIGINT", "table.sql: "),
        ("CREATE TABLE flights_by_day (", "SELECT 1 (", "table.sql"),
        ("  airline STRING,\n", "  airline STRING,\n  Airline STRING,\n", "table.sql: The column `airline` is there more than once."),
        ("day STRING", "day BINARY", "pipeline.yaml:4: `record_key` names `day`, a binary"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_table_is_told(old: str, new: str, expected: str) -> None:
    assert any(expected in problem for problem in problems(table=TABLE.replace(old, new))), problems(
        table=TABLE.replace(old, new)
    )


def test_what_a_byte_order_mark_precedes_is_read() -> None:
    assert problems("\ufeff" + TABLE, "\ufeff" + PIPELINE, "\ufeff" + TRANSFORM) == []


def test_of_a_yaml_that_cannot_be_read_that_alone_is_told() -> None:
    (problem,) = problems(pipeline=PIPELINE.replace("  airlines", "\tairlines"))
    assert problem.startswith("pipeline.yaml:10: The YAML cannot be read: found character '\\t'")


def test_a_decimal_has_no_digits_behind_the_point_unless_it_says_so() -> None:
    table = TABLE.replace("flights BIGINT", "flights DECIMAL, n DECIMAL(3), some ARRAY<STRUCT<decimal: NUMERIC(4)>>")
    select = TRANSFORM.replace("AS flights", "AS flights, 1 AS n, NULL AS some")
    read = read_pipeline({"table.sql": table, "pipeline.yaml": PIPELINE, "transform.sql": select})
    assert [read.columns.types[name] for name in ("flights", "n", "some")] == [
        "decimal(10,0)",
        "decimal(3,0)",
        "array<struct<decimal:decimal(4,0)>>",
    ]


@pytest.mark.parametrize("declared", ["airline", "day, airline", "day STRING, airline STRING", "days(day)"])
def test_a_table_is_partitioned_as_both_files_say(declared: str) -> None:
    (problem,) = problems(TABLE + f"PARTITIONED BY ({declared})")
    assert problem.startswith("table.sql: It is `PARTITIONED BY (")
    assert "`partition` in pipeline.yaml is `day`" in problem
    assert problems(TABLE + "USING hudi PARTITIONED BY (`Day`)") == []


def test_files_that_an_earlier_version_accepted_can_still_be_read() -> None:
    """Otherwise their runs would fail after the upgrade."""
    select = "-- <SRC>\n" + TRANSFORM.replace("<SRC>", "flights")
    texts = {"table.sql": TABLE + "PARTITIONED BY (airline)", "pipeline.yaml": PIPELINE, "transform.sql": select}
    assert len(problems(texts["table.sql"], PIPELINE, select)) == 2
    assert read_pipeline(texts, is_registered=True).partition == "day"


def test_the_mark_is_replaced_outside_of_texts_and_comments_alone() -> None:
    select = TRANSFORM.replace("a.name AS airline", "concat(a.name, '<SRC>', \"it's <src>\", '\\'<SRC>') AS airline")
    select = f"-- it's <SRC>\n/* <SRC> ' */ {select.replace('BY f.day, a.name', 'BY f.day, 2')}"
    read = read_pipeline({"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": select})
    assert r"CONCAT(a.name, '<SRC>', 'it\'s <src>', '\'<SRC>')" in read.transform
    assert "FROM `flights` AS f" in read.transform


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (TRANSFORM.replace("<SRC>", "`<SRC>`"), "transform.sql:2: The query may not read `<SRC>`"),
        (TRANSFORM.replace("<SRC>", "flights"), "transform.sql: `<SRC>` is missing"),
        ("-- <SRC>\n" + TRANSFORM.replace("<SRC>", "flights"), "transform.sql: `<SRC>` is missing"),
        (TRANSFORM.replace("JOIN airlines a", "JOIN arlines a"), "transform.sql:2: The query may not read `arlines`. Did you mean `airlines`?"),
        (TRANSFORM + "; DROP TABLE x", "One SELECT is wanted, not 2 statements."),
        ("INSERT INTO t " + TRANSFORM, "One SELECT is wanted"),
        ("SELECT * FROM <SRC> JOIN parquet.`/etc/passwd` ON true JOIN airlines", "transform.sql:1: The query reads `/etc/passwd` of a schema"),
        (TRANSFORM.replace("JOIN airlines a", "JOIN upper('airlines') a"), "transform.sql:2: The query reads what is no table"),
        (TRANSFORM.replace("count(*)", "reflect('java.lang.System', 'exit', 1)"), "transform.sql:1: The function reflect is not known to only compute"),
        (TRANSFORM.replace("count(*)", "max(current_timestamp())"), "changes with the clock or by chance"),
        (TRANSFORM.replace("count(*)", "max(`current_date`)"), "`current_date` changes with the clock or by chance"),
        (TRANSFORM.replace("count(*)", "max(LOCALTIMESTAMP)"), "LOCALTIMESTAMP"),
        (TRANSFORM.replace("count(*)", "max(rand())"), "rand"),
        (TRANSFORM.replace("count(*)", "first(f.delay)"), "transform.sql:1: FIRST(f.delay) takes rows in whatever order they are read"),
        (TRANSFORM.replace("SELECT", "SELCT"), "transform.sql:"),
        (TRANSFORM + "LIMIT 5", "What a change reaches cannot be said. It has LIMIT"),
        (TRANSFORM.replace(", a.name\n", "\n"), "The key `airline` is not grouped by: add `a.name` to GROUP BY."),
        (TRANSFORM.replace(" JOIN", " LEFT JOIN"), "The key `airline` may come from `a`, which is joined by LEFT JOIN"),
        (TRANSFORM.replace(" JOIN", " FULL JOIN"), "It has a FULL JOIN: write it with JOIN or LEFT JOIN."),
        (TRANSFORM.replace("sum(f.delay) AS delay", "sum(f.delay) AS dely"), "The SELECT has no column `delay` of its own"),
        ("WITH x AS (SELECT 1 AS y) " + TRANSFORM, "It reads no table: write `FROM <SRC>`."),
        (TRANSFORM.replace("count(*)", "count(*) OVER (ORDER BY f.day)"), "It has a window without PARTITION BY"),
        ("SELECT f.day, 'x' AS airline, 1 AS flights, f.delay FROM <SRC> f", "The input `airlines` is not read"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_select_is_told(transform: str, expected: str) -> None:
    assert any(expected in problem for problem in problems(transform=transform)), problems(transform=transform)


def test_all_that_is_wrong_is_told_at_once() -> None:
    several = problems(TABLE.replace("BIGINT", "BIGNUM"), PIPELINE.replace("tier: 2", "tier: x"), "SELECT 1")
    assert {problem.partition(":")[0] for problem in several} == {"table.sql", "pipeline.yaml", "transform.sql"}


@pytest.mark.parametrize("text", ["", "a", "- 1", "x: " + "[" * 50, "\x00", "a: b\n" * 30_000, "? [a]\n: b"])
def test_no_text_is_more_than_refused(text: str) -> None:
    assert problems(pipeline=text)
    assert problems(table=text)
    assert problems(transform=text)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 25_000, "x: " + "[" * 9 + "]" * 9])
def test_what_is_nested_too_deep_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The time that YAML takes grows with the square of its depth: some of these would take hours."""
    read = list[object]()
    monkeypatch.setattr(yaml, "compose", read.append)
    assert "pipeline.yaml:1: It is nested more than 8 deep." in problems(pipeline=text)
    assert not read


def test_of_very_many_problems_the_first_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = set[str]()

    def search(word: str, names: Iterable[str]) -> str:
        searched.add(word)
        return did_you_mean(word, names)

    monkeypatch.setattr(pipeline_file, "did_you_mean", search)
    refused = problems(pipeline=PIPELINE + "".join(f"recordkey{number}: x\n" for number in range(500)))
    assert (len(refused), len(searched)) == (MAX_PROBLEMS + 1, MAX_HINTS)
    assert refused[-1] == "pipeline.yaml: 400 more problems are not shown: mend these first."


def test_audits_are_read_by_name_with_their_lines() -> None:
    audits = "audits:\n  no strays: unexpected(this.airline, 'AA') == 0\n  rows: 'rows(this) > 0'\n"
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE + audits, "transform.sql": TRANSFORM}
    read = read_pipeline(texts).audits
    assert [(audit.name, audit.test, audit.line) for audit in read] == [
        ("no strays", "unexpected(this.airline, 'AA') == 0", 12),
        ("rows", "rows(this) > 0", 13),
    ]


@pytest.mark.parametrize(
    ("audits", "why"),
    [
        ("audits: rows(this) > 0\n", "pipeline.yaml:11: `audits` gives each a name"),
        ("audits:\n  - rows(this) > 0\n", "pipeline.yaml:12: `audits` gives each a name"),
        ("audits:\n  empty:\n", "pipeline.yaml:12: The audit `empty` is one test"),
        ("audits:\n  many: [a, b]\n", "pipeline.yaml:12: The audit `many` is one test"),
        ('audits:\n  "a\\tb": rows(this) > 0\n', "pipeline.yaml:12: The audit 'a\\tb' has a name"),
        (f"audits:\n  {'x' * 61}: rows(this) > 0\n", "pipeline.yaml:12: The audit 'xxx"),
        ("audits:\n" + "".join(f"  a{n}: rows(this) > {n}\n" for n in range(51)), "pipeline.yaml:11: It has 51 audits, 50 at most."),
    ],
)  # fmt: skip
def test_audits_that_are_none_are_refused(audits: str, why: str) -> None:
    (problem,) = problems(pipeline=PIPELINE + audits)
    assert problem.startswith(why)


def test_more_inputs_than_a_pipeline_may_have_are_refused_without_a_look_at_each() -> None:
    many = "".join(f"  a{n}: A wrong name\n" for n in range(3_000))
    wrong = problems(pipeline=PIPELINE.replace("inputs:\n", f"inputs:\n{many}"))
    assert sum("names no dataset" in each for each in wrong) == 20
    assert "pipeline.yaml: It has 3,002 inputs, 20 at most: chain two pipelines." in wrong


def test_a_partition_is_named_by_texts_whole_numbers_or_dates() -> None:
    (problem,) = problems(
        table=TABLE.replace("day STRING", "day TIMESTAMP"), pipeline=PIPELINE.replace("[day, airline]", "[airline]")
    )
    assert problem.startswith("pipeline.yaml:5: `partition` names `day`, a timestamp")
