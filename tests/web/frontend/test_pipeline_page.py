"""The tab Pipeline of a modelled table: its graph, how far it is, its runs and its files."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ingestion.lake import readers
from ingestion.models import Backfill, Commit, JobKind, JobRun, JobState, Pipeline, RefusedBatch
from ingestion.pipelines.registering import LINEAGE_SOURCE, register_pipeline
from ingestion.runs.modelled_tables.progress import MAX_PENDING
from lakehub.accounts.models import Role
from lakehub.catalog.models import Dataset, DatasetCopy, Feed, FeedKind, LineageEdge
from lakehub.http.security_headers import POLICY
from tests import factories as given
from tests.factories import HOUR, MINUTE, NOW
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM

pytestmark = pytest.mark.django_db
PAGE = "/datasets/flights-by-day/pipeline"
MOST_QUERIES = 38


@pytest.fixture
def table() -> DatasetCopy:
    """Registered, and never run. `departures` is what the SELECT calls flights."""
    for name, columns in {"departures": ("id", "day", "carrier", "delay"), "carriers": ("carrier", "name")}.items():
        given.dataset(name, columns=[{"name": column, "type": "string", "nullable": True} for column in columns])
    return given.copy_of(register())


def register(old: str = "", new: str = "", transform: str = TRANSFORM) -> Dataset:
    pipeline = PIPELINE.replace("source: flights", "source: departures").replace("airlines: airlines", "airlines: carriers")  # fmt: skip
    texts = {"table.sql": TABLE, "pipeline.yaml": pipeline.replace(old, new), "transform.sql": transform}
    return register_pipeline(texts, actor="ana", now=NOW - HOUR).dataset


def shown(client: Client) -> str:
    """Without tags, in one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html_of(client)))


def html_of(client: Client) -> str:
    answer = client.get(PAGE)
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == POLICY
    return answer.content.decode()


def has_read(name: str, upto: datetime) -> None:
    copy = DatasetCopy.objects.get(dataset__name=name)
    readers.note_position(copy, "pipeline flights-by-day", f"{upto:%Y%m%d%H%M%S}000", actor="x", now=NOW)


def ran(copy: DatasetCopy, kind: JobKind = JobKind.INCREMENTAL, **report: Any) -> None:
    written = {"inserts": 12, "updates": 3_456, "deletes": 7}
    given.run(copy, kind, report={"status": "succeeded", "written": written, "phases": {"compute": 14.2, "write": 6.1}, "output": {}, **report})  # fmt: skip


def test_before_its_first_run_it_says_what_comes(table: DatasetCopy, page: Client) -> None:
    text = shown(page)
    assert "No table yet: its first run is planned within seconds of registering." in text
    assert "It has not run yet. The first run makes all rows" in text
    assert re.search("Never run – – departures – – 0 –", text)
    assert "no pipeline reads it" in text
    assert "What it does not see" not in text
    assert "None" not in text


def test_what_waits_is_told_at_each_input_and_copy(table: DatasetCopy, page: Client) -> None:
    ran(table, JobKind.BOOTSTRAP)
    departures = DatasetCopy.objects.get(dataset__name="departures")
    for minutes in (90, 25, 20):
        given.commit(departures, NOW - minutes * MINUTE)
    has_read("departures", NOW - HOUR)
    has_read("carriers", NOW - HOUR)
    text = shown(page)
    assert "2 commits wait in dc1, behind 25 min" in text
    assert re.search(r"dc1 Succeeded 25 min 2 departures 25 min 2 1 13:02", text)
    assert re.search(r"airlines carriers – 0 0 –", text)


def test_what_is_not_counted_to_its_end_says_so(table: DatasetCopy, page: Client) -> None:
    ran(table, JobKind.BOOTSTRAP)
    departures = DatasetCopy.objects.get(dataset__name="departures")
    for before in (NOW - 2 * HOUR, NOW - 30 * MINUTE):
        Commit.objects.bulk_create(
            Commit(
                copy=departures, instant=f"{before:%Y%m%d%H%M%S}{number:03}", completed_at=before, operation="upsert"
            )
            for number in range(MAX_PENDING)
        )
    for name in ("departures", "carriers"):
        has_read(name, NOW - HOUR)
    assert re.search(r"dc1 Succeeded 30 min 1,000 departures 30 min 1,000 1,000 ", shown(page))
    for minutes in (20, 70):
        given.commit(departures, NOW - minutes * MINUTE)
    assert re.search(r"dc1 Succeeded 30 min over 1,000 departures 30 min over 1,000 over 1,000 ", shown(page))


def test_its_runs_tell_rows_commits_and_cost(table: DatasetCopy, page: Client) -> None:
    inputs = {"departures": {"commits": 2, "files": 8, "bytes": 3_400_000}, "airlines": {"commits": 1, "files": 1, "bytes": 1_000}}  # fmt: skip
    ran(table, output={"inputs": inputs, "made_anew": "the commits of <b>x</b> are archived"}, core_s=1_023.44)
    text = shown(page)
    assert "All rows were recomputed: the commits of &lt;b&gt;x&lt;/b&gt; are archived" in text
    assert "9 files compared, 3.4 MB; compute 14 s, write 6 s; 1,023.4 core-seconds" in text
    assert re.search(r"dc1 Succeeded 13:32 1 min 3 12 3,456 7", text)


def test_a_run_that_failed_is_told_first_with_what_to_do(table: DatasetCopy, page: Client) -> None:
    ran(table, JobKind.BOOTSTRAP)
    run = given.run(table, state=JobState.FAILED, attempt=5, ended_at=NOW - 10 * MINUTE, error="No space left on device <script>x</script>")  # fmt: skip
    text = shown(page)
    assert "The load of changes into dc1 failed 5 times: the disk is full. The rows in dc1 stay as they were before." in text  # fmt: skip
    assert "No space left on device &lt;script&gt;" in text
    assert "<script>x" not in html_of(page)
    assert re.search(rf"try run {run.pk} again \. It is tried again by itself at 14:52 in (20|19) min", text)


def test_chained_pipelines_are_shown_with_what_is_between(table: DatasetCopy, page: Client) -> None:
    monthly, yearly, other = given.dataset("monthly"), given.dataset("yearly"), given.dataset("by-hand")
    for upstream, downstream in ((table.dataset, monthly), (monthly, yearly)):
        LineageEdge.objects.create(upstream=upstream, downstream=downstream, source=LINEAGE_SOURCE)
    given.edge(table.dataset, other)
    text = shown(page)
    assert "monthly No test yearly No test after monthly" in text
    assert "by-hand" not in text


def test_what_it_does_not_see_is_said(table: DatasetCopy, page: Client) -> None:
    by_carrier = TRANSFORM.replace("a.name", "f.carrier")
    register("airlines: carriers", "airlines: {dataset: carriers, changes: ignored}", by_carrier)
    text = shown(page)
    assert "Changes of carriers are not followed: rows made from them stay as they were" in text
    assert "carriers No test changes are not followed" in text


def test_an_input_that_is_gone_is_told(table: DatasetCopy, page: Client) -> None:
    Dataset.objects.filter(name="carriers").update(offboarded_at=NOW)
    text = shown(page)
    assert "carriers Gone register the pipeline without it, or restore the dataset" in text
    assert "No copy here" in text


def test_what_each_column_is_made_from_is_shown(table: DatasetCopy, page: Client) -> None:
    text = shown(page)
    assert "Columns what each is made from, by the SELECT" in text
    assert "day departures.day as it is airline carriers.name as it is" in text
    assert "flights no column: a constant, or rows that are counted delay departures.delay aggregated" in text
    assert "Which rows it has depends on carriers.carrier (joined by), carriers.name (grouped by), departures.carrier (joined by), departures.day (grouped by)." in text  # fmt: skip
    assert "Not every column is traced" not in text


def test_where_columns_cannot_be_traced_it_says_so(table: DatasetCopy, page: Client) -> None:
    Dataset.objects.filter(name="carriers").update(offboarded_at=NOW)
    text = shown(page)
    assert "Not every column is traced. The lake has no dataset `carriers`." in text
    assert "delay any column of the inputs" in text


def test_its_files_are_shown_as_they_are_and_whose(table: DatasetCopy, page: Client) -> None:
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": "SELECT '<script>alert(1)</script>'"}
    Pipeline.objects.update(files=texts, changed_by="<i>mallory</i>")
    html = html_of(page)
    assert "SELECT &#x27;&lt;script&gt;alert(1)&lt;/script&gt;&#x27;" in html
    assert "changed by &lt;i&gt;mallory&lt;/i&gt;" in html
    assert "<script>alert" not in html
    assert not re.search(r"\sstyle=|\son\w+=\"", html)


def test_its_transformers_are_shown_in_order_with_the_state_of_their_code(
    table: DatasetCopy, page: Client, tmp_path: Path, settings: Any
) -> None:
    assert "Transformers" not in shown(page)
    settings.LAKEHUB_TRANSFORMERS = str(tmp_path)
    for name in ("late.py", "early.py"):
        (tmp_path / name).write_text("def go(rows):\n    return rows\n")
    register("every: 30m", "every: 30m\ntransformers:\n  - python: late.py:go\n  - python: early.py:go")
    assert "Transformers in this order late.py:go As registered early.py:go As registered" in shown(page)
    (tmp_path / "late.py").write_text("def go(rows):\n    return rows.distinct()\n")
    text = shown(page)
    assert "late.py:go Changed since late.py was changed since it was registered, so runs fail." in text
    assert "early.py:go As registered" in text
    settings.LAKEHUB_TRANSFORMERS = ""
    assert "late.py:go Not known here" in shown(page)


def test_a_name_that_attacks_is_text(table: DatasetCopy, page: Client) -> None:
    Dataset.objects.filter(name="departures").update(name='"><img src=x onerror=alert(1)>')
    hostile = PIPELINE.replace("source: flights", "source: departures").replace("airlines: airlines", "airlines: '\"><img src=x onerror=alert(1)>'")  # fmt: skip
    Pipeline.objects.update(files={"table.sql": TABLE, "pipeline.yaml": hostile, "transform.sql": TRANSFORM})
    assert "<img" not in html_of(page)


def test_whoever_may_look_at_the_dataset_may_look_at_it(table: DatasetCopy, guest: Client, client: Client) -> None:
    assert guest.get(PAGE).status_code == 200
    assert client.get(PAGE).status_code == 302


def test_only_modelled_tables_have_it(table: DatasetCopy, page: Client) -> None:
    assert f'href="{PAGE}"' in page.get("/datasets/flights-by-day").content.decode()
    assert "/datasets/flights/pipeline" not in page.get("/datasets/flights").content.decode()
    assert "Dataset `flights` is not made by a pipeline." in page.get("/datasets/flights/pipeline").content.decode()
    orphan = given.dataset("orphan")
    Feed.objects.create(dataset=orphan, kind=FeedKind.PIPELINE, object="orphan")
    assert page.get("/datasets/orphan/pipeline").status_code == 404


def test_queries_do_not_grow_with_copies_runs_and_what_is_chained(table: DatasetCopy, page: Client) -> None:
    _grow(table, range(1))
    few = _queries(page)
    _grow(table, range(1, 6))
    assert _queries(page) == few
    assert few <= MOST_QUERIES


def _grow(table: DatasetCopy, numbers: range) -> None:
    for number in numbers:
        copy = given.copy(table.dataset, f"dc{number + 2}")
        ran(copy)
        given.backfill(copy).chunks.update(state="failed", error="No space left")
        LineageEdge.objects.create(upstream=table.dataset, downstream=given.dataset(f"next{number}"), source=LINEAGE_SOURCE)  # fmt: skip


def _queries(page: Client) -> int:
    with CaptureQueriesContext(connection) as queries:
        html_of(page)
    return len([query for query in queries if "clock_clockshift" not in query["sql"]])


def refused(copy: DatasetCopy, audit: str = "delays") -> RefusedBatch:
    failed = given.run(copy, state=JobState.FAILED, report={"status": "refused"}, error="The rows do not pass")
    audits = [{"audit": audit, "test": "outside(this.delay, -60, 1440) == 0", "partitions": ["2013-01-01"], "observed": "1", "threshold": "== 0", "cause": ""}]  # fmt: skip
    samples = [{"columns": ["day", "delay"], "rows": [["2013-01-01", "9999"], [None, "<b>"]]}]
    return RefusedBatch.objects.create(copy=copy, kind="incremental", run=failed, audits=audits, samples=samples, kept_at="file:///x", position={"flights": "1"}, refused_at=NOW)  # fmt: skip


def test_what_audits_refused_is_shown_with_rows_for_the_team_alone(client: Client, table: DatasetCopy) -> None:
    refused(table, audit="<script>alert(1)</script>")
    client.force_login(given.user("stranger"))
    page = html_of(client)
    assert "Refused in dc1" in page
    assert "<script>alert" not in page
    assert "It is <strong>1</strong>, and has to be <strong>== 0</strong>" in page
    assert "9999" not in page
    assert "Publish or drop" not in page
    assert "Correct what it names" not in page, "the refusal says what to do"
    member = given.user("member")
    given.member(member, table.dataset.team)
    client.force_login(member)
    page = html_of(client)
    assert "9999" in page
    assert "&lt;b&gt;" in page
    assert "Publish or drop" in page


def test_a_decision_is_made_on_the_page(client: Client, table: DatasetCopy) -> None:
    batch, member = refused(table), given.user("member")
    given.member(member, table.dataset.team)
    given.run(table, kind=JobKind.BOOTSTRAP)
    given.with_table(table)
    client.force_login(member)
    address = f"{PAGE}/refused/{batch.pk}"
    assert (
        "Choose what to do"
        in client.post(address, {"run": batch.run_id, "reason": "A storm"}, follow=True).content.decode()
    )
    assert "Say why" in client.post(address, {"run": batch.run_id, "decision": "drop"}, follow=True).content.decode()
    answer = client.post(address, {"run": batch.run_id, "decision": "drop", "reason": "A storm"}, follow=True)
    assert "goes past the changes" in answer.content.decode()
    assert "member has decided: A storm. Run" in shown(client)
    assert JobRun.objects.get(state=JobState.QUEUED).params == {"skip_to": {"flights": "1"}}
    client.force_login(given.user("stranger"))
    assert client.post(address, {"decision": "drop", "reason": "Again"}).status_code == 403


def test_backfills_show_how_far_they_are_and_what_failed_and_can_be_changed(table: DatasetCopy, client: Client) -> None:
    client.force_login(given.member(given.user("olga"), table.dataset.team, Role.ON_CALL).user)
    given.with_table(table)
    assert "No backfill yet. A backfill recomputes partitions" in shown(client)
    body = {"data_center": "dc1", "first": "2013-01-01", "last": "2013-01-25", "chunk_size": "10"}
    asked = client.post(f"{PAGE}/backfills", body, follow=True)
    assert "recomputes the partitions, in 3 chunks." in asked.content.decode()
    backfill = Backfill.objects.get()
    done, failed = backfill.chunks.filter(number=1), backfill.chunks.filter(number=2)
    done.update(state="succeeded", rows=1_234, began_at=NOW - 4 * MINUTE, ended_at=NOW)
    failed.update(state="failed", error="No space left")
    page = shown(client)
    assert "10 of 25 partitions done, 10 failed; 1,234 rows new, changed or deleted; about 2 min left." in page
    assert "Chunk 2, 2013-01-11 to 2013-01-20: No space left" in page
    assert re.findall(r'name="action" value="(\w+)"', html_of(client)) == ["pause", "cancel"]
    client.post(f"{PAGE}/backfills/{backfill.pk}", {"action": "pause"})
    assert re.findall(r'name="action" value="(\w+)"', html_of(client)) == ["resume", "cancel"]
    refused = client.post(f"{PAGE}/backfills", {**body, "first": "2013-02-01"}, follow=True)
    assert "lies after `last`" in refused.content.decode().replace("<code>", "`").replace("</code>", "`")


def test_who_may_not_rerun_is_not_offered_a_backfill(table: DatasetCopy, client: Client) -> None:
    given.backfill(table)
    client.force_login(given.user("anna"))
    page = html_of(client)
    assert "2026-11-16 to 2026-11-16" in page
    assert "Recompute partitions" not in page
    assert 'name="action"' not in page
