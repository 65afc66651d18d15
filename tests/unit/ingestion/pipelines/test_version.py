"""Whether rows that a pipeline made before its files changed are those that it would make now."""

from __future__ import annotations

import json

import pytest

from ingestion.domain.pipelines.plan import changes_between, makes_other_rows
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.domain.pipelines.version import PipelineVersion, version_of
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM

TEXTS = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
IGNORED = PIPELINE.replace("airlines: airlines", "airlines: {dataset: airlines, changes: ignored}")
TRANSFORMED = PIPELINE + "transformers:\n  - python: fares.py:round_fares\n"


def version(code: str = "", **texts: str) -> PipelineVersion:
    files = {**TEXTS, **{name.replace("_", "."): text for name, text in texts.items()}}
    pipeline = read_pipeline(files)
    return version_of(pipeline, files, {each.code: code for each in pipeline.transformers})


def changed(before: PipelineVersion, after: PipelineVersion) -> str:
    return after.changes_since(json.loads(json.dumps(before.note)))


CHANGES = {
    "another aggregate": ({"transform_sql": TRANSFORM.replace("sum(f.delay)", "max(f.delay)")}, "SELECT"),
    "another type": ({"table_sql": TABLE.replace("DECIMAL(12, 2)", "DOUBLE")}, "columns"),
    "precombine": ({"pipeline_yaml": PIPELINE + "precombine: flights\n"}, "precombine"),
    "another input": ({"pipeline_yaml": PIPELINE.replace("airlines: airlines", "airlines: carriers")}, "inputs"),
    "a transformer": ({"pipeline_yaml": TRANSFORMED}, "transformers"),
    "a comment, spaces and cases": ({"transform_sql": "-- new\n" + TRANSFORM.replace("SELECT", "select ")}, ""),
    "audits": ({"pipeline_yaml": PIPELINE + "audits:\n  some: rows(this) > 0\n"}, ""),
    "the schedule": ({"pipeline_yaml": PIPELINE.replace("30m", "commit")}, ""),
    "the operation": ({"pipeline_yaml": PIPELINE + "operation: insert_overwrite\n"}, ""),
    "resources": ({"pipeline_yaml": PIPELINE + "resources:\n  memory: 4g\n"}, ""),
    "what is about the dataset": ({"pipeline_yaml": PIPELINE.replace("tier: 2", "tier: 1") + "description: x\n"}, ""),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_rows_are_others_where_the_plan_makes_all_rows_anew(what: str) -> None:
    texts, kind = CHANGES[what]
    after = {**TEXTS, **{name.replace("_", "."): text for name, text in texts.items()}}
    assert makes_other_rows(changes_between(read_pipeline(TEXTS), read_pipeline(after))) is bool(kind)
    assert changed(version(), version(**texts)) == (
        f"the pipeline has changed since these rows were made ({kind})" if kind else ""
    )


def test_an_input_whose_changes_were_ignored_has_changed_unseen() -> None:
    no_key = TRANSFORM.replace("a.name AS airline", "f.carrier AS airline, max(a.name) AS name").replace(
        "a.name\n", "f.carrier\n"
    )
    followed, ignored = version(transform_sql=no_key), version(transform_sql=no_key, pipeline_yaml=IGNORED)
    assert changed(ignored, followed) == "changes of `airlines` were ignored until now"
    assert changed(followed, ignored) == ""


def test_other_code_of_a_transformer_makes_other_rows() -> None:
    before, after = (version(code, pipeline_yaml=TRANSFORMED) for code in ("a" * 64, "b" * 64))
    assert changed(before, before) == ""
    assert changed(before, after) == "the pipeline has changed since these rows were made (code of transformers)"


def test_the_same_files_make_the_same_rows_however_their_select_is_normalised() -> None:
    before = version()
    elsewhere = PipelineVersion(before.files, {**before.facts, "SELECT": "another"}, before.followed)
    assert changed(elsewhere, before) == ""


def test_a_table_that_an_earlier_lakehub_made_has_the_rows_of_the_pipeline() -> None:
    assert version().changes_since(None) == ""


def test_a_note_is_the_one_that_is_read_back() -> None:
    assert json.loads(json.dumps(version().note)) == version().note
