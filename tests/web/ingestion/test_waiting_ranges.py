"""What the gate is asked about the inputs of a pipeline: whatever is new, and the partitions that commits have touched which it has not read yet, however old."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.models import JobKind, JobRun
from ingestion.runs.inputs import inputs_of_run
from ingestion.runs.modelled_tables import waiting_ranges as module
from ingestion.runs.modelled_tables.waiting_ranges import waiting_ranges
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import BEGINNING, Interval
from tests import factories as given
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.query_plans import plans_of
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TRANSFORM
from tests.web.ingestion.test_pipeline_progress import COMMITS_INDEX, committed, has_read, input_copy, modelled

pytestmark = pytest.mark.django_db
TODAY = day("2026-11-17")
JANUARY, FEBRUARY = day("2026-01-12"), day("2026-02-03")


def watched_from(start: datetime | None) -> None:
    DatasetCopy.objects.filter(dataset__name="flights").update(monitored_from=start)


def touched(name: str, at: datetime, *days: Interval, **facts: object) -> None:
    committed(name, at, touched=days, **facts)


def asked(copy: DatasetCopy) -> dict[str, list[Interval]]:
    """By input, of a run that begins now."""
    run = JobRun.objects.filter(copy=copy, kind=JobKind.INCREMENTAL).first() or given.run(copy, JobKind.INCREMENTAL)
    inputs = inputs_of_run(run, now=NOW)
    names = dict.fromkeys(each.dataset for each in inputs)
    return {name: [each.data_range for each in inputs if each.dataset == name] for name in names}


def test_old_partitions_are_asked_about_until_they_are_read() -> None:
    copy = modelled()
    for name in ("flights", "airlines"):
        has_read(name, NOW - HOUR)
    watched_from(JANUARY.start - DAY)
    touched("flights", NOW - 90 * MINUTE, FEBRUARY)
    touched("flights", NOW - 10 * MINUTE, JANUARY, TODAY)
    assert asked(copy) == {"flights": [JANUARY, TODAY], "airlines": [TODAY]}
    has_read("flights", NOW)
    assert asked(copy) == {"flights": [TODAY], "airlines": [TODAY]}


def test_nothing_more_of_what_is_not_followed_or_only_puts_files_together() -> None:
    ignored = PIPELINE.replace("airlines: airlines", "airlines: {dataset: airlines, changes: ignored}")
    copy = modelled(ignored, TRANSFORM.replace("a.name", "f.carrier"))
    for name in ("flights", "airlines"):
        has_read(name, NOW - HOUR)
    DatasetCopy.objects.update(monitored_from=JANUARY.start)
    touched("airlines", NOW - 10 * MINUTE, JANUARY)
    touched("flights", NOW - 10 * MINUTE, JANUARY, operation="cluster")
    assert asked(copy) == {"flights": [TODAY], "airlines": [TODAY]}


def test_all_that_is_watched_where_nobody_knows_what_was_read() -> None:
    copy = modelled()
    has_read("airlines", NOW - HOUR)
    watched_from(FEBRUARY.start)
    assert asked(copy) == {"flights": [Interval(FEBRUARY.start, TODAY.end)], "airlines": [TODAY]}
    watched_from(None)
    assert asked(copy)["flights"][0].start <= BEGINNING


def test_nothing_from_before_it_is_watched() -> None:
    copy = modelled()
    for name in ("flights", "airlines"):
        has_read(name, NOW - HOUR)
    watched_from(FEBRUARY.start)
    touched("flights", NOW - 10 * MINUTE, JANUARY, FEBRUARY)
    assert asked(copy)["flights"] == [FEBRUARY, TODAY]


@pytest.mark.parametrize(("days", "limit"), [(21, 1_000), (9, 8)])
def test_many_are_asked_about_as_all_from_the_first_to_the_last(
    monkeypatch: pytest.MonkeyPatch, days: int, limit: int
) -> None:
    monkeypatch.setattr(module, "MAX_TOUCHED", limit)
    copy = modelled()
    has_read("flights", NOW - HOUR)
    every_other = [Interval(JANUARY.start + 2 * n * DAY, JANUARY.end + 2 * n * DAY) for n in range(days)]
    touched("flights", NOW - 10 * MINUTE, *every_other)
    assert waiting_ranges(copy, input_copy("flights")) == (Interval(JANUARY.start, every_other[-1].end),)
    monkeypatch.setattr(module, "MAX_TOUCHED", 1_000)
    monkeypatch.setattr(module, "MAX_RANGES", 21)
    assert waiting_ranges(copy, input_copy("flights")) == tuple(every_other)


def test_the_files_of_the_pipeline_are_read_once_for_all_inputs() -> None:
    run = given.run(modelled(), JobKind.INCREMENTAL)
    run = JobRun.objects.get(pk=run.pk)
    with CaptureQueriesContext(connection) as seen:
        assert len(inputs_of_run(run, now=NOW)) == 2
    assert sum('FROM "ingestion_pipeline"' in query["sql"] for query in seen) == 1


def test_commits_that_were_read_are_not_looked_at() -> None:
    copy = modelled()
    has_read("flights", NOW - HOUR)
    for hours in range(30):
        touched("flights", NOW - hours * HOUR, JANUARY)
    (plan,) = (plan for plan in plans_of(lambda: waiting_ranges(copy, input_copy("flights"))) if "touched" in plan)
    assert re.search(COMMITS_INDEX, plan), plan
    assert not re.search("(SCAN|Seq Scan on) ingestion_(commit|touchedpartition)", plan), plan
