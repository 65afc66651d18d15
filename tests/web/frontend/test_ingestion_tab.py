"""The ingestion page: runs that wait, with why and until when; pipelines elsewhere, and the hooks that they report to."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from incidents.models import Incident
from ingestion.models import BlockedInput, JobKind, JobRun, JobState, Replica
from lakehub.catalog.models import Dataset, DatasetCopy
from quality.models import ExternalRun, PipelineHook
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW, day

PAGE = "/datasets/flights/ingestion"


@pytest.fixture
def run(flights: Dataset) -> JobRun:
    planes = make.copy_of(Dataset.objects.get(name="planes"))
    times = {"due_at": NOW + 9 * MINUTE, "started_at": None, "ended_at": None, "waits_since": NOW - HOUR}
    made = make.run(make.copy_of(flights), JobKind.BACKFILL, JobState.WAITING, **times)
    BlockedInput.objects.create(
        run=made,
        copy=planes,
        start=day("2026-11-16").start,
        end=day("2026-11-17").start,
        verdict="fail",
        reason="fail: sustained",
        incidents=[Incident.objects.order_by("pk").first().pk],  # type: ignore[union-attr]
    )
    return made


def words(browser: Client, where: str = PAGE) -> str:
    return words_of(browser.get(where))


def words_of(answer: object) -> str:
    html = answer.content.decode()  # type: ignore[attr-defined]  # a response of the test client
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def test_a_run_that_waits_says_for_what_and_until_when(page: Client, run: JobRun) -> None:
    text = words(page)
    assert f"Backfill {run.pk} waits" in text
    assert "the gate is asked again at 14:41" in text
    assert "fail: sustained, incident #" in text
    number = run.blocked_by.get().incidents[0]
    assert f'<a href="/incidents/{number}">incident #{number}</a>' in page.get(PAGE).content.decode()


def test_it_is_started_with_a_reason_or_cancelled(page: Client, run: JobRun) -> None:
    start = f"/datasets/flights/runs/{run.pk}/start"
    assert "Say why" in page.post(start, {"why": ""}, follow=True).content.decode()
    html = page.post(start, {"why": "we drop these columns"}, follow=True).content.decode()
    assert f"Run {run.pk} is queued, whatever the gate says." in html
    assert "started by ines although an input was blocked: we drop these columns" in html
    page.post(f"/datasets/flights/runs/{run.pk}/cancel")
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED


def test_who_may_only_look_sees_it_and_starts_nothing(guest: Client, run: JobRun) -> None:
    assert "Start regardless" not in words(guest)
    assert guest.post(f"/datasets/flights/runs/{run.pk}/start", {"why": "x"}).status_code == 403
    assert guest.post(f"/datasets/flights/runs/{run.pk}/cancel").status_code == 403


def test_what_finished_elsewhere_is_listed(page: Client, flights: Dataset) -> None:
    assert "No pipeline told that it finished" in words(page)
    over = day("2026-11-16")
    ExternalRun.objects.create(
        copy=make.copy_of(flights),
        run_id="nightly-814",
        start=over.start,
        end=over.end,
        link="https://airflow.example.org/814",
        reported_by="ines",
        via="airflow",
        reported_at=NOW,
        units_made_due=3,
    )
    text = words(page)
    assert "nightly-814" in text
    assert "3 test runs" in text
    assert "dc1 wrote [16 Nov, 17 Nov), told 14:32 by airflow" in text
    assert 'href="https://airflow.example.org/814" rel="noreferrer noopener"' in page.get(PAGE).content.decode()


def test_a_hook_shows_its_secret_on_the_page_that_made_it_only(page: Client) -> None:
    made = page.post("/datasets/flights/hooks", {"name": "nifi"})
    hook = PipelineHook.objects.get()
    html = made.content.decode()
    assert hook.secret in html
    assert f"http://testserver/api/v1/pipelines/hooks/{hook.key}/finished" in html
    assert "no-store" in made.headers["Cache-Control"]
    listed = page.get(PAGE).content.decode()
    assert (hook.key in listed, hook.secret in listed) == (True, False)
    page.post(f"/datasets/flights/hooks/{hook.key}/revoke")
    assert hook.key not in page.get(PAGE).content.decode()


def test_a_hook_needs_a_name_and_the_role(page: Client, guest: Client) -> None:
    assert (
        "Name the tool that reports" in page.post("/datasets/flights/hooks", {"name": ""}, follow=True).content.decode()
    )
    assert guest.post("/datasets/flights/hooks", {"name": "nifi"}).status_code == 403
    assert "A tool that cannot hold a token" not in words(guest)
    assert not PipelineHook.objects.exists()


def test_a_hook_of_another_team_is_not_revoked_here(page: Client) -> None:
    other = make.user()
    hook = PipelineHook.objects.create(
        key="ph_1", secret="s", name="x", team=make.team("pricing"), created_by=other, created_at=NOW
    )
    page.post(f"/datasets/flights/hooks/{hook.key}/revoke")
    hook.refresh_from_db()
    assert hook.revoked_at is None


def test_ingestion_is_paused_with_a_reason_and_resumed(page: Client, guest: Client, flights: Dataset) -> None:
    run = make.run(make.copy_of(flights), JobKind.BACKFILL, JobState.PAUSED, started_at=None, ended_at=None)
    assert "Say why it is paused" in page.post("/datasets/flights/pause", {"why": " "}, follow=True).content.decode()
    assert "Resume ingestion" not in words(page)
    html = page.post("/datasets/flights/pause", {"why": "the <b>database</b> moves"}, follow=True).content.decode()
    assert "Ingestion is paused" in html
    assert "ines: the &lt;b&gt;database&lt;/b&gt; moves" in html
    assert re.search(rf"Backfill {run.pk} dc1 .*?Paused", words(page))
    assert ("Ingestion is paused" in words(guest), "Resume ingestion" in words(guest)) == (True, False)
    for action in ("pause", "resume"):
        assert guest.post(f"/datasets/flights/{action}", {"why": "x"}).status_code == 403
    assert "Ingestion goes on where it was." in words_of(page.post("/datasets/flights/resume", follow=True))
    assert "Pause ingestion" in words(page)


def replicated(flights: Dataset) -> JobRun:
    """dc2 from dc1, equal to the newest of two commits but one."""
    source, copy = make.copy_of(flights), make.copy_of(flights, "dc2")
    Replica.objects.create(copy=copy, source=source, asked_by="ana", asked_at=NOW - DAY)
    known = make.commit(source, NOW + HOUR, instant="20261117110000000")
    make.commit(source, NOW + 2 * HOUR, instant="20261117120000000")
    facts = {"instant": known.instant, "files": 12, "bytes": 3_400_000, "resync": "there was <b>no</b> replica"}
    return make.run(copy, JobKind.REPLICATE, report={"output": {"replication": facts}})


def test_a_copy_that_is_replicated_says_from_where_and_how_far_it_is(page: Client, flights: Dataset) -> None:
    assert "made from files of another copy" not in words(page)
    replicated(flights)
    text = words(page)
    assert "dc2 from dc1" in text, "in the facts of the frame"
    assert re.search(r"1 replicamade from files of another copy.*dc2from dc1.*Behind", text)
    assert re.search(
        r"Commit ?20261117110000.* Waiting ?1 commit; the first has waited [12] h( 59 min)? ?Copied last ?12 files, 3.4 MB",
        text,
    )
    assert re.search("Checksums ?match for all that was copied", text)
    assert "there was &lt;b&gt;no&lt;/b&gt; replica" in text
    data = words(page, "/datasets/flights/data")
    assert "replicated from dc1: how far it is" in data


def test_a_replica_says_that_its_source_was_removed_and_that_nothing_was_copied_of_late(
    page: Client, flights: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replicated(flights)
    monkeypatch.setattr("ingestion.runs.replicas.states.MAX_RUNS_READ", 1)
    make.run(
        run.copy,
        JobKind.REPLICATE,
        report={"output": {"replication": run.report["output"]["replication"] | {"files": 0}}},
    )
    assert "nothing in its newest runs" in words(page)
    DatasetCopy.objects.filter(replicas__copy=run.copy).update(removed_at=NOW)
    assert re.search("Source removed.*unknown: the copy in dc1 was removed", words(page))


def test_a_replica_whose_run_failed_says_why_and_whether_checksums_differ(page: Client, flights: Dataset) -> None:
    replicated(flights)
    run = make.run(make.copy_of(flights, "dc2"), JobKind.REPLICATE, JobState.FAILED, error="ConnectionError: <i>x</i>")
    text = words(page)
    assert re.search(rf"Run failed ConnectionError: &lt;i&gt;x&lt;/i&gt; Run {run.pk}", text)
    assert "The replication into dc2 failed once: the job could not do what was asked." in text
    JobRun.objects.filter(pk=run.pk).update(error="ChecksumMismatch: The file a was read with 1 bytes")
    text = words(page)
    assert "Checksums differ" in text
    assert "one did not match: that file was not published" in text
