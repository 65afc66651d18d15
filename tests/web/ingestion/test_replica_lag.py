"""Whether replicas are behind: as a finding with its test, and by Prometheus, by as many queries for one as for all."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from incidents import tasks as incident_tasks
from incidents.models import Incident
from ingestion import tasks
from ingestion.lake.findings import COPY_BEHIND, PIPELINE_BEHIND, REPLICA_BEHIND, raise_finding
from ingestion.models import Commit, Finding, JobKind, JobRun, JobState, Replica
from ingestion.positions import behind
from ingestion.runs.modelled_tables import lag as pipeline_lag
from ingestion.runs.replicas import lag, states
from ingestion.runs.replicas.setting import end_replication, replicate
from ingestion.runs.replicas.states import ReplicaState, live_replicas, replica_states, states_of
from lakehub import clock
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import EVERYTHING
from quality.execution import ingestion_findings
from quality.models import Unit
from tests import factories as given
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.query_plans import plans_of

pytestmark = pytest.mark.django_db
COMMITS_INDEX = r"commit_once|sqlite_autoindex_ingestion_commit_1|Scan using \w*commit_\w+"
NEWEST_INDEX = r"commit_newest_of_copy|Scan using ingestion_commit_copy\w+"
"""A constraint has a name of its own in PostgreSQL only, which takes another index of the copy where one has few commits."""


def replicated(name: str = "flights", *, since: datetime = NOW - DAY, freshness: str = "1h") -> DatasetCopy:
    """A copy in dc2 that is made from that in dc1, and may lack commits for an hour."""
    dataset = given.dataset(name, copies=("dc1", "dc2"), overrides={"freshness": freshness})
    given.feed(dataset)
    source, copy = dataset.copies.order_by("data_center__name")
    replicate(copy, source, mib_per_s=None, actor="ana", now=since)
    return copy


def committed(copy: DatasetCopy, at: datetime, instant: str) -> Commit:
    """In the source of a replica."""
    return given.commit(Replica.objects.get(copy=copy).source, at, instant=instant)


def has_replicated(copy: DatasetCopy, instant: str, at: datetime, **facts: object) -> JobRun:
    report = {"output": {"replication": {"instant": instant, "resync": "", "files": 1, "bytes": 10, **facts}}}
    return given.run(copy, JobKind.REPLICATE, started_at=at, ended_at=at, report=report)


def state_of(copy: DatasetCopy) -> ReplicaState:
    (state,) = replica_states(copy.dataset)
    return state


def open_message(now: datetime) -> str:
    """Of the finding that is open; empty without one."""
    lag.judge_lags(now=now)
    finding = Finding.objects.filter(kind=REPLICA_BEHIND, cleared_at=None).first()
    return "" if finding is None else finding.detail["message"]


def test_a_replica_is_behind_for_longer_than_its_tier_allows() -> None:
    """It is not cleared before it is well below that."""
    copy = replicated()
    committed(copy, NOW - 3 * HOUR, "1")
    has_replicated(copy, "1", NOW - 2 * HOUR)
    assert open_message(NOW) == "", "it lacks nothing, however long ago its last run was"
    committed(copy, NOW - HOUR, "2")
    committed(copy, NOW - 40 * MINUTE, "3")
    assert open_message(NOW) == ""
    assert open_message(NOW + MINUTE) == (
        "2 commits of the copy in dc1 since 2026-11-17 18:32 UTC wait to be replicated: the replica is behind for 1 h 1 min, and its tier allows 1 h 0 min. "
        "Look on the page Ingestion whether its runs fail or wait."
    )
    has_replicated(copy, "2", NOW - HOUR)
    assert open_message(NOW) != ""
    has_replicated(copy, "3", NOW)
    assert open_message(NOW) == ""


def test_a_replica_that_begins_is_behind_since_it_was_asked_for() -> None:
    """Its source may have commits of years."""
    copy = replicated(since=NOW)
    committed(copy, NOW - 300 * DAY, "1")
    assert open_message(NOW + HOUR) == ""
    assert open_message(NOW + HOUR + MINUTE).startswith("1 commit of the copy in dc1 since 2026-11-17 19:32 UTC waits")
    has_replicated(copy, "1", NOW + HOUR)
    assert open_message(NOW + HOUR + MINUTE) == ""


@pytest.mark.parametrize("kind", [JobKind.DROP, JobKind.BOOTSTRAP])
def test_a_replica_that_was_dropped_or_fed_meanwhile_begins_anew(kind: JobKind) -> None:
    copy = replicated()
    committed(copy, NOW - 3 * HOUR, "1")
    has_replicated(copy, "1", NOW - 2 * HOUR)
    given.run(copy, kind, started_at=NOW - HOUR, ended_at=NOW - HOUR)
    assert (state_of(copy).instant, state_of(copy).pending, state_of(copy).waits_since) == ("", 1, NOW - HOUR)
    assert open_message(NOW + MINUTE) != ""


def test_where_nobody_knows_what_it_lacks_its_last_run_may_be_as_long_ago() -> None:
    copy = replicated()
    committed(copy, NOW - 3 * HOUR, "2")
    has_replicated(copy, "1", NOW - HOUR)
    assert state_of(copy).pending is None
    assert open_message(NOW) == ""
    assert open_message(NOW + MINUTE).startswith(
        "It is not known which commits of the copy in dc1 are missing here. The last run that succeeded ended 1 h 1 min ago, and its tier allows 1 h 0 min."
    )


def test_a_replica_whose_source_was_removed_says_what_to_do() -> None:
    copy = replicated()
    committed(copy, NOW - 3 * HOUR, "1")
    has_replicated(copy, "1", NOW - HOUR)
    DatasetCopy.objects.filter(replicas__copy=copy).update(removed_at=NOW)
    message = open_message(NOW + MINUTE)
    assert message.startswith("The copy in dc1 that this replica is made from was removed, so nothing new arrives.")
    assert "behind for 1 h 1 min, and its tier allows 1 h 0 min" in message
    assert "`manage.py replicate flights --to dc2 --end`" in message


def test_the_words_say_how_many_wait_and_that_the_limit_may_be_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MAX_PENDING", 2)
    monkeypatch.setattr(lag, "MAX_PENDING", 2)
    copy = replicated()
    Replica.objects.filter(copy=copy).update(mib_per_s=5)
    committed(copy, NOW - 3 * HOUR, "1")
    has_replicated(copy, "1", NOW - 2 * HOUR - MINUTE)
    for number in range(2, 7):
        committed(copy, NOW - 2 * HOUR + number * MINUTE, str(number))
    assert (state_of(copy).pending, state_of(copy).has_more) == (3, True)
    message = open_message(NOW)
    assert message.startswith("More than 2 commits of the copy in dc1")
    assert message.endswith("whether its runs fail or wait, or whether 5 MiB/s are too few.")


def test_a_clock_that_was_ahead_makes_nothing_behind() -> None:
    copy = replicated()
    committed(copy, NOW, "1")
    has_replicated(copy, "1", NOW)
    committed(copy, NOW + 300 * DAY, "2")
    assert (state_of(copy).pending, state_of(copy).lag(now=NOW)) == (1, timedelta())
    assert open_message(NOW) == ""


def test_it_has_a_test_and_an_incident_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = replicated()
    committed(copy, NOW - 2 * HOUR, "1")
    for now, verdict in ((NOW, "fail"), (NOW + MINUTE, "pass")):
        monkeypatch.setattr("lakehub.wiring.clock.now", lambda now=now: now)
        tasks.check_replicas()
        ingestion_findings.observe_findings(now=now)
        unit = Unit.objects.get(test__key=f"finding:{REPLICA_BEHIND}", copy=copy)
        assert (unit.verdict, unit.test.category, unit.test.title) == (verdict, "ingestion", "Replica behind")
        incident_tasks.process_flips()
        incident = Incident.objects.get(dataset=copy.dataset, category="ingestion")
        assert (incident.resolved_at is None) == (verdict == "fail")
        has_replicated(copy, "1", NOW)


def test_what_is_no_replica_any_more_is_not_behind_as_one() -> None:
    copy = replicated()
    committed(copy, NOW - 2 * HOUR, "1")
    assert open_message(NOW) != ""
    end_replication(copy, actor="ana", now=NOW)
    assert open_message(NOW) == ""


@pytest.mark.parametrize(
    ("kind", "judge"), [(PIPELINE_BEHIND, pipeline_lag.judge_lags), (COPY_BEHIND, behind.judge_lags)]
)
def test_a_replica_is_not_behind_as_what_it_was_before(kind: str, judge: Callable[..., int]) -> None:
    copy = replicated()
    raise_finding(copy, kind, EVERYTHING, "It is behind.", {}, now=NOW)
    judge(now=NOW)
    assert not Finding.objects.filter(kind=kind, cleared_at=None).exists()


def test_prometheus_has_it_without_a_name(client: Client) -> None:
    now = clock.now()
    copy, other = replicated(since=now - DAY), replicated("planes", since=now - DAY)
    committed(copy, now - 2 * HOUR, "1")
    has_replicated(copy, "1", now - HOUR)
    committed(copy, now - 10 * MINUTE, "2")
    given.run(copy, JobKind.REPLICATE, JobState.FAILED, error="ConnectionError: refused")
    has_replicated(other, "gone", now - 20 * MINUTE)
    metrics = client.get("/metrics").content.decode()
    assert f'lakehub_replica_commits_pending{{copy="{copy.pk}"}} 1.0' in metrics
    assert f'lakehub_replica_commits_pending{{copy="{other.pk}"}}' not in metrics, "nobody knows"
    assert f'lakehub_replica_failing{{copy="{copy.pk}"}} 1.0' in metrics
    assert f'lakehub_replica_failing{{copy="{other.pk}"}} 0.0' in metrics
    for each, seconds in ((copy, 600), (other, 1200)):
        (lag_s,) = re.findall(rf'lakehub_replica_lag_seconds{{copy="{each.pk}"}} (\S+)', metrics)
        assert seconds <= float(lag_s) < seconds + 60
    assert "planes" not in metrics


def test_the_series_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.health.REPLICAS_MEASURED", 1)
    copy, other = replicated(), replicated("planes")
    Dataset.objects.filter(pk=other.dataset_id).update(tier=0)
    Dataset.objects.filter(pk=copy.dataset_id).update(tier=3)
    metrics = client.get("/metrics").content.decode()
    assert re.findall(r'lakehub_replica_lag_seconds{copy="(\d+)"}', metrics) == [str(other.pk)]


def queries_of(code: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as queries:
        code()
    return len(queries)


def test_queries_do_not_grow_with_replicas() -> None:
    def counts() -> tuple[int, int]:
        return queries_of(lambda: lag.judge_lags(now=NOW)), queries_of(lambda: replica_states(dataset))

    def add(number: int) -> Dataset:
        copy = replicated(f"flights{number}", freshness="30d")
        committed(copy, NOW - HOUR, "1")
        replicate(given.copy(copy.dataset, "dc3"), copy, mib_per_s=None, actor="ana", now=NOW)
        has_replicated(copy, "1", NOW)
        return copy.dataset

    dataset = add(0)
    few = counts()
    for number in range(1, 4):
        add(number)
    assert counts() == few == (5, 5)
    assert {state.copy.dataset for state in replica_states(dataset)} == {dataset}


def test_each_query_goes_by_an_index() -> None:
    copy = replicated()
    for number in range(5):
        committed(copy, NOW + number * MINUTE, str(number))
    has_replicated(copy, "1", NOW)
    third = given.copy(copy.dataset, "dc3")
    replicate(third, copy, mib_per_s=None, actor="ana", now=NOW)
    plans = plans_of(lambda: states_of(live_replicas()))
    assert len(plans) == 4
    text = "\n".join(plans)
    assert not re.search("(SCAN|Seq Scan on) ingestion_(commit|jobrun)|jobrun_at_work", text)
    assert len(re.findall("jobrun_newest", plans[0])) == 4
    assert re.search(COMMITS_INDEX, plans[1])
    assert len(re.findall(NEWEST_INDEX, plans[2])) >= 2
    assert len(re.findall(NEWEST_INDEX, plans[3])) >= 2


def test_what_was_copied_last_is_looked_for_in_a_bounded_number_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = replicated()
    committed(copy, NOW - HOUR, "1")
    has_replicated(copy, "1", NOW, files=3, bytes=4_000)
    for _ in range(2):
        has_replicated(copy, "1", NOW + MINUTE, files=0, bytes=0)
    assert (state_of(copy).copied_files, state_of(copy).copied_bytes, state_of(copy).copied_at) == (3, 4_000, NOW)
    monkeypatch.setattr(states, "MAX_RUNS_READ", 2)
    assert state_of(copy).copied_at is None
    plans = plans_of(lambda: replica_states(copy.dataset))
    assert "jobrun_newest" in plans[-1]
    assert not re.search("(SCAN|Seq Scan on) ingestion_jobrun", plans[-1])
