"""Another partition of what is ingested: new tables beside the present ones, which stay until the new ones are whole."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from incidents.gate.answer import CopyQuestion, ask_gate
from incidents.models import Incident
from ingestion.following import follow_runs
from ingestion.lake import commits
from ingestion.models import Finding, JobKind, JobRun, JobState, TouchedPartition
from ingestion.ports import rows_in_lake
from ingestion.runs import feed_schedule, job_runs, offboarding, rebuilds, run_worker
from ingestion.spark.contract.report import FAILED, SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub import wiring
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.datasets.offboarding import offboard_dataset
from lakehub.catalog.models import Dataset, DatasetCopy, Rebuild, RebuildState
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.rebuild import accept_fewer_rows, cancel_rebuild, left_tables, open_rebuild
from lakehub.catalog.onboarding.redefine import change_dataset
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.outcome import Verdict
from quality.execution import worker as quality_worker
from quality.execution.ingestion_findings import observe_findings
from quality.generation import generate
from quality.models import Unit
from quality.planning import baseline
from quality.planning.touched_partitions import claim_touched_partitions
from tests import factories, hudi_tables
from tests.factories import DAY, MINUTE, NOW, day
from tests.following import follow_once
from tests.web.catalog.test_copy_locations import AT_OPS, DAYS
from tests.web.ingestion import hudi_timeline
from tests.web.ingestion.conftest import FakeLauncher, worker_at

pytestmark = pytest.mark.django_db
BY_MONTH = {"partition_column": "month", "grain": "month"}
EVERY = 5 * MINUTE


@dataclass
class Lake:
    """Jobs that write what the source has, as Hudi tables without a JVM. `fails`: the tables below these URIs cannot be written."""

    source: Path
    fails: set[str] = field(default_factory=set)
    _instants: count[int] = field(default_factory=lambda: count(1))

    def write(self, spec: JobSpec) -> JobReport:
        if spec.table.uri in self.fails:
            return JobReport(run_id=spec.run_id, status=FAILED, error="no space left on device")
        folder, column = Path(unquote(urlsplit(spec.table.uri).path)), spec.table.partition_column or ""
        instant = f"202611170000{next(self._instants):05}"
        written = hudi_tables.hudi_table if spec.kind == JobKind.BOOTSTRAP else hudi_tables.commit
        if rows := self._new_rows(folder, column):
            written(folder, rows, column=column, instant=instant)
        return JobReport(run_id=spec.run_id, status=SUCCEEDED)

    def _new_rows(self, folder: Path, column: str) -> dict[str | None, pa.Table]:
        known = folder / ".ids"
        last = int(known.read_text()) if known.exists() else -1
        with sqlite3.connect(self.source) as db:
            rows = db.execute("SELECT id, flight_date, month FROM flights WHERE id > ? ORDER BY id", [last]).fetchall()
        if not rows:
            return {}
        folder.mkdir(parents=True, exist_ok=True)
        known.write_text(str(rows[-1][0]))
        table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("id", "flight_date", "month"))})
        values = table[column].to_pylist()
        return {value: table.filter(pa.array([each == value for each in values])) for value in dict.fromkeys(values)}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("CREATE TABLE flights (id INTEGER PRIMARY KEY, flight_date TEXT, month TEXT)")
    made = Lake(tmp_path / "ops.db")
    for at, name in enumerate(DAYS):
        add(made, name, 100 * at, 100)
    for name in ("dc1", "dc2"):
        factories.data_center(name, (tmp_path / name).as_uri())
    factories.connection("ops", url=f"sqlite:///{tmp_path / 'ops.db'}")
    return made


def add(lake: Lake, name: str, first: int, rows: int) -> None:
    with sqlite3.connect(lake.source) as db:
        db.executemany("INSERT INTO flights VALUES (?, ?, ?)", [(first + row, name, name[:7]) for row in range(rows)])


@pytest.fixture
def flights(lake: Lake) -> Dataset:
    """Loaded by day in two data centers."""
    application = replace(AT_OPS, ingested=True, copies=(), every=EVERY)
    dataset = onboard_dataset(application, actor="ines", now=NOW).dataset
    work(lake, NOW)
    return dataset


@pytest.fixture
def tested(flights: Dataset) -> Dataset:
    run_tests(NOW)
    assert verdict(NOW) is Verdict.PASS
    return flights


def work(lake: Lake, now: datetime, *, switching: bool = True) -> None:
    """What beat, the worker and the follower do, until nothing is due."""
    offboarding.close_offboarded(now=now)
    follow_runs.end_unwanted(now=now)
    feed_schedule.request_due_runs(now=now)
    launcher = FakeLauncher(lake.write)
    while run_worker.run_next(worker_at(now, launcher)) is not None:
        pass
    follow_once(worker_at(now, launcher, "host:1:f"))
    if switching:
        rebuilds.switch_whole_rebuilds(holder="host:1:b", now=now)
    rebuilds.drop_cancelled(now=now)


def run_tests(now: datetime) -> None:
    claim_touched_partitions(now=now)
    observe_findings(now=now)
    generate.generate_outdated(now=now)
    baseline.start_missing_baselines(now=now)
    while quality_worker.run_due_units(now=now, worker="test", most=500):
        pass


def verdict(now: datetime, name: str = DAYS[1]) -> Verdict:
    return ask_gate(CopyQuestion("flights", day(name), "pricing", "dc1"), now=now).answer.verdict


def change(dataset: Dataset, **fields: object) -> Dataset:
    dataset.refresh_from_db()
    return change_dataset(dataset, fields, actor="ann", now=NOW + MINUTE)


def under_way(dataset: Dataset) -> Rebuild:
    rebuild = open_rebuild(dataset)
    assert rebuild is not None
    return rebuild


def built(dataset: Dataset, where: str = "dc1") -> DatasetCopy:
    return DatasetCopy.with_removed.get(rebuild=under_way(dataset), data_center__name=where)


def states(dataset: Dataset) -> list[str]:
    return [each.state for each in rebuilds.built_copies(under_way(dataset))]


def definition(dataset: Dataset) -> tuple[object, ...]:
    dataset.refresh_from_db()
    uris = {copy.data_center.name: copy.uri.rpartition("/")[2] for copy in dataset.copies.all()}
    return dataset.partition_column, dataset.grain, uris


BEFORE = ("flight_date", "day", {"dc1": "flights", "dc2": "flights"})
AFTER = ("month", "month", {"dc1": "flights-2", "dc2": "flights-2"})


def test_the_present_tables_stay_until_the_new_ones_are_whole(tested: Dataset, lake: Lake) -> None:
    change(tested, **BY_MONTH)
    assert (definition(tested), states(tested), verdict(NOW + MINUTE)) == (BEFORE, ["loading"] * 2, Verdict.PASS)
    # Both are fed: a row that comes while the new ones are loaded is in the present ones first.
    add(lake, DAYS[2], 1_000, 7)
    work(lake, NOW + EVERY, switching=False)
    run_tests(NOW + EVERY)
    assert (definition(tested), states(tested), verdict(NOW + EVERY)) == (BEFORE, ["whole"] * 2, Verdict.PASS)
    kinds = JobRun.objects.filter(copy__rebuild__isnull=False).values_list("kind", flat=True)
    assert set(kinds) == {JobKind.BOOTSTRAP}
    assert rebuilds.switch_whole_rebuilds(holder="host:1:b", now=NOW + EVERY) == 1
    assert (definition(tested), open_rebuild(tested)) == (AFTER, None)
    assert verdict(NOW + EVERY) is Verdict.UNKNOWN, "nothing of the new table was tested yet"
    run_tests(NOW + 20 * DAY)  # the month is over, and due
    assert {unit.test.key for unit in Unit.objects.filter(copy__in=tested.copies.all(), latest_outcome="pass")} >= {
        "duplicates",
        "volume",
    }
    assert not Unit.objects.filter(copy__removed_at__isnull=False, due_at__isnull=False).exists()
    actions = AuditEntry.objects.filter(subject="dataset:flights", action__contains="rebuild").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == ["start rebuild"] * 2 + ["switch rebuild"]


def test_what_came_meanwhile_is_read_before_the_switch(flights: Dataset, lake: Lake) -> None:
    change(flights, **BY_MONTH)
    work(lake, NOW + MINUTE)  # the present ones have just looked, and the new ones are loaded
    assert definition(flights) == AFTER
    change(flights, partition_column="flight_date", grain="day")
    work(lake, NOW + MINUTE, switching=False)
    add(lake, DAYS[2], 1_000, 7)
    present = factories.copy_of(flights)
    factories.run(present, started_at=NOW + 3 * MINUTE)
    assert states(flights) == ["behind", "whole"]
    assert rebuilds.switch_whole_rebuilds(holder="host:1:b", now=NOW + 3 * MINUTE) == 0
    assert definition(flights) == AFTER
    work(lake, NOW + 3 * EVERY)
    assert definition(flights)[0] == "flight_date"
    assert rows_in_lake(factories.copy_of(flights).uri) == 307


def test_a_job_that_writes_is_waited_for(flights: Dataset, lake: Lake) -> None:
    change(flights, **BY_MONTH)
    work(lake, NOW + MINUTE, switching=False)
    run = factories.run(factories.copy_of(flights), state=JobState.RUNNING, ended_at=None)
    assert rebuilds.switch_whole_rebuilds(holder="host:1:b", now=NOW + MINUTE) == 0
    JobRun.objects.filter(pk=run.pk).update(state=JobState.SUCCEEDED)
    assert rebuilds.switch_whole_rebuilds(holder="host:1:b", now=NOW + MINUTE) == 1


def test_the_switch_is_whole_or_not_at_all(flights: Dataset, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    change(flights, **BY_MONTH)
    work(lake, NOW + MINUTE, switching=False)

    def fail(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("lakehub.catalog.onboarding.rebuild.bump_compared_datasets", fail)
        assert rebuilds.switch_whole_rebuilds(holder="host:1:b", now=NOW + MINUTE) == 0
    assert (definition(flights), states(flights)) == (BEFORE, ["whole"] * 2)
    assert rebuilds.switch_whole_rebuilds(holder="host:1:c", now=NOW + MINUTE) == 1


def test_one_that_fails_leaves_the_present_tables_and_is_tried_again(tested: Dataset, lake: Lake) -> None:
    change(tested, **BY_MONTH)
    lake.fails.add(built(tested, "dc2").uri)
    at = NOW + MINUTE
    while JobRun.objects.filter(copy=built(tested, "dc2"), state=JobState.FAILED).count() == 0:
        at += EVERY
        work(lake, at)
        run_tests(at)
    assert (definition(tested), states(tested)) == (BEFORE, ["whole", "failed"])
    assert (verdict(at), Incident.objects.count()) == (Verdict.PASS, 0)
    assert Finding.objects.get(cleared_at=None).copy == built(tested, "dc2")
    lake.fails.clear()
    at += 2 * EVERY
    work(lake, at)
    run_tests(at)
    assert (definition(tested), Incident.objects.count()) == (AFTER, 0)
    assert not Unit.objects.filter(test__category="ingestion", verdict="fail").exists()


def test_one_that_is_cancelled_leaves_nothing_and_another_may_begin(tested: Dataset, lake: Lake) -> None:
    change(tested, **BY_MONTH)
    lake.fails.add(built(tested, "dc2").uri)
    work(lake, NOW + MINUTE)
    cancelled = under_way(tested)
    cancel_rebuild(cancelled, actor="ann", now=NOW + 2 * MINUTE)
    with pytest.raises(Conflict, match="has ended already"):
        cancel_rebuild(cancelled, actor="ben", now=NOW + 2 * MINUTE)
    for _ in range(2):
        work(lake, NOW + 2 * MINUTE)
    ended = JobRun.objects.filter(copy__rebuild=cancelled).exclude(kind=JobKind.DROP)
    assert set(ended.values_list("state", flat=True)) == {JobState.SUCCEEDED, JobState.CANCELLED}
    drops = JobRun.objects.filter(kind=JobKind.DROP)
    assert {str(run.copy.uri).rpartition("/")[2] for run in drops} == {"flights-2"}
    assert drops.count() == 2
    assert (definition(tested), verdict(NOW + 2 * MINUTE)) == (BEFORE, Verdict.PASS)
    change(tested, **BY_MONTH)
    assert built(tested).uri.endswith("flights-3")
    work(lake, NOW + 3 * MINUTE)
    assert definition(tested) == ("month", "month", {"dc1": "flights-3", "dc2": "flights-3"})


def test_rows_that_the_source_no_longer_has_wait_for_a_decision(flights: Dataset, lake: Lake) -> None:
    with sqlite3.connect(lake.source) as db:
        db.execute("DELETE FROM flights WHERE flight_date = ?", [DAYS[0]])
    change(flights, **BY_MONTH)
    work(lake, NOW + MINUTE)
    rebuild = under_way(flights)
    assert rebuild.problem.startswith(
        "dc1: the new table holds 200 rows, the present one 300; 100 rows that the source"
    )
    assert definition(flights) == BEFORE
    work(lake, NOW + 3 * EVERY)
    assert definition(flights) == BEFORE
    accept_fewer_rows(rebuild, actor="ann", now=NOW + 3 * EVERY)
    work(lake, NOW + 3 * EVERY)
    assert definition(flights) == AFTER
    accepted = AuditEntry.objects.get(action="accept fewer rows")
    assert (accepted.actor, "100 rows" in accepted.detail["why"]) == ("ann", True)


def test_nobody_decides_about_one_that_needs_no_decision(flights: Dataset) -> None:
    change(flights, **BY_MONTH)
    with pytest.raises(Conflict, match="waits for nobody's decision"):
        accept_fewer_rows(under_way(flights), actor="ann", now=NOW)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"data_centers": ("dc1",)}, "A rebuild of `flights` is under way since 2026-11-17"),
        ({"partition_tz": "UTC"}, "Wait until it has switched, or cancel it."),
    ],
)
def test_what_it_is_built_from_stays_meanwhile(flights: Dataset, fields: dict[str, object], says: str) -> None:
    change(flights, **BY_MONTH)
    with pytest.raises(Refused) as refused:
        change(flights, **fields)
    assert says in refused.value.fields[next(iter(fields))]
    assert change(flights, team=factories.team("radar").name).team.name == "radar"


def test_source_and_partition_are_changed_one_after_the_other(flights: Dataset) -> None:
    with pytest.raises(Refused, match="Change the source before that"):
        change(flights, data_centers=("dc1",), **BY_MONTH)
    flights.feed.__class__.objects.update(paused=True)
    with pytest.raises(Refused, match="The feed is paused"):
        change(Dataset.objects.get(), **BY_MONTH)
    assert not Rebuild.objects.exists()


def test_an_off_boarded_dataset_builds_nothing_more(flights: Dataset, lake: Lake) -> None:
    change(flights, **BY_MONTH)
    work(lake, NOW + MINUTE, switching=False)
    flights.refresh_from_db()
    offboard_dataset(flights, actor="ann", now=NOW + 2 * MINUTE)
    work(lake, NOW + 2 * MINUTE)
    assert Rebuild.objects.get().state == RebuildState.CANCELLED
    assert JobRun.objects.filter(kind=JobKind.DROP).count() == 2
    assert [copy.uri.rpartition("/")[2] for copy in flights.copies.all()] == ["flights", "flights"]


def test_the_partitions_of_a_new_table_are_those_that_it_will_have(flights: Dataset) -> None:
    change(flights, **BY_MONTH)
    hudi_timeline.commit(built(flights), "20261117100000000", {"2026-11": (300, 0, 0)})
    commits.record_new_commits(built(flights), now=NOW)
    touched = TouchedPartition.objects.get(copy=built(flights))
    assert (touched.end - touched.start) > timedelta(days=27)
    for _ in range(2):
        claim_touched_partitions(now=NOW + MINUTE)
    assert not TouchedPartition.objects.filter(claimed_at=None).exists()
    assert not Unit.objects.filter(copy=built(flights)).exists()


def test_what_was_left_can_be_dropped(flights: Dataset, lake: Lake) -> None:
    change(flights, **BY_MONTH)
    work(lake, NOW + MINUTE)
    left = left_tables(flights)
    assert [copy.uri.rpartition("/")[2] for copy in left] == ["flights", "flights"]
    job_runs.request_run(left[0], JobKind.DROP, asked_by="ann", now=NOW)
    work(lake, NOW + 2 * MINUTE)
    assert JobRun.objects.get(kind=JobKind.DROP).state == JobState.SUCCEEDED
    assert definition(flights) == AFTER


def test_a_form_of_partitions_outlives_another_change(lake: Lake) -> None:
    """`%Y%m%d` was lost with any later change, which then was refused or read the column otherwise."""
    with sqlite3.connect(lake.source) as db:
        db.execute("ALTER TABLE flights ADD COLUMN ds TEXT")
        db.execute("UPDATE flights SET ds = replace(flight_date, '-', '')")
    form = replace(AT_OPS, ingested=False, data_centers=("dc1",), copies=(), partition_column="ds")
    onboard_dataset(replace(form, partition_form="%Y%m%d"), actor="ines", now=NOW)
    dataset = change(Dataset.objects.get(), team=factories.team("radar").name)
    assert (dataset.team.name, dataset.partition_form) == ("radar", "%Y%m%d")
    dataset = change(dataset, partition_column="flight_date")
    assert dataset.partition_form == ""


# On the page, over the API, by command


def signed_in(role: Role) -> Client:
    client, person = Client(), factories.user(f"a-{role}")
    factories.member(person, factories.team(), role)
    client.force_login(person)
    return client


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_what_comes_of_it_is_told_first(flights: Dataset) -> None:
    factories.run(factories.copy_of(flights), JobKind.DELETE)
    answer = signed_in(Role.OWNER).patch("/api/v1/datasets/flights?check=1", BY_MONTH, content_type="application/json")
    reads = [line["text"] for line in answer.json()["consequences"] if line["about"] == "reads"]
    present = factories.copy_of(flights).uri
    assert reads[0] == (
        f"dc1: built from the source into {present}-2; {present} is read, tested and fed until that is whole"
    )
    assert reads[-1] == "Rows that 1 delete jobs removed from the lake come back where the source still has them"
    assert (definition(flights), Rebuild.objects.count()) == (BEFORE, 0), "nothing was changed"


def test_an_owner_follows_and_cancels_it_over_the_api(flights: Dataset, lake: Lake) -> None:
    owner, address = signed_in(Role.OWNER), "/api/v1/datasets/flights/rebuild"
    assert owner.get(address).status_code == 404
    assert owner.patch("/api/v1/datasets/flights", BY_MONTH, content_type="application/json").status_code == 200
    lake.fails.add(built(flights, "dc2").uri)
    work(lake, NOW + MINUTE)
    body = owner.get(address).json()
    assert (body["state"], body["partition_column"], body["asked_by"]) == ("building", "month", "a-owner")
    assert [(copy["data_center"], copy["state"]) for copy in body["copies"]] == [("dc1", "whole"), ("dc2", "loading")]
    assert body["copies"][1]["run"]["error"] == "no space left on device"
    assert signed_in(Role.VIEWER).delete(address).status_code == 403
    assert owner.delete(address).json()["state"] == "cancelled"
    assert owner.delete(address).status_code == 404


def test_only_an_administrator_lets_rows_go(flights: Dataset, lake: Lake) -> None:
    with sqlite3.connect(lake.source) as db:
        db.execute("DELETE FROM flights WHERE flight_date = ?", [DAYS[0]])
    change(flights, **BY_MONTH)
    work(lake, NOW + MINUTE)
    owner, admin, address = signed_in(Role.OWNER), signed_in(Role.ADMIN), "/api/v1/datasets/flights/rebuild"
    page = text_of(owner.get("/datasets/flights/definition"))
    assert "It waits for a decision. dc1: the new table holds 200 rows, the present one 300" in page
    assert "To switch with fewer rows you need to be admin" in page
    assert owner.post(f"{address}/accept").status_code == 403
    assert owner.post("/datasets/flights/rebuild/accept").status_code == 403
    assert admin.post(f"{address}/accept").json()["accepted_by"] == "a-admin"
    assert admin.post(f"{address}/accept").status_code == 409
    work(lake, NOW + MINUTE)
    assert definition(flights) == AFTER
    assert owner.post(f"{address}/drop").status_code == 403
    assert [run["kind"] for run in admin.post(f"{address}/drop").json()["runs"]] == ["drop", "drop"]
    assert admin.post(f"{address}/drop").status_code == 409


def test_the_page_shows_it_confirms_it_and_cancels_it(flights: Dataset, lake: Lake) -> None:
    owner, address = signed_in(Role.OWNER), "/datasets/flights/definition"
    change(flights, **BY_MONTH)
    lake.fails.add(built(flights, "dc2").uri)
    at = NOW + MINUTE
    while not JobRun.objects.filter(state=JobState.FAILED).exists():
        at += EVERY
        work(lake, at)
    page = text_of(owner.get(address))
    assert "Rebuild with another partition by month , month; started by ann" in page
    assert re.search(r"dc1 file:\S+/flights-2 Whole dc2 file:\S+/flights-2 Failed The first load into dc2 failed", page)
    assert "Whole" in text_of(owner.get(address, headers={"X-Fragment": "rebuild"}))
    assert "The present tables stay as they are." in text_of(
        owner.post("/datasets/flights/rebuild/cancel", follow=True)
    )
    page = text_of(owner.get(address))
    assert "Rebuild with another partition" not in page
    assert definition(flights) == BEFORE


def test_the_command_shows_it_and_drops_what_was_left(
    flights: Dataset, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="was never rebuilt"):
        call_command("rebuild", "flights")
    change(flights, **BY_MONTH)
    call_command("rebuild", "flights")
    assert capsys.readouterr().out.splitlines()[0] == "building: month by month, asked by ann"
    work(lake, NOW + MINUTE)
    call_command("rebuild", "flights", "--drop", "--json")
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["left_tables"]) == ("switched", [])
    with pytest.raises(CommandError, match="No rebuild of `flights` is under way"):
        call_command("rebuild", "flights", "--cancel")
