"""What the log itself does not say is seen by the looks at a dataset: a version that somebody registers, and a table that was emptied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingestion.capture.null_instead import required_columns
from ingestion.capture.tap.position import emptied_before
from ingestion.captures import states
from ingestion.captures.records import capture_of, topic_of
from ingestion.captures.servers import captures_by_server, is_same_plan
from ingestion.captures.topics import topic_to_read
from ingestion.domain.log_moves import LOG, SCHEMA_VERSION
from ingestion.domain.schema import Schema
from ingestion.following import new_versions
from ingestion.following.follower import Follower
from ingestion.heatpipe.event_schema import event_schema
from ingestion.lake import commits
from ingestion.models import Capture, Commit, Finding, JobRun, JobState, SchemaVersion
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.run_worker import Worker
from ingestion.runs.source_use import paused_runs
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import CapturedVersions
from ingestion.schemas.subjects.lake_tables import LakeTable, lake_tables
from ingestion.schemas.subjects.proposals import look_at_proposal
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub.catalog.datasets import pausing
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import NOW
from tests.following import follower
from tests.web.ingestion import hudi_timeline

pytestmark = pytest.mark.django_db
URL = "mysql://reader:hunter2@db.example.org:3306/ops"
HOUR = timedelta(hours=1)
FIRST = {"id": "int", "n": "int"}


@pytest.fixture
def copy(copy: DatasetCopy, settings: Any, tmp_path: Path) -> DatasetCopy:
    """flights, captured from ops.flights, and looked at once an hour."""
    settings.LAKEHUB_CHANGELOG, settings.LAKEHUB_CHANGELOG_URL = "segments", (tmp_path / "log").as_uri()
    feed = copy.dataset.feed
    feed.connection, feed.object, feed.every = given.connection("tapped", URL, plugin="mysql"), "flights", HOUR
    feed.save()
    capture_of(feed)
    return given.copy_of(copy.dataset)


def register(copy: DatasetCopy, columns: Mapping[str, str], *, now: datetime = NOW) -> SchemaVersion:
    text = json.dumps(event_schema(topic_of(copy.dataset), Schema.of(columns)))
    return registry.register(
        topic_of(copy.dataset), text, team=copy.dataset.team, actor="ana", now=now, is_captured=True
    )


@dataclass
class Launcher:
    """Its jobs commit that the table follows the newest version."""

    copy: DatasetCopy
    now: datetime = NOW
    specs: list[JobSpec] = field(default_factory=list)

    def run(self, spec: JobSpec, *_: object) -> JobReport:
        self.specs.append(spec)
        self.commit(topic_to_read(self.copy.dataset, now=self.now).accepted)
        return JobReport(run_id=spec.run_id, status=SUCCEEDED)

    def commit(self, version: int, **schema: Any) -> None:
        self.now += timedelta(seconds=1)
        facts = hudi_timeline.told_by(f"{version}", schema={"conflicts": [], **schema})
        position = {LOG: {}, SCHEMA_VERSION: version}
        hudi_timeline.commit(self.copy, f"{self.now:%Y%m%d%H%M%S}000", {}, run=facts, checkpoint=position)

    def worker(self) -> Worker:
        return Worker(
            "host:1:a", self, "file:///staging", lambda: self.now, timedelta, lambda: 0.0, lambda *_, **__: []
        )  # type: ignore[arg-type]

    def steps(self, process: Follower) -> int:
        """How many jobs a minute has had."""
        before = len(self.specs)
        for _ in range(6):
            self.now += timedelta(seconds=10)
            process.step()
        return len(self.specs) - before


def followed(copy: DatasetCopy) -> tuple[Launcher, Follower]:
    launcher = Launcher(copy)
    launcher.commit(1)
    JobRun.objects.create(copy=copy, kind="bootstrap", due_at=NOW, state=JobState.SUCCEEDED, started_at=NOW)
    JobRun.objects.create(copy=copy, kind="follow", due_at=NOW)
    seconds = iter(range(0, 100_000, 11))
    process = follower(launcher.worker(), monotonic=lambda: float(next(seconds)))
    process.step()
    return launcher, process


def test_a_version_is_looked_for_at_once_however_long_the_interval_is(copy: DatasetCopy) -> None:
    """One job for it, and none for what is no news."""
    register(copy, FIRST, now=NOW - HOUR)
    launcher, process = followed(copy)
    assert launcher.steps(process) == 0
    version = register(copy, {**FIRST, "tip": "int"}, now=launcher.now)
    assert launcher.steps(process) == 1
    assert launcher.steps(process) == 0
    registry.deprecate(version, "nobody needs it", actor="ana", now=launcher.now)
    assert launcher.steps(process) == 0
    register(copy, {**FIRST, "tip": "long"}, now=launcher.now)
    others = json.dumps(event_schema("other", Schema.of(FIRST)))
    registry.register("other", others, team=copy.dataset.team, actor="ana", now=launcher.now)
    assert launcher.steps(process) == 1
    assert [(table.data_center, table.version) for table in lake_tables(copy.dataset)] == [("dc1", 3)]


def test_a_deprecated_version_and_one_that_was_registered_while_nobody_looked(copy: DatasetCopy) -> None:
    """A process that begins sees what came shortly before."""
    register(copy, FIRST, now=NOW - HOUR)
    registry.deprecate(register(copy, {**FIRST, "x": "int"}), "a mistake", actor="ana", now=NOW)
    assert topic_to_read(copy.dataset, now=NOW).accepted == 1
    names = new_versions.NewVersions(lambda: 0.0)
    assert names.is_due(has_news=True)
    assert names.subjects(now=NOW) == {topic_of(copy.dataset)}
    assert names.subjects(now=NOW) == set()
    assert not names.is_due(has_news=True)


def test_a_paused_feed_and_an_off_boarded_dataset_follow_nothing(copy: DatasetCopy) -> None:
    register(copy, FIRST, now=NOW - HOUR)
    launcher, process = followed(copy)
    pausing.pause_ingestion(copy.dataset, why="the database moves", actor="ana", now=launcher.now)
    paused_runs.apply_pauses(now=launcher.now)
    register(copy, {**FIRST, "tip": "int"}, now=launcher.now)
    assert launcher.steps(process) == 0
    pausing.resume_ingestion(copy.dataset, actor="ana", now=launcher.now)
    paused_runs.apply_pauses(now=launcher.now)
    assert launcher.steps(process) == 1
    text = json.dumps(event_schema(topic_of(copy.dataset), Schema.of({**FIRST, "z": "int"})))
    assert look_at_proposal(topic_of(copy.dataset), text).lake is not None
    copy.dataset.offboarded_at = NOW
    copy.dataset.save()
    assert look_at_proposal(topic_of(copy.dataset), text).lake is None


def test_what_a_table_cannot_follow_is_a_finding_that_says_what_to_do(copy: DatasetCopy) -> None:
    launcher = Launcher(copy)
    launcher.commit(2, conflicts=[["n", "int", "string"]])
    launcher.commit(3, refused="Version 3 is no schema of change events.")
    commits.record_new_commits(copy, now=launcher.now)
    (finding,) = Finding.objects.filter(kind="schema_incompatible", cleared_at=None)
    assert "Version 3 is no schema" in finding.detail["message"]
    assert "deprecate the one that does not" in finding.detail["message"]
    (table,) = lake_tables(copy.dataset)
    assert table == LakeTable("dc1", 3, finding.detail["message"])
    launcher.commit(4)
    commits.record_new_commits(copy, now=launcher.now)
    assert lake_tables(copy.dataset) == [LakeTable("dc1", 4, "")]
    assert [*Commit.objects.order_by("pk").values_list("schema_version", flat=True)] == [2, 3, 4]


def test_a_proposal_says_what_it_changes_in_the_lake(copy: DatasetCopy) -> None:
    given.copy(copy.dataset, "dc2")
    topic = topic_of(copy.dataset)
    register(copy, {**FIRST, "gone": "int"})
    register(copy, FIRST)
    proposed = {"id": "int", "n": "long", "gone": "int", "tip": "decimal(8,2)"}
    effect = look_at_proposal(topic, json.dumps(event_schema(topic, Schema.of(proposed)))).lake
    assert effect is not None
    assert (effect.data_centers, effect.added) == (("dc1", "dc2"), (("tip", "decimal(8,2)"),))
    assert [(each.name, each.before, each.after) for each in effect.widened] == [("n", "int", "long")]
    unfit = look_at_proposal(topic, json.dumps(event_schema(topic, Schema.of({**FIRST, "_lakehub_metadata": "int"}))))
    assert unfit.lake is not None
    assert "_lakehub_metadata" in unfit.lake.refused
    strange = look_at_proposal(topic, '{"type": "record", "name": "R", "fields": []}').lake
    assert strange is not None
    assert strange.refused == "It is no schema of change events."
    same = look_at_proposal(topic, json.dumps(event_schema(topic, Schema.of(FIRST), {"n": ["m"]}))).lake
    assert same is not None
    assert same.is_none


def test_a_tap_goes_on_by_the_version_before_one_that_its_table_is_not_like(copy: DatasetCopy) -> None:
    """And writes nothing by columns that may not be null, which no event leaves out."""
    topic, versions = topic_of(copy.dataset), CapturedVersions(copy.dataset.team, "tap", lambda: NOW)
    first = versions.version_of(topic, Schema.of(FIRST))
    registry.set_rule(registry.find_subject(topic), "none", actor="ana", now=NOW)
    register(copy, {"id": "int", "n": "string"})
    assert versions.version_of(topic, Schema.of(FIRST)) == first
    event = event_schema(topic, Schema.of(FIRST))
    event["fields"][1]["type"]["fields"].append({"name": "tip", "type": "long", "default": 0})
    registry.register(topic, json.dumps(event), team=copy.dataset.team, actor="ana", now=NOW, is_captured=True)
    mended = versions.version_of(topic, Schema.of(FIRST))
    assert (mended.version, mended.row_columns.types) == (4, {**FIRST, "tip": "long"})
    assert mended.has_nullable_columns


def test_a_table_that_was_emptied_is_something_to_do_in_the_load_in_which_it_was(copy: DatasetCopy) -> None:
    """The tap keeps the last transaction that emptied it; another load begins with none."""
    register(copy, FIRST, now=NOW - HOUR)
    versions, topic = CapturedVersions(copy.dataset.team, "tap", lambda: NOW), topic_of(copy.dataset)
    Capture.objects.update(load=2, captured_load=2)
    for sequence in (7, 9, 8):
        versions.note_emptied(topic, sequence)
    assert topic_to_read(copy.dataset, now=NOW).emptied == emptied_before(9)
    launcher, _ = followed(copy)
    assert len(launcher.specs) == 1, "the look that the process began with"
    JobRun.objects.all().delete()
    Capture.objects.update(captured_load=1)
    assert topic_to_read(copy.dataset, now=NOW).emptied == b""
    launcher, _ = followed(copy)
    assert launcher.specs == []
    states.note_captured(topic, 2, since="0-1-10", table="", columns={}, now=NOW)
    assert Capture.objects.get().emptied_sequence == 0


def test_the_tap_and_the_jobs_go_by_the_policies_of_the_feed(copy: DatasetCopy) -> None:
    feed, dataset = copy.dataset.feed, copy.dataset
    dataset.record_key, dataset.partition_column = ["id"], "day"
    dataset.save()
    (usual,) = captures_by_server()["db.example.org:3306"]
    assert (usual.spec.required, usual.spec.follows_truncate) == (None, False)
    assert (usual.spec.follows_drop, usual.spec.stops_at_narrowing) == (False, False)
    feed.options = {"on_misfit": "null", "on_truncate": "apply", "on_drop": "apply", "on_narrowing": "stop"}
    feed.save()
    (changed,) = captures_by_server()["db.example.org:3306"]
    assert (changed.spec.required, changed.spec.follows_truncate) == (frozenset({"id", "day"}), True)
    assert (changed.spec.follows_drop, changed.spec.stops_at_narrowing) == (True, True)
    assert not is_same_plan([usual], [changed])
    run = JobRun.objects.create(copy=given.copy_of(dataset), kind="incremental", due_at=NOW)
    spec, _ = job_spec_of(run, staging="file:///staging", ahead=timedelta(), now=NOW)
    assert spec.source is not None
    assert required_columns(spec.source.options) == frozenset({"id", "day"})
