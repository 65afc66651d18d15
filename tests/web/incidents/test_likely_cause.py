"""What probably made an incident: what happened between the last pass and now, nearest to the source first."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from incidents.models import Incident
from incidents.record.likely_cause import CauseKind, LikelyCause, likely_cause
from incidents.record.texts import spans_with_details
from ingestion.lake import findings
from ingestion.lake.findings import JOB_FAILING, SCHEMA_INCOMPATIBLE
from ingestion.models import JobKind, JobState
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from quality.models import Category, QualityTest, QualityTestVersion, Unit
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW, day

pytestmark = pytest.mark.django_db
BAD_DAY = day("2026-11-16")
PASSED_AT = NOW - 6 * HOUR
BEGAN_AT = NOW - 3 * HOUR


def failing(
    dataset: Dataset, category: Category = Category.COMPLETENESS, over: Interval = BAD_DAY, where: str = "dc1"
) -> Incident:
    """Passed six hours ago, fails since three."""
    unit = make.unit(
        make.test(dataset, category),
        make.copy_of(dataset, where),
        over,
        Verdict.FAIL,
        first_fail_at=BEGAN_AT,
        last_pass_at=PASSED_AT,
    )
    return make.incident(dataset, category, unit, opened_at=BEGAN_AT + HOUR)


@pytest.fixture
def flights() -> Dataset:
    return make.dataset("flights")


def cause(incident: Incident) -> LikelyCause:
    return likely_cause(incident, now=NOW, spans=spans_with_details(incident))


def raised(dataset: Dataset, kind: str, at: datetime, message: str) -> None:
    findings.raise_finding(make.copy_of(dataset), kind, Interval(at, NOW + DAY), message, {}, now=at)


def test_an_open_incident_upstream_over_the_same_data(flights: Dataset) -> None:
    weather = make.dataset("weather")
    make.edge(weather, flights)
    upstream = failing(weather)
    likely = cause(failing(flights))
    assert likely.kind == CauseKind.UPSTREAM
    assert f"incident #{upstream.pk} of weather, since 2026-11-17 16:32 UTC" in likely.text
    assert likely.link == f"/incidents/{upstream.pk}"


def test_also_one_that_is_further_up(flights: Dataset) -> None:
    far, near = make.dataset("far"), make.dataset("near")
    make.edge(far, near)
    make.edge(near, flights)
    assert f"#{failing(far).pk} of far" in cause(failing(flights)).text


def test_of_several_the_one_that_began_first(flights: Dataset) -> None:
    first, second = make.dataset("first"), make.dataset("second")
    for upstream in (first, second):
        make.edge(upstream, flights)
    failing(second)
    incident = failing(first)
    incident.spans.update(began_at=BEGAN_AT - HOUR)
    assert "of first" in cause(failing(flights)).text


@pytest.mark.parametrize("why", ["other data", "other data center", "over before", "not upstream"])
def test_what_upstream_cannot_have_caused_it(flights: Dataset, why: str) -> None:
    weather = make.dataset("weather", copies=("dc1", "dc2"))
    if why != "not upstream":
        make.edge(weather, flights)
    over = day("2026-11-14") if why == "other data" else BAD_DAY
    upstream = failing(weather, over=over, where="dc2" if why == "other data center" else "dc1")
    if why == "over before":
        upstream.spans.update(ended_at=BEGAN_AT - MINUTE)
    assert cause(failing(flights)).kind == CauseKind.UNKNOWN or cause(failing(flights)).kind == CauseKind.LATE_RUN


def test_an_incompatible_schema_before_a_job_that_fails_of_it(flights: Dataset) -> None:
    raised(flights, JOB_FAILING, BEGAN_AT, "The incremental was given up")
    raised(flights, SCHEMA_INCOMPATIBLE, BEGAN_AT - MINUTE, "column `dep_time` is text now")
    likely = cause(failing(flights))
    assert (likely.kind, likely.link) == (CauseKind.SCHEMA_CHANGE, "/datasets/flights/ingestion")
    assert likely.text == "schema change at 2026-11-17 16:31 UTC: column `dep_time` is text now"


def test_what_was_cleared_before_the_last_pass_is_past(flights: Dataset) -> None:
    raised(flights, SCHEMA_INCOMPATIBLE, PASSED_AT - HOUR, "column `dep_time` is text now")
    findings.clear_findings(make.copy_of(flights), SCHEMA_INCOMPATIBLE, now=PASSED_AT - MINUTE)
    assert cause(failing(flights, Category.DUPLICATES)).kind == CauseKind.UNKNOWN


def test_a_run_that_failed_since_the_last_pass(flights: Dataset) -> None:
    make.feed(flights)
    copy = make.copy_of(flights)
    at = BEGAN_AT - MINUTE
    run = make.run(copy, state=JobState.FAILED, started_at=at, ended_at=at + MINUTE, error="no such\nhost", attempt=3)
    likely = cause(failing(flights))
    assert likely.kind == CauseKind.JOB_FAILED
    assert likely.text == f"job failed: {run.kind} of flights@dc1 at 2026-11-17 16:31 UTC: no such host"


@pytest.mark.parametrize("category", [Category.DUPLICATES, Category.OTHERS])
def test_a_run_that_failed_makes_no_duplicates(flights: Dataset, category: Category) -> None:
    make.feed(flights)
    make.run(make.copy_of(flights), state=JobState.FAILED, error="no such host", started_at=BEGAN_AT)
    assert cause(failing(flights, category)).kind == CauseKind.UNKNOWN


def test_columns_that_changed_since_the_last_pass(flights: Dataset) -> None:
    audit_log.record("lakehub", "schema", "dataset:flights", now=PASSED_AT - HOUR)
    incident = failing(flights, Category.OTHERS)
    assert cause(incident).kind == CauseKind.UNKNOWN
    audit_log.record("lakehub", "schema", "dataset:flights", now=PASSED_AT + HOUR)
    likely = cause(incident)
    assert (likely.kind, likely.link) == (CauseKind.SCHEMA_CHANGE, "/datasets/flights/settings")
    assert "the columns of flights changed, seen at 2026-11-17 14:32 UTC" in likely.text


def test_a_run_that_is_late(flights: Dataset) -> None:
    make.feed(flights, every=HOUR)
    incident = failing(flights, Category.FRESHNESS)
    assert cause(incident).text == "late run: no run has ended yet"
    make.run(make.copy_of(flights), ended_at=NOW - 5 * HOUR)
    assert cause(incident).text == "late run: the last run ended at 2026-11-17 14:32 UTC"
    make.run(make.copy_of(flights), ended_at=NOW - HOUR)
    assert cause(incident).kind == CauseKind.UNKNOWN


def test_a_feed_that_is_paused_says_so(flights: Dataset) -> None:
    make.feed(flights, every=HOUR, paused=True)
    make.run(make.copy_of(flights), ended_at=NOW - HOUR)
    assert cause(failing(flights)).text.endswith("the feed is paused")


def test_a_run_that_waits_for_its_index_cluster_makes_it_late_and_has_not_failed(flights: Dataset) -> None:
    make.feed(flights, every=HOUR)
    copy, why = make.copy_of(flights), "waits for the index cluster: HBase does not answer"
    make.run(copy, ended_at=NOW - 5 * HOUR)
    waiting = make.run(copy, state=JobState.QUEUED, started_at=BEGAN_AT - MINUTE, ended_at=None, error=why)
    incident = failing(flights, Category.FRESHNESS)
    assert cause(incident) == LikelyCause(
        CauseKind.LATE_RUN,
        f"late run: the incremental of flights@dc1 {why}",
        "/datasets/flights/ingestion",
    )
    type(waiting).objects.filter(pk=waiting.pk).update(state=JobState.CANCELLED, error="")
    assert cause(incident).text == "late run: the last run ended at 2026-11-17 14:32 UTC"


def test_a_table_that_others_write_and_nobody_wrote_since_it_passed(flights: Dataset) -> None:
    copy = make.copy_of(flights)
    make.commit(copy, completed_at=PASSED_AT - HOUR)
    incident = failing(flights, Category.FRESHNESS)
    assert cause(incident).text == "late run: the last commit ended at 2026-11-17 12:32 UTC"
    make.commit(copy, completed_at=PASSED_AT + HOUR)
    assert cause(incident).kind == CauseKind.UNKNOWN


def test_a_test_that_was_changed(flights: Dataset) -> None:
    incident = failing(flights, Category.OTHERS)
    test = incident.spans.get().unit.test
    change_test(test, "duplicates(this) < 0%")
    likely = cause(incident)
    assert (likely.kind, likely.link) == (CauseKind.TEST_CHANGED, f"/datasets/flights/tests/{test.key}")
    assert likely.text.endswith("is version 2 since 2026-11-17 16:31 UTC, because ana says so")


def test_a_test_that_asks_the_same_as_before_made_nothing_fail(flights: Dataset) -> None:
    incident = failing(flights, Category.OTHERS)
    change_test(incident.spans.get().unit.test, None)
    assert cause(incident).kind == CauseKind.UNKNOWN


@pytest.mark.parametrize(
    ("when", "over", "kind"),
    [
        (BEGAN_AT - HOUR, BAD_DAY, CauseKind.ROWS_DELETED),
        (PASSED_AT - HOUR, BAD_DAY, CauseKind.TEST_CHANGED),
        (BEGAN_AT + HOUR, BAD_DAY, CauseKind.TEST_CHANGED),
        (BEGAN_AT - HOUR, day("2026-11-02"), CauseKind.TEST_CHANGED),
    ],
)
def test_rows_that_a_commit_deleted_are_likelier_than_a_changed_test(
    flights: Dataset, when: datetime, over: Interval, kind: CauseKind
) -> None:
    """Where they were deleted between the last pass and the failure, of the data that fails."""
    incident = failing(flights, Category.OTHERS)
    change_test(incident.spans.get().unit.test, "duplicates(this) < 0%")
    run = make.run(make.copy_of(flights), JobKind.DELETE, asked_by="ana", started_at=when)
    make.commit(make.copy_of(flights), when, [over], operation="delete", deletes=1300, run=run)
    likely = cause(incident)
    assert likely.kind == kind
    if kind == CauseKind.ROWS_DELETED:
        expected = (
            "rows deleted: the delete of dc1 at 2026-11-17 15:32 UTC deleted 1,300 rows of this data, requested by ana"
        )
        assert (likely.text, likely.link) == (expected, "/datasets/flights/ingestion")


def test_what_came_after_the_failure_did_not_cause_it(flights: Dataset) -> None:
    after = BEGAN_AT + 2 * HOUR
    make.feed(flights, every=DAY)
    weather = make.dataset("weather")
    make.edge(weather, flights)
    failing(weather).spans.update(began_at=after)
    make.run(make.copy_of(flights), started_at=BEGAN_AT - HOUR)
    make.run(make.copy_of(flights), state=JobState.FAILED, error="no such host", started_at=after)
    raised(flights, SCHEMA_INCOMPATIBLE, after, "column `dep_time` is text now")
    audit_log.record("lakehub", "schema", "dataset:flights", now=after)
    assert cause(failing(flights)).kind == CauseKind.UNKNOWN


def change_test(test: QualityTest, flattened: str | None) -> None:
    """A version from just before the failure."""
    old = test.version
    assert old is not None
    test.version = QualityTestVersion.objects.create(
        test=test,
        number=2,
        expression=flattened or old.expression,
        flattened=flattened or old.flattened,
        sustain=old.sustain,
        due_after=old.due_after,
        rerun_base=old.rerun_base,
        rerun_cap=old.rerun_cap,
        created_at=BEGAN_AT - MINUTE,
        because="ana says so",
    )
    test.save(update_fields=["version"])


def test_what_a_person_reported_has_no_cause_that_could_be_seen(flights: Dataset) -> None:
    likely = cause(make.incident(flights, reported=True))
    assert (likely.kind, likely.text) == (CauseKind.UNKNOWN, "not known: a person saw it, no test did")


def test_the_page_and_the_api_say_it(flights: Dataset, client: Client) -> None:
    weather = make.dataset("weather")
    make.edge(weather, flights)
    upstream, incident = failing(weather), failing(flights)
    client.force_login(make.user("reader"))
    shown = client.get(f"/incidents/{incident.pk}").content.decode()
    assert f"Likely cause: upstream: {upstream.title}" in shown
    assert f'<a href="/incidents/{upstream.pk}">Look at it</a>' in shown
    likely = client.get(f"/api/v1/incidents/{incident.pk}").json()["likely_cause"]
    assert (likely["kind"], likely["link"]) == ("upstream", f"/incidents/{upstream.pk}")


def test_queries_do_not_grow(flights: Dataset, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    make.feed(flights)
    make.run(make.copy_of(flights), ended_at=NOW)
    incident = failing(flights)
    for number in range(4):
        unit = make.unit(
            incident.spans.first().unit.test, make.copy_of(flights), day(f"2026-11-1{number}"), Verdict.FAIL
        )
        make.span(incident, unit)
    assert Unit.objects.count() == 5
    with django_assert_num_queries(8):
        assert cause(incident).kind == CauseKind.UNKNOWN
