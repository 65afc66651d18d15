"""Specs and reports are strict: what is not known is refused by name, what is written is read back the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.report import IndexUse, JobReport, WrittenKeys
from ingestion.spark.contract.secret_refs import MissingSecret, resolve_secret
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.strict_json import ContractError
from tests.text_strategies import any_text

TABLE = {
    "name": "orders",
    "uri": "file:///lake/orders",
    "error_uri": "file:///lake/_errors/orders",
    "record_key": ["id"],
}
SOURCE = {"plugin": "sql", "url_ref": "env:SHOP_URL", "object": "orders"}


def spec(**fields: Any) -> str:
    return json.dumps({"run_id": "r", "kind": "bootstrap", "table": TABLE, "source": SOURCE, **fields})


def test_a_spec_is_read_back_as_it_was_written() -> None:
    read = JobSpec.from_json(spec(upto="2026-11-16T05:00:00Z", deadline_s=60))
    assert JobSpec.from_json(read.to_json()) == read
    assert read.deadline_s == 60.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"replcae": True}, "has the unknown field `replcae`. Did you mean `replace`?"),
        ({"replace": "yes"}, 'the spec.replace is "yes", but bool is wanted.'),
        ({"table": {**TABLE, "record_key": "id"}}, 'the spec.table.record_key is "id", but a list is wanted.'),
        ({"table": {**TABLE, "record_key": [1]}}, "the spec.table.record_key[0] is 1, but str is wanted."),
        ({"table": {**TABLE, "record_key": []}}, "has no record key"),
        (
            {"table": {**TABLE, "uri": "/lake/orders"}},
            "'/lake/orders', which is not a URI such as file:///lake/dc1/orders",
        ),
        ({"kind": "bootstrapp"}, "no job of the kind `bootstrapp`. Did you mean `bootstrap`?"),
        ({"source": None}, "needs a `source`"),
        ({"spec_version": 2}, "has version 2, but this program reads version 1"),
        ({"upto": "2026-11-16T05:00:00"}, "has no offset. Add one, as in 2026-11-16T05:00:00Z"),
        ({"upto": "yesterday"}, "is not an ISO 8601 time"),
        (
            {"kind": "backfill", "partitions": ["2026-11-16"]},
            "names `partitions` where the table has them, and only there",
        ),
        ({"kind": "delete"}, "needs `delete.keys` or `delete.share`"),
        ({"kind": "delete", "delete": {"share": 1.5}}, "a share lies above 0 and is at most 1"),
    ],
)
def test_a_bad_spec_is_refused_by_the_name_of_what_is_bad(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError) as refused:
        JobSpec.from_json(spec(**fields))
    assert message in str(refused.value)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ContractError, match="the spec lacks the field `run_id`"):
        JobSpec.from_json(json.dumps({"kind": "bootstrap", "table": TABLE}))


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(ContractError, match=r"spec\.json is not JSON"):
        JobSpec.from_json("{", source="spec.json")


def test_a_secret_is_found_by_its_reference_and_never_in_the_spec() -> None:
    read = JobSpec.from_json(spec())
    assert read.source is not None
    assert resolve_secret(read.source.url_ref, {"SHOP_URL": "sqlite:///shop.db"}) == "sqlite:///shop.db"
    with pytest.raises(MissingSecret, match="`SHOP_URL` was not given"):
        resolve_secret(read.source.url_ref, {})
    with pytest.raises(ContractError, match="expected the form env:NAME"):
        resolve_secret("sqlite:///shop.db", {})


@given(st.builds(RowCounts, *([st.integers(0, 99)] * 5)), st.dictionaries(any_text(4), st.integers()))
def test_a_report_is_read_back_as_it_was_written(counts: RowCounts, partitions: dict[str, int]) -> None:
    report = JobReport("r", "succeeded", counts=counts, partitions=partitions, written=WrittenKeys(1, 2, 3))
    assert JobReport.from_json(report.to_json()) == report
    report = replace(report, core_s=1.5, index_use=IndexUse(("rs1:16020", "rs2:16020"), 5, 2, 0.5, 70, 2))
    assert JobReport.from_json(report.to_json()) == report


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    JobReport("r", "succeeded").write(path)
    JobReport("r", "failed", error="late").write(path)
    assert JobReport.from_file(path).error == "late"
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_more_keys_than_events_are_not_accounted_for() -> None:
    assert JobReport("r", "succeeded", counts=RowCounts(read=2, applied=2), written=WrittenKeys(inserts=2)).is_accounted
    assert not JobReport(
        "r", "succeeded", counts=RowCounts(read=2, applied=2), written=WrittenKeys(inserts=3)
    ).is_accounted
    assert not JobReport("r", "succeeded", counts=RowCounts(read=3, applied=2)).is_accounted
