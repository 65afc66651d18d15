"""What a change of a pipeline's files means, and columns that no input has."""

from __future__ import annotations

import pytest

from ingestion.domain.pipelines.plan import Effect, changes_between, digest_of, makes_other_rows
from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.domain.pipelines.reading import read_pipeline
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM

COLUMNS = {"flights": ("id", "day", "carrier", "delay", "at"), "airlines": ("carrier", "name")}


def changes(
    table: str = TABLE, pipeline: str = PIPELINE, transform: str = TRANSFORM
) -> dict[str, tuple[str, str, str]]:
    before = read_pipeline({"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM})
    after = read_pipeline({"table.sql": table, "pipeline.yaml": pipeline, "transform.sql": transform})
    made = changes_between(before, after)
    assert makes_other_rows(made) is any(each.effect is Effect.ALL_ROWS for each in made)
    return {each.what: (each.before, each.after, str(each.effect)) for each in made}


def test_the_same_in_other_words_changes_nothing() -> None:
    assert changes(transform=TRANSFORM.lower().replace("<src>", "<SRC>") + "\n-- a comment\n") == {}
    assert changes(pipeline="# a comment\n" + PIPELINE) == {}


def test_what_is_about_the_dataset_or_later_runs_leaves_the_rows_as_they_are() -> None:
    audits = "description: By day\naudits:\n  some: rows(this) > 0\n"
    audits += "operation: insert_overwrite\n"
    assert changes(pipeline=PIPELINE.replace("tier: 2", "tier: 1").replace("30m", "1h") + audits) == {
        "operation": ("upsert", "insert_overwrite", "later runs"),
        "tier": ("2", "1", "settings"),
        "description": ("", "By day", "settings"),
        "every": ("0:30:00", "1:00:00", "later runs"),
        "audit some": ("", "rows(this) > 0", "later runs"),
    }


def test_an_input_that_is_not_followed_any_more_was_followed_until_now() -> None:
    ignored = PIPELINE.replace("airlines: airlines", "airlines: {dataset: airlines, changes: ignored}")
    by_carrier = TRANSFORM.replace("a.name", "f.carrier")
    with_all, without = (read_pipeline({"table.sql": TABLE, "pipeline.yaml": file, "transform.sql": by_carrier}) for file in (PIPELINE, ignored))  # fmt: skip
    (change,) = changes_between(with_all, without)
    assert (change.what, change.before, change.after, str(change.effect)) == ("input airlines", "airlines", "airlines, changes ignored", "later runs")  # fmt: skip
    assert [each.effect for each in changes_between(without, with_all)] == [Effect.ALL_ROWS]


def test_other_columns_another_select_or_input_may_make_other_rows() -> None:
    more = changes(
        table=TABLE.replace("delay DECIMAL(12, 2)", "delay DOUBLE, longest INT"),
        transform=TRANSFORM.replace("AS delay\n", "AS delay, max(f.delay) AS longest\n"),
    )
    assert {what: effect for what, (_, _, effect) in more.items()} == {"column delay": "all rows", "column longest": "all rows", "SELECT": "all rows"}  # fmt: skip
    assert more["column delay"][:2] == ("decimal(12,2)", "double")
    other = PIPELINE.replace("airlines: airlines", "airlines: carriers") + "precombine: flights\n"
    assert changes(pipeline=other) == {"precombine": ("", "flights", "all rows"), "input airlines": ("airlines", "carriers", "all rows")}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("sum(f.delay)", "sum(f.dely)", "transform.sql:1: `flights` has no column `dely`. Did you mean `delay`?"),
        ("f.carrier = a.carrier", "f.carrier = a.carier", "transform.sql:2: `airlines` has no column `carier`. Did you mean `carrier`?"),
        ("sum(f.delay)", "sum(dely)", "transform.sql:1: No input has a column `dely`. Did you mean `delay`?"),
    ],
)  # fmt: skip
def test_a_column_that_no_input_has_is_named(old: str, new: str, problem: str) -> None:
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM.replace(old, new)}
    with pytest.raises(BadPipeline) as bad:
        read_pipeline(texts, COLUMNS, is_strict=True)
    assert [str(each) for each in bad.value.problems] == [problem]


@pytest.mark.parametrize("sum_", ["sum(delay)", "sum(f.delay) + max(at.delay)", "max(f.a.delay)"])
def test_aliases_and_parts_of_values_are_no_unknown_columns(sum_: str) -> None:
    transform = TRANSFORM.replace("sum(f.delay)", sum_).replace(
        "GROUP BY f.day, a.name", "GROUP BY f.day, a.name HAVING flights > 1"
    )
    read_pipeline({"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": transform}, COLUMNS, is_strict=True)
    read_pipeline(
        {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": transform},
        {"flights": COLUMNS["flights"]},
        is_strict=True,
    )


def test_a_column_that_the_source_has_lost_is_not_missed_by_jobs() -> None:
    """The table of the lake has it still. Of an input whose columns are not known nothing is missed."""
    transform = TRANSFORM.replace("sum(f.delay)", "sum(f.dely)")
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": transform}
    read_pipeline(texts, COLUMNS)
    read_pipeline(texts, {"flights": (), "airlines": COLUMNS["airlines"]}, is_strict=True)
    unnamed = {**texts, "transform.sql": TRANSFORM.replace("sum(f.delay)", "sum(dely)")}
    read_pipeline(unnamed, {"flights": (), "airlines": COLUMNS["airlines"]}, is_strict=True)


def test_a_digest_is_of_what_files_say_and_not_of_their_order() -> None:
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
    assert digest_of(texts) == digest_of(dict(reversed(texts.items())))
    assert digest_of([texts, {}]) != digest_of([{**texts, "table.sql": TABLE + " "}, {}]) != digest_of([None, {}])
