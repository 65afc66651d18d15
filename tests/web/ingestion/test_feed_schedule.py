"""What is due: a bootstrap for what was never loaded, then a run that follows its source for as long as it can."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion import tasks
from ingestion.models import Finding, JobRun, JobState
from ingestion.runs import copy_lag, feed_schedule, job_runs, offboarding
from ingestion.spark.contract.report import JobReport
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import MINUTE, NOW


def due(now: object = NOW) -> list[str]:
    return [run.kind for run in feed_schedule.request_due_runs(now=now)]  # type: ignore[arg-type]  # a time, in these tests


def ended(copy: DatasetCopy, kind: str, state: JobState = JobState.SUCCEEDED, at: object = NOW) -> JobRun:
    return JobRun.objects.create(copy=copy, kind=kind, state=state, due_at=at, started_at=at, ended_at=at)


def test_a_copy_that_was_never_loaded_gets_one_bootstrap(copy: DatasetCopy) -> None:
    assert due() == ["bootstrap"]
    assert due() == []


def test_every_copy_gets_its_own(copy: DatasetCopy) -> None:
    given.copy(copy.dataset, "dc2")
    assert due() == ["bootstrap", "bootstrap"]


def test_a_loaded_copy_is_followed_from_then_on_by_one_run(copy: DatasetCopy) -> None:
    ended(copy, "bootstrap")
    assert due() == ["follow"]
    assert due(NOW + 60 * MINUTE) == []


@pytest.mark.parametrize("kind", ["backfill", "delete", "incremental", "cluster"])
def test_a_job_that_shares_the_copy_keeps_nobody_from_following_it(copy: DatasetCopy, kind: str) -> None:
    ended(copy, "bootstrap")
    JobRun.objects.create(copy=copy, kind=kind, state=JobState.RUNNING, due_at=NOW, started_at=NOW)
    assert due() == ["follow"]


@pytest.mark.parametrize("kind", ["bootstrap", "drop"])
def test_a_job_that_is_alone_on_the_copy_is_waited_for(copy: DatasetCopy, kind: str) -> None:
    ended(copy, "bootstrap")
    JobRun.objects.create(copy=copy, kind=kind, due_at=NOW)
    assert due() == []


def test_following_that_was_given_up_begins_again_after_an_interval(copy: DatasetCopy) -> None:
    ended(copy, "bootstrap")
    ended(copy, "follow", JobState.FAILED)
    assert due(NOW + 4 * MINUTE) == []
    assert due(NOW + 5 * MINUTE) == ["follow"]


@pytest.mark.parametrize("change", [{"ingested": False}, {"offboarded_at": NOW}])
def test_what_is_not_fed_is_left_alone(copy: DatasetCopy, change: dict[str, object]) -> None:
    type(copy.dataset).objects.filter(pk=copy.dataset.pk).update(**change)
    assert due() == []


def test_a_paused_feed_is_left_alone(copy: DatasetCopy) -> None:
    copy.dataset.feed.paused = True
    copy.dataset.feed.save()
    assert due() == []


def test_a_bootstrap_that_was_given_up_is_asked_for_again_after_an_interval(copy: DatasetCopy) -> None:
    ended(copy, "bootstrap", JobState.FAILED)
    assert due(NOW + MINUTE) == []
    assert due(NOW + 5 * MINUTE) == ["bootstrap"]


def test_a_copy_that_was_dropped_is_loaded_again(copy: DatasetCopy) -> None:
    ended(copy, "bootstrap")
    ended(copy, "drop")
    assert due() == ["bootstrap"]


def test_the_number_of_queries_does_not_grow_with_the_copies(
    copy: DatasetCopy, django_assert_num_queries: object
) -> None:
    for name in ("a", "b", "c"):
        made = given.dataset(name, copies=("dc1", "dc2"))
        given.feed(made)
        for each in made.copies.all():
            ended(each, "bootstrap")
    ended(copy, "bootstrap")
    assert len(due()) == 7
    with django_assert_num_queries(3):  # type: ignore[operator]  # of connections, of pipelines and of replicas; pytest-django's own callable
        assert due(NOW) == []


def test_no_number_of_runs_makes_planning_slow(copy: DatasetCopy) -> None:
    """Each fact of a copy's newest runs is a search in an index, and nothing is added up over all of them."""
    ended(copy, "bootstrap")
    due()
    with CaptureQueriesContext(connection) as asked:
        due()
    planned = asked.captured_queries[0]["sql"]
    assert " MAX(" not in planned
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {planned}" if connection.vendor == "sqlite" else f"EXPLAIN {planned}")
        plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
    if connection.vendor == "sqlite":
        assert plan.count("USING INDEX jobrun_newest (copy_id=? AND kind=?)") == 4
        assert "USING INDEX jobrun_at_work (state=?)" in plan


def test_the_lag_is_zero_at_a_look_grows_until_the_next_and_is_unknown_when_it_is_stale(copy: DatasetCopy) -> None:
    assert copy_lag.lag_of_copy(copy, now=NOW) is None
    ended(copy, "incremental")
    assert copy_lag.lag_of_copy(copy, now=NOW) == timedelta()
    assert copy_lag.lag_of_copy(copy, now=NOW + 4 * MINUTE) == 4 * MINUTE
    assert copy_lag.lag_of_copy(copy, now=NOW + 15 * MINUTE) == 15 * MINUTE
    assert copy_lag.lag_of_copy(copy, now=NOW + 16 * MINUTE) is None


def test_a_look_that_failed_made_nothing_queryable(copy: DatasetCopy) -> None:
    ended(copy, "incremental")
    ended(copy, "incremental", JobState.FAILED, at=NOW + 5 * MINUTE)
    assert copy_lag.lag_of_copy(copy, now=NOW + 7 * MINUTE) == 7 * MINUTE


def test_a_run_that_left_something_to_read_says_nothing_of_the_lag(copy: DatasetCopy) -> None:
    ended(copy, "incremental")
    more = ended(copy, "incremental", at=NOW + 5 * MINUTE)
    JobRun.objects.filter(pk=more.pk).update(report={"has_more": True})
    assert copy_lag.lag_of_copy(copy, now=NOW + 7 * MINUTE) == 7 * MINUTE


def test_a_load_in_several_goes_has_what_was_there_before_the_first(copy: DatasetCopy) -> None:
    run = JobRun.objects.create(copy=copy, kind="bootstrap", due_at=NOW)
    for minutes in (0, 7):
        now = NOW + minutes * MINUTE
        claimed = job_runs.claim_next_run("host:1:a", now=now)
        assert claimed == run
        status = "unfinished" if minutes == 0 else "succeeded"
        job_runs.finish_run(claimed, JobReport(run_id=str(run.key), status=status), "host:1:a", now=now, jitter=0.0)
    assert copy_lag.lag_of_copy(copy, now=NOW + 8 * MINUTE) == 8 * MINUTE


def test_a_copy_that_was_dropped_has_no_lag(copy: DatasetCopy) -> None:
    ended(copy, "incremental")
    ended(copy, "drop")
    assert copy_lag.lag_of_copy(copy, now=NOW) is None


def test_off_boarding_empties_the_queue_and_closes_the_findings(copy: DatasetCopy) -> None:
    waiting = job_runs.request_run(given.with_table(copy), "incremental", asked_by="ana", now=NOW)
    Finding.objects.create(copy=copy, kind="job_failing", start=NOW, end=NOW + MINUTE, raised_at=NOW)
    type(copy.dataset).objects.filter(pk=copy.dataset.pk).update(offboarded_at=NOW)
    assert offboarding.close_offboarded(now=NOW) == 2
    waiting.refresh_from_db()
    assert waiting.state == JobState.CANCELLED
    assert Finding.objects.get().cleared_at == NOW
    assert offboarding.close_offboarded(now=NOW) == 0


def test_the_copies_of_an_off_boarded_dataset_can_be_dropped(copy: DatasetCopy) -> None:
    copy.dataset.offboarded_at = NOW
    copy.dataset.save()
    (run,) = offboarding.request_drops(copy.dataset, actor="ana", now=NOW)
    assert run.kind == "drop"
    assert offboarding.close_offboarded(now=NOW) == 0


def test_a_dataset_that_is_only_monitored_is_never_written(copy: DatasetCopy) -> None:
    copy.dataset.ingested = False
    with pytest.raises(Refused, match="is monitored where it lies"):
        job_runs.request_run(copy, "bootstrap", asked_by="ana", now=NOW)


def test_small_files_are_put_together_beside_the_follower_where_there_are_many(
    copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process looks once an hour, and not again before there are as many new commits as make it worth a look."""
    looks: list[DatasetCopy] = []

    def look(looked_at: DatasetCopy, **_: object) -> bool:
        looks.append(looked_at)
        return len(looks) > 1

    monkeypatch.setattr(feed_schedule, "is_clustering_due", look)
    monkeypatch.setattr(feed_schedule, "_files_looked_at", {})
    ended(copy, "bootstrap")
    for number in range(7):
        given.commit(copy, NOW - MINUTE, instant=f"i{number}")
    assert clusterings() == []
    given.commit(copy, NOW - MINUTE, instant="i7")
    assert (clusterings(), len(looks)) == ([], 1)
    assert (clusterings(NOW + MINUTE), len(looks)) == ([], 1)
    assert clusterings(NOW + 60 * MINUTE) == [{"planned": True}]
    assert clusterings(NOW + 61 * MINUTE) == [], "it waits to be run"
    assert due(NOW + 61 * MINUTE) == ["follow"]
    JobRun.objects.filter(kind="cluster").update(state=JobState.SUCCEEDED, ended_at=NOW + 61 * MINUTE)
    assert (clusterings(NOW + 240 * MINUTE), len(looks)) == ([], 2)


def test_a_call_looks_at_the_files_of_some_copies_and_the_next_at_others(
    copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[DatasetCopy] = []
    monkeypatch.setattr(feed_schedule, "is_clustering_due", lambda looked_at, **_: looks.append(looked_at))
    monkeypatch.setattr(feed_schedule, "_files_looked_at", {})
    monkeypatch.setattr(feed_schedule, "MAX_FILE_LOOKS", 2)
    for each in (copy, given.copy(copy.dataset, "dc2"), given.copy(copy.dataset, "dc3")):
        ended(each, "bootstrap")
        for number in range(8):
            given.commit(each, NOW - MINUTE, instant=f"i{number}")
    seen = [(clusterings(), len(looks))[1] for _ in range(3)]
    assert (seen, len(set(looks))) == ([2, 3, 3], 3)


def test_jobs_are_started_before_any_files_are_listed(copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[float] = []
    monkeypatch.setattr(tasks.run_job, "apply_async", lambda expires: started.append(expires))
    monkeypatch.setattr(feed_schedule, "is_clustering_due", lambda *_, **__: pytest.fail("it lists files"))
    monkeypatch.setattr(feed_schedule, "_files_looked_at", {})
    ended(copy, "bootstrap")
    for number in range(8):
        given.commit(copy, NOW - MINUTE, instant=f"i{number}")
    JobRun.objects.create(copy=copy, kind="backfill", due_at=NOW)
    tasks.start_due_runs()
    assert len(started) == 1


def clusterings(now: datetime = NOW) -> list[dict[str, object]]:
    return [run.params for run in feed_schedule.request_due_clusterings(now=now, wall=now)]
