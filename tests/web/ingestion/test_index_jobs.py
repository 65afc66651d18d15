"""The index of a copy is verified and rebuilt by API, page and command; what is wrong is a finding until a later look finds it right."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.lake import commits
from ingestion.lake.index_findings import index_sentence
from ingestion.models import Finding, JobKind, JobRun, JobState
from ingestion.runs import job_runs, run_worker
from ingestion.runs.job_specs import job_spec_of, table_spec_of
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import VerifySpec
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.datasets.feed_options import checked_options
from lakehub.catalog.models import DatasetCopy, DatasetKind, Feed
from tests import factories as given
from tests.factories import NOW
from tests.web.ingestion import hudi_timeline
from tests.web.ingestion.conftest import FakeLauncher, worker_at

RIGHT = {"doubled": 0, "missing": 0, "misplaced": 0, "without_row": 0}


def look(copy: DatasetCopy, more: dict[str, Any] | None = None, **problems: int) -> JobRun:
    """A run of `verify_index` that has found these. `more`: of its output."""
    output = {
        "index": "record_index", "rows": 30_000, "entries": 30_000, "problems": RIGHT | problems,
        "examples": {name: ["7: the table has it in day=2026-11-03/f"] for name in problems},
    } | (more or {})  # fmt: skip
    launcher = FakeLauncher(lambda spec: JobReport(spec.run_id, SUCCEEDED, output=output))
    run = job_runs.request_run(given.with_table(copy), JobKind.VERIFY_INDEX, asked_by="ana", now=NOW)
    assert run_worker.run_next(worker_at(NOW, launcher)) == run
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED
    return run


def test_what_a_look_finds_is_a_finding_until_a_later_one_finds_nothing(copy: DatasetCopy) -> None:
    look(copy, missing=1200, without_row=3)
    finding = Finding.objects.get(kind="index_wrong")
    assert finding.detail["message"] == (
        "The index record_index was compared with 30,000 rows: 1,200 keys that the index does not know; "
        "3 keys that the index has without a row in the table, which does no harm. Rebuild the index."
    )
    assert finding.detail["examples"]["missing"] == ["7: the table has it in day=2026-11-03/f"]
    look(copy)
    assert not Finding.objects.filter(kind="index_wrong", cleared_at=None).exists()


def test_entries_without_a_row_alone_are_no_finding(copy: DatasetCopy) -> None:
    run = look(copy, without_row=3)
    assert not Finding.objects.exists()
    assert "3 keys that the index has without a row" in index_sentence(run.report["output"])


def test_a_look_at_a_sample_raises_the_finding_and_only_one_at_all_keys_clears_it(copy: DatasetCopy) -> None:
    look(copy, {"share": 0.01, "index": "hbase"}, misplaced=1)
    message = Finding.objects.get(cleared_at=None).detail["message"]
    assert "was compared with 30,000 rows (1% of the keys): 1 key that the index has in another place" in message
    assert message.endswith("Verify the index with `repairs`, which puts these entries right, or rebuild it.")
    look(copy, {"share": 0.01, "index": "hbase"})
    assert Finding.objects.filter(kind="index_wrong", cleared_at=None).exists()
    run = look(copy, {"index": "hbase", "repaired": {"misplaced": 1}})
    assert not Finding.objects.filter(kind="index_wrong", cleared_at=None).exists()
    sentence = index_sentence(run.report["output"])
    assert sentence.endswith(
        "and is right. Before that, entries were put right: 1 key that the index has in another place than the table."
    )


def test_what_a_repair_leaves_wrong_takes_a_rebuild(copy: DatasetCopy) -> None:
    look(copy, {"index": "hbase", "repaired": {"missing": 2}}, missing=1)
    assert Finding.objects.get().detail["message"].endswith("Rebuild the index.")


def test_wrong_entries_that_a_batch_has_met_are_a_finding_until_all_keys_are_compared(copy: DatasetCopy) -> None:
    for instant, facts in (("20261116050100000", {"corrected_entries": 1200}), ("20261116050200000", {})):
        hudi_timeline.commit(copy, instant, {"2026-11-16": (1, 0, 0)}, run=hudi_timeline.told_by("", **facts))
        commits.record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="index_wrong", cleared_at=None)
    assert finding.detail["message"].startswith(
        "Commit 20261116050100000: for 1,200 keys of the batch the index named a file without the key"
    )
    look(copy)
    assert not Finding.objects.filter(kind="index_wrong", cleared_at=None).exists()


def test_a_key_that_the_table_has_twice_takes_more_than_a_rebuild(copy: DatasetCopy) -> None:
    look(copy, doubled=1)
    assert "Look for another writer" in Finding.objects.get().detail["message"]


@pytest.mark.parametrize("kind", [JobKind.VERIFY_INDEX, JobKind.REBUILD_INDEX])
def test_the_command_asks_for_it(copy: DatasetCopy, kind: str) -> None:
    given.with_table(copy)
    out = StringIO()
    call_command("ingest", kind, "flights", "--json", stdout=out)
    assert JobRun.objects.get(pk=json.loads(out.getvalue())["run"]).kind == kind


def test_the_command_asks_for_a_repair_of_a_sample(copy: DatasetCopy) -> None:
    given.with_table(copy)
    Feed.objects.update(options={"index": "hbase"})
    call_command("ingest", "verify_index", "flights", "--sampled", "0.01", "--repairs", stdout=StringIO())
    run = JobRun.objects.get()
    assert run.params == {"sampled": 0.01, "repairs": True}
    assert AuditEntry.objects.latest("pk").detail["repairs"] is True
    spec, _ = job_spec_of(run, staging="file:///staging", ahead=timedelta(), now=NOW)
    assert spec.verify == VerifySpec(0.01, repairs=True)


def test_a_copy_without_a_table_has_no_index_to_look_at(copy: DatasetCopy) -> None:
    with pytest.raises(CommandError, match="Bootstrap it first"):
        call_command("ingest", "verify_index", "flights")


def test_the_spec_has_no_source_and_says_which_index(copy: DatasetCopy) -> None:
    launcher = FakeLauncher()
    job_runs.request_run(given.with_table(copy), JobKind.REBUILD_INDEX, asked_by="ana", now=NOW)
    run_worker.run_next(worker_at(NOW, launcher))
    ((spec, secrets),) = launcher.asked
    assert (spec.kind, spec.source, dict(secrets), spec.table.index) == ("rebuild_index", None, {}, "simple")


@pytest.mark.parametrize("kind", DatasetKind.values)
def test_the_table_knows_whether_its_rows_are_never_changed(copy: DatasetCopy, kind: str) -> None:
    copy.dataset.kind = kind
    table = table_spec_of(copy, checked_options({}), retention_hours=2)
    assert table.append_only is (kind == "append-only")


def on_the_page(client: Client, copy: DatasetCopy, role: str = "owner") -> Client:
    person = given.user(f"person-{role}")
    given.member(person, copy.dataset.team, role)
    client.force_login(person)
    return client


def test_the_page_asks_for_a_look_and_shows_what_it_found(client: Client, copy: DatasetCopy) -> None:
    page = on_the_page(client, given.with_table(copy))
    html = page.get("/datasets/flights/ingestion").content.decode()
    assert 'action="/datasets/flights/index"' in html
    page.post("/datasets/flights/index", {"kind": "verify_index", "data_center": "dc1"})
    run = JobRun.objects.get()
    assert (run.kind, AuditEntry.objects.latest("pk").action) == ("verify_index", "verify_index")
    job_runs.cancel_run(run, actor="ana", now=NOW)
    look(copy, misplaced=2)
    assert "2 keys that the index has in another place than the table" in text(page, "/datasets/flights/ingestion")


def test_the_page_repairs_an_index_whose_entries_are_its_own(client: Client, copy: DatasetCopy) -> None:
    page = on_the_page(client, given.with_table(copy))
    asked = {"kind": "verify_index", "data_center": "dc1", "repairs": "1"}
    assert 'name="repairs"' not in text(page, "/datasets/flights/ingestion")
    assert (
        "the only one that is put right key by key"
        in page.post("/datasets/flights/index", asked, follow=True).content.decode()
    )
    Feed.objects.update(options={"index": "hbase"})
    assert 'name="repairs"' in text(page, "/datasets/flights/ingestion")
    page.post("/datasets/flights/index", asked)
    assert JobRun.objects.get().params == {"repairs": True}


def test_the_page_runs_no_other_job_and_none_for_who_only_looks(client: Client, copy: DatasetCopy) -> None:
    page = on_the_page(client, given.with_table(copy))
    answer = page.post("/datasets/flights/index", {"kind": "drop", "data_center": "dc1"}, follow=True)
    assert "`drop` is no job on an index" in answer.content.decode()
    guest = on_the_page(Client(), copy, "viewer")
    assert 'action="/datasets/flights/index"' not in guest.get("/datasets/flights/ingestion").content.decode()
    asked: dict[str, Any] = {"kind": "verify_index", "data_center": "dc1"}
    assert guest.post("/datasets/flights/index", asked).status_code == 403
    assert not JobRun.objects.exists()


def text(page: Client, address: str) -> str:
    return page.get(address).content.decode()
