"""Rows that do not pass a pipeline's audits are not committed: they are kept, with the reasons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ingestion.domain.pipelines.definition import INSERT_OVERWRITE, Audit
from ingestion.spark.contract.report import JobReport
from ingestion.spark.etl import few_rows
from ingestion.spark.loading.small_batches import MAX_ROWS
from ingestion.spark.tables.timeline import Timeline
from quality.audits import judging
from quality.engines.scans.scan import Limits
from tests.spark.pipeline_lake import NOTHING, PipelineLake
from tests.spark.test_pipelines import DAYS, TABLES, WIDE

AUDITS = {
    "delays are sane": "outside(this.delay, -60, 1440) == 0",
    "few flights name no airline": "nulls(this.airline) / rows(this) < 60%",
    "a day has flights": "rows(this) > 0",
    "carriers are known": "unmatched(this.carrier, airlines.carrier) / rows(this) <= 50%",
}
WITH_AUDITS = replace(WIDE, audits=tuple(Audit(name, test) for name, test in AUDITS.items()))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> PipelineLake:
    """40 flights of four days, of which a third names an airline that there is not."""
    lake = PipelineLake(spark, tmp_path, TABLES, {"wide": WITH_AUDITS})
    days = [f"2013-01-{day:02}" for day in range(1, 5)]
    lake.put("flights", [(n, days[n % 4], f"N{n % 5}", ("UA", "AA", "DL")[n % 3], n) for n in range(40)])
    lake.put("airlines", [("UA", "United"), ("AA", "American")])
    lake.put("planes", [("N0", "Boeing"), ("N1", "Airbus")])
    return lake


def refused(report: JobReport) -> dict[str, dict[str, Any]]:
    """The audits, by name."""
    assert report.status == "refused", report.error
    return {audit["audit"]: audit for audit in report.output["refused"]["audits"]}


def kept_rows(report: JobReport) -> int:
    return int(pq.read_table(report.output["refused"]["kept_at"].removeprefix("file://")).num_rows)


def test_partitions_that_are_made_anew_as_a_whole_are_judged_before_they_are_replaced(lake: PipelineLake) -> None:
    """Also the one that would be left without rows."""
    audits = (Audit("a day has flights", "rows(this) > 0"), Audit("few flights", "maximum(this.flights) < 100"))
    lake = replace(lake, pipelines={"wide": replace(DAYS, operation=INSERT_OVERWRITE, audits=audits)})
    assert lake.run("bootstrap").error is None
    before, commits = lake.stored("wide").collect(), len(Timeline(lake.uri("wide")).commits())
    lake.remove("flights", [(n, "2013-01-01", "", "", 0) for n in range(0, 40, 4)])
    (audit,) = refused(lake.run("incremental")).values()
    assert (audit["audit"], audit["partitions"]) == ("a day has flights", ("2013-01-01",))
    assert (sorted(lake.stored("wide").collect()), len(Timeline(lake.uri("wide")).commits())) == (
        sorted(before),
        commits,
    )
    assert replace(lake, is_audited=False).run("incremental").error is None
    assert lake.differences("wide") == NOTHING


def test_a_first_load_that_does_not_pass_makes_no_table(lake: PipelineLake) -> None:
    lake.put("flights", [(7, "2013-01-04", "N2", "AA", 9_999), (8, "2013-01-01", "N2", "AA", -61)])
    report = lake.run("bootstrap")
    (audit,) = refused(report).values()
    assert {*audit["partitions"]} == {"2013-01-01", "2013-01-04"}
    assert (audit["columns"], sorted(audit["rows"])) == (("id", "delay"), [("7", "9999"), ("8", "-61")])
    assert kept_rows(report) == 40
    assert "2013-01" in str(report.error)
    assert Timeline(lake.uri("wide")).latest_completion() == ""
    lake.put("flights", [(7, "2013-01-04", "N2", "AA", 5), (8, "2013-01-01", "N2", "AA", 5)])
    assert lake.run("bootstrap").error is None
    assert lake.differences("wide") == NOTHING
    assert not Path(report.output["refused"]["kept_at"].removeprefix("file://")).exists()


@pytest.mark.parametrize("most_rows", [0, MAX_ROWS])
def test_a_change_that_does_not_pass_is_not_committed_until_it_is_mended(
    lake: PipelineLake, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "MAX_ROWS", most_rows)
    assert lake.run("bootstrap").error is None
    before = Timeline(lake.uri("wide")).latest_completion()
    checkpoint = Timeline(lake.uri("wide")).checkpoint()
    # A day without flights; a flight that moves and is late; an airline less.
    lake.remove("flights", [(n, "2013-01-01", "", "", 0) for n in range(0, 40, 4)])
    lake.put("flights", [(1, "2013-01-02", "N0", "UA", 2_000)])
    lake.remove("airlines", [("AA", "")])
    report = lake.run("incremental")
    audits = refused(report)
    assert {name: {*audit["partitions"]} for name, audit in audits.items()} == {
        "delays are sane": {"2013-01-02"},
        "few flights name no airline": {"2013-01-02", "2013-01-03", "2013-01-04"},
        "a day has flights": {"2013-01-01"},
        "carriers are known": {"2013-01-02", "2013-01-03", "2013-01-04"},
    }
    assert Timeline(lake.uri("wide")).latest_completion() == before
    assert lake.run("incremental").status == "refused", "the changes are still to come"
    # It is judged as a whole: a day's rows that did not change count as well.
    assert audits["few flights name no airline"]["observed"] in ("60%", "70%")
    assert kept_rows(report) == 10, "the flights of the airline that went"
    lake.put("airlines", [("AA", "American")])
    lake.put("flights", [(1, "2013-01-02", "N0", "UA", 20), (0, "2013-01-01", "N0", "UA", 20)])
    mended = lake.run("incremental")
    assert (mended.status, mended.error) == ("succeeded", None)
    assert lake.differences("wide") == NOTHING
    assert Timeline(lake.uri("wide")).checkpoint() != checkpoint


def test_a_person_may_publish_what_was_refused_or_leave_it_out(lake: PipelineLake) -> None:
    assert lake.run("bootstrap").error is None
    lake.put("flights", [(1, "2013-01-02", "N0", "UA", 2_000)])
    left_out = lake.run("incremental").output["refused"]["position"]
    assert {*left_out} == {"flights", "planes", "airlines"}
    lake.skip_to = left_out
    dropped = lake.run("incremental")
    assert (dropped.status, dropped.counts.applied) == ("succeeded", 0)
    lake.skip_to = {}
    assert lake.run("incremental").status == "nothing_to_do"
    assert len(lake.differences("wide")["recomputed"]) == 1
    lake.put("flights", [(2, "2013-01-03", "N0", "UA", 3_000)])
    assert lake.run("incremental").status == "refused"
    lake.is_audited = False
    assert lake.run("incremental").error is None
    assert [row[0] for row in lake.differences("wide")["recomputed"]] == [1], "what was left out is for a backfill"
    assert lake.run("backfill", partitions=("2013-01-02",)).error is None
    assert lake.differences("wide") == NOTHING
    lake.is_audited = True
    assert lake.run("backfill", partitions=("2013-01-02",)).status == "nothing_to_do", (
        "it holds no other rows than it held"
    )


def test_a_table_without_partitions_and_an_audit_that_cannot_be_judged(spark: SparkSession, tmp_path: Path) -> None:
    days = replace(
        DAYS, partition="", audits=(Audit("flights", "sum(this.flights) < 20"), Audit("names", "sum(this.airline) > 0"))
    )
    lake = PipelineLake(spark, tmp_path, TABLES, {"wide": days})
    lake.put("flights", [(n, "2013-01-01", "N0", "UA", n) for n in range(20)])
    lake.put("airlines", [("UA", "United")])
    audits = refused(lake.run("bootstrap"))
    assert (audits["flights"]["observed"], audits["flights"]["threshold"]) == ("20", "< 20")
    assert "not a number" in audits["names"]["cause"]


def test_rows_that_are_all_made_anew_are_judged_with_the_days_that_they_empty(lake: PipelineLake) -> None:
    """Also where nothing is left at all."""
    assert lake.run("bootstrap").error is None
    lake.remove("flights", [(n, "2013-01-01", "", "", 0) for n in range(0, 40, 4)])
    report = lake.run("bootstrap", replace=True)
    assert {name: audit["partitions"] for name, audit in refused(report).items()} == {"a day has flights": ("2013-01-01",)}  # fmt: skip
    for day in (2, 3, 4):
        lake.remove("flights", [(n, f"2013-01-0{day}", "", "", 0) for n in range(day - 1, 40, 4)])
    audits = refused(lake.run("bootstrap", replace=True))
    assert {*audits["a day has flights"]["partitions"]} == {f"2013-01-0{day}" for day in (1, 2, 3, 4)}
    assert lake.stored("wide").count() == 40


def test_what_cannot_be_counted_passes_nothing(lake: PipelineLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as more partitions than are told apart: each measure fails, and so does each audit."""
    monkeypatch.setattr(judging, "_LIMITS", Limits(max_rows=1))
    audits = refused(lake.run("bootstrap"))
    assert {*audits} == {*AUDITS}
    assert "more than 1 groups" in audits["a day has flights"]["cause"]


def test_the_rest_of_the_job_is_in_the_group_of_the_job(lake: PipelineLake) -> None:
    """By which it is cancelled at its deadline."""
    context = lake.spark.sparkContext
    context.setJobGroup("the-job", "whole")
    try:
        assert lake.run("bootstrap").error is None
        assert context.getLocalProperty("spark.jobGroup.id") == "the-job"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # takes it away
