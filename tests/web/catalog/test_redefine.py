"""What was said at onboarding is changed later: checked as then, told first, audited, and what is tested follows."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from incidents.gate.answer import CopyQuestion, ask_gate
from incidents.lifecycle import intake, resolution
from incidents.models import Incident
from ingestion.models import JobKind, JobRun, JobState
from lakehub import wiring
from lakehub.accounts.models import AuditEntry, Role, User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.catalog.onboarding.redefine import change_dataset, prepare_change
from lakehub.catalog.storages.sql import SqlStorage
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.outcome import Verdict
from quality.execution import worker
from quality.generation import generate
from quality.models import QualityTest, Unit
from quality.planning import baseline
from tests import factories
from tests.factories import HOUR, NOW, day
from tests.web.catalog.test_copy_locations import AT_OPS, DAYS, database

pytestmark = pytest.mark.django_db
AT_ONE = replace(AT_OPS, data_centers=("dc1",), copies=())


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ops2` lacks half of a day; `ops3` is whole."""
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)
    for name in ("dc1", "dc2"):
        factories.data_center(name)
    whole = dict.fromkeys(DAYS, 1000)
    for name, rows in (("ops", whole), ("ops2", {**whole, DAYS[1]: 500}), ("ops3", whole)):
        factories.connection(name, url=database(tmp_path / f"{name}.db", rows))


def onboard(application: OnboardingRequest) -> Dataset:
    dataset = onboard_dataset(application, actor="ines", now=NOW).dataset
    settle(NOW)
    return dataset


CHANGED_AT = NOW + 13 * HOUR


def settle(since: datetime = CHANGED_AT) -> None:
    """What beat would do, until nothing more is due, and twelve hours later again: failures are sustained by then."""
    for at in (since, since + 12 * HOUR):
        generate.generate_outdated(now=at)
        baseline.start_missing_baselines(now=at)
        while worker.run_due_units(now=at, worker="test", most=200):
            pass
        while intake.process_flips(now=at):
            pass
        resolution.close_removed_copies(now=at)


def change(dataset: Dataset, **changes: Any) -> Dataset:
    dataset.refresh_from_db()
    return change_dataset(dataset, changes, actor="ann", now=CHANGED_AT)


def outcomes(name: str, category: str, data_center: str) -> set[str]:
    live = Unit.objects.filter(test__category=category, test__retired_at=None, copy__removed_at=None)
    return set(
        live.filter(copy__data_center__name=data_center, start=day(name).start).values_list("latest_outcome", flat=True)
    )


def test_a_data_center_is_added_compared_and_taken_away_again() -> None:
    dataset = onboard(AT_ONE)
    assert not QualityTest.objects.filter(category="consistency", retired_at=None).exists()
    change(dataset, data_centers=("dc1", "dc2"), copies=(CopyRequest("dc2", "ops2", "flights"),))
    settle()
    assert outcomes(DAYS[1], "consistency", "dc2") == {"fail"}
    assert Incident.objects.get(resolved_at=None).category == "consistency"
    change(dataset, data_centers=("dc1",))
    settle()
    assert Incident.objects.get().resolution == "copy_removed"
    assert [str(copy) for copy in DatasetCopy.objects.all()] == ["flights@dc1"]
    assert not Unit.objects.filter(copy__removed_at__isnull=False, due_at__isnull=False).exists()
    audited = AuditEntry.objects.filter(action="redefine").order_by("pk")[0].detail
    assert audited["was"]["data_centers"] == ["dc1"]
    assert audited["becomes"]["copies"] == ["dc2: ops2.flights"]


def test_the_copy_at_the_feed_may_go() -> None:
    dataset = onboard(replace(AT_OPS, copies=(CopyRequest("dc2", "ops3", "flights"),)))
    change(dataset, data_centers=("dc2",))
    dataset = Dataset.objects.get()
    assert (dataset.feed.source_name, DatasetCopy.objects.get().source_name) == ("ops3", "ops3")
    assert Unit.objects.filter(copy__data_center__name="dc2", latest_outcome="pass").exists(), "what was known stays"


def test_a_copy_that_is_moved_is_unknown_until_it_is_tested_there() -> None:
    dataset = onboard(replace(AT_OPS, copies=(CopyRequest("dc2", "ops3", "flights"),)))
    assert outcomes(DAYS[1], "consistency", "dc2") == {"pass"}
    change(dataset, copies=(CopyRequest("dc2", "ops2", "flights"),))
    units = Unit.objects.filter(copy__data_center__name="dc2", latest_at__isnull=False, test__planned=True)
    assert set(units.values_list("verdict", flat=True)) == {"unknown"}
    question = CopyQuestion("flights", day(DAYS[1]), "pricing", "dc2")
    assert ask_gate(question, now=CHANGED_AT).answer.verdict is Verdict.UNKNOWN
    settle()
    assert outcomes(DAYS[1], "consistency", "dc2") == {"fail"}


def test_a_copy_that_is_moved_has_the_history_of_its_new_place(tmp_path: Path) -> None:
    dataset = onboard(AT_ONE)
    older = "2026-11-13"
    with sqlite3.connect(tmp_path / "ops2.db") as db:
        db.execute("INSERT INTO flights VALUES (999999, ?)", [older])
    change(dataset, connection="ops2")
    settle()
    assert outcomes(older, "duplicates", "dc1") == {"pass"}


def test_two_copies_may_change_places_but_not_share_one() -> None:
    dataset = onboard(replace(AT_OPS, copies=(CopyRequest("dc2", "ops3", "flights"),)))
    with pytest.raises(Refused, match="would read the same"):
        change(dataset, copies=(CopyRequest("dc2", "ops", "flights"),))
    change(dataset, connection="ops3", copies=(CopyRequest("dc2", "ops", "flights"),))
    assert [copy.source_name for copy in DatasetCopy.objects.all()] == ["ops3", "ops"]


def test_a_job_that_is_at_work_is_named() -> None:
    dataset = onboard(replace(AT_ONE, ingested=True, data_centers=("dc1", "dc2"), kind="append-only"))
    copy = factories.copy_of(dataset, "dc2")
    run = JobRun.objects.create(copy=copy, kind=JobKind.BOOTSTRAP, state=JobState.RUNNING, asked_by="", due_at=NOW)
    with pytest.raises(Conflict, match=f"bootstrap run {run.pk} on flights@dc2: a job is at work"):
        change(dataset, data_centers=("dc1",))
    assert DatasetCopy.objects.count() == 2
    change(dataset, team=factories.team("radar").name)
    JobRun.objects.update(state=JobState.SUCCEEDED)
    change(dataset, data_centers=("dc1",))
    change(dataset, data_centers=("dc1", "dc2"))
    assert [copy.uri for copy in DatasetCopy.objects.all()] == [
        "file:///lake/dc1/flights",
        "file:///lake/dc2/flights-2",
    ]


def test_upstream_is_set_and_no_circle_is_made() -> None:
    dataset = onboard(AT_ONE)
    below, above = factories.dataset("delays"), factories.dataset("raw")
    factories.edge(dataset, below)
    with pytest.raises(Refused, match="delays is made from flights"):
        change(dataset, upstream=(UpstreamRequest("delays"),))
    change(dataset, upstream=(UpstreamRequest("raw", one_to_one=True),))
    generate.generate_outdated(now=NOW)
    assert [edge.upstream for edge in dataset.upstream_edges.all()] == [above]
    assert QualityTest.objects.filter(dataset=dataset, category="completeness", retired_at=None).exists()
    change(dataset, upstream=())
    assert not dataset.upstream_edges.exists()


def test_what_was_compared_with_another_upstream_is_unknown_until_it_is_compared_anew(tmp_path: Path) -> None:
    """It stayed green for good: no partition is tested again unless something touches it."""
    onboard(replace(AT_ONE, name="whole", connection="ops3"))
    onboard(replace(AT_ONE, name="half", connection="ops2"))
    dataset = onboard(replace(AT_ONE, upstream=(UpstreamRequest("whole", one_to_one=True),)))
    compared = Unit.objects.filter(test__dataset=dataset, test__key="completeness", start=day(DAYS[1]).start)
    assert [(unit.latest_outcome, unit.verdict) for unit in compared] == [("pass", "pass")]
    change(dataset, upstream=(UpstreamRequest("half", one_to_one=True),))
    assert [(unit.verdict, unit.reason) for unit in compared.all()] == [("unknown", "retest_overdue")]
    alone = Unit.objects.get(test__dataset=dataset, test__key="duplicates", start=day(DAYS[1]).start)
    assert alone.verdict == "pass", "what is not compared stays"
    settle()
    assert [unit.latest_outcome for unit in compared.all()] == ["fail"]


def test_another_grain_begins_anew(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("ALTER TABLE flights ADD COLUMN month TEXT")
        db.execute("UPDATE flights SET month = substr(flight_date, 1, 7)")
    dataset = onboard(AT_ONE)
    old = DatasetCopy.objects.get()
    with pytest.raises(Refused, match="no column `mont`"):
        change(dataset, partition_column="mont", grain="month")
    change(dataset, partition_column="month", grain="month")
    assert ask_gate(CopyQuestion("flights", day(DAYS[1]), "pricing"), now=CHANGED_AT).answer.verdict is Verdict.UNKNOWN
    settle()
    copy = DatasetCopy.objects.get()
    assert copy.pk != old.pk
    months = Unit.objects.filter(copy=copy, test__key="duplicates").values_list("start", flat=True)
    assert [start.astimezone(dataset.zone).day for start in months] == [1]
    assert not Unit.objects.filter(copy=old, due_at__isnull=False).exists()


def test_owner_and_upstream_change_while_the_source_is_down(tmp_path: Path) -> None:
    """Nothing else of it is checked: neither the copies, nor what was off-boarded since it was named."""
    dataset = onboard(replace(AT_OPS, copies=(CopyRequest("dc2", "ops2", "flights"),)))
    gone, raw = factories.dataset("gone", offboarded_at=NOW), factories.dataset("raw")
    factories.edge(gone, dataset)
    for file in ("ops.db", "ops2.db"):
        (tmp_path / file).unlink()
    change(dataset, team=factories.team("radar").name, connection="ops", partition_column=" flight_date ")
    change(dataset, upstream=(UpstreamRequest("raw"),))
    assert (dataset.team.name, [edge.upstream for edge in dataset.upstream_edges.all()]) == ("radar", [raw])
    assert [copy.source_name for copy in dataset.copies.all()] == ["ops", "ops2"]
    for fields in ({"table": "delays"}, {"grain": "week"}):
        with pytest.raises(Refused, match=r"ops\.db cannot be read"):
            change(dataset, **fields)
    with pytest.raises(Refused, match="There is no team `rader`"):
        change(dataset, team="rader")


def test_a_copy_that_lay_where_the_feed_reads_stays_written_so(tmp_path: Path) -> None:
    dataset = onboard(replace(AT_ONE, copies=(CopyRequest("dc1", "ops", "flights"),)))
    (tmp_path / "ops.db").unlink()
    change(dataset, team=factories.team("radar").name)
    assert list(AuditEntry.objects.get(action="redefine").detail["becomes"]) == ["team"]


def repeat_a_key(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("ALTER TABLE flights RENAME TO unique_flights")
        db.execute("CREATE TABLE flights AS SELECT * FROM unique_flights UNION ALL SELECT 1, '2026-11-16'")


def test_keys_are_searched_only_in_a_table_that_was_not_read(tmp_path: Path) -> None:
    dataset = onboard(replace(AT_ONE, ingested=True))
    for name in ("ops", "ops3"):
        repeat_a_key(tmp_path / f"{name}.db")
    change(dataset, team=factories.team("radar").name)
    change(dataset, data_centers=("dc1", "dc2"))
    with pytest.raises(Refused, match="it must be unique"):
        change(dataset, connection="ops3")
    change(dataset, grain="week", partition_form="%Y-%m-%d")


def test_a_column_unfit_for_the_lake_keeps_nobody_from_a_new_owner(tmp_path: Path) -> None:
    dataset = onboard(replace(AT_ONE, ingested=True))
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute('ALTER TABLE flights ADD COLUMN "a b" TEXT')
    change(dataset, team=factories.team("radar").name)
    with pytest.raises(Refused, match="a b"):
        change(dataset, data_centers=("dc1", "dc2"))


def test_a_copy_that_stays_is_read_only_for_another_partition(tmp_path: Path) -> None:
    dataset = onboard(replace(AT_OPS, copies=(CopyRequest("dc2", "ops2", "flights"),)))
    factories.data_center("dc3")
    (tmp_path / "ops2.db").unlink()
    with pytest.raises(Refused, match=r"dc2: .*ops2\.db cannot be read"):
        change(dataset, grain="week", partition_form="%Y-%m-%d")
    change(dataset, data_centers=("dc1", "dc2", "dc3"), copies=(CopyRequest("dc3", "ops3", "flights"),))
    assert [copy.source_name for copy in dataset.copies.all()] == ["ops", "ops2", "ops3"]


def test_another_partition_of_the_same_tables_searches_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = onboard(replace(AT_OPS, copies=(CopyRequest("dc2", "ops2", "flights"),)))
    monkeypatch.setattr(SqlStorage, "key_evidence", lambda *_: pytest.fail("it may be a table of a billion rows"))
    change(dataset, grain="week", partition_form="%Y-%m-%d")
    assert dataset.grain == "week"


def test_two_changes_at_once_one_wins() -> None:
    dataset = onboard(AT_ONE)
    stale = Dataset.objects.get()
    change(dataset, connection="ops3")
    with pytest.raises(Conflict):
        change_dataset(stale, {"connection": "ops2"}, actor="ben", now=NOW)


@pytest.fixture
def owner() -> Client:
    person = factories.user("ann")
    factories.member(person, factories.team(), Role.OWNER)
    browser = Client()
    browser.force_login(person)
    return browser


def patch(browser: Client, check: bool = False, **fields: Any) -> tuple[int, Any]:
    answer = browser.patch(f"/api/v1/datasets/flights{'?check=1' * check}", fields, content_type="application/json")
    return answer.status_code, answer.json()


def test_the_api_says_what_would_come_of_it_first(owner: Client) -> None:
    onboard(replace(AT_OPS, copies=(CopyRequest("dc2", "ops2", "flights"),)))
    status, answer = patch(owner, check=True, data_centers=["dc1"], freshness_sla=7200)
    last_lines = {line["about"]: line["text"] for line in answer["consequences"]}
    assert status == 200
    assert last_lines["reads"].startswith("dc2: tested no more")
    assert last_lines["incidents"].startswith("#")
    assert "dc2: who asks is told that there is no copy" in last_lines["gate"]
    texts = " ".join(line["text"] for line in answer["consequences"])
    assert "Ends: " in texts
    assert "planned runs move" in texts
    assert DatasetCopy.objects.count() == 2, "nothing was changed"
    assert not AuditEntry.objects.filter(action="redefine").exists()
    assert patch(owner, data_centers=["dc1"], freshness_sla=7200)[0] == 200
    assert DatasetCopy.objects.count() == 1


def test_the_right_is_that_of_every_team_that_is_concerned(owner: Client) -> None:
    onboard(AT_ONE)
    radar = factories.team("radar")
    factories.connection("theirs", url="sqlite:////nowhere.db", owner=radar)
    assert patch(owner, team="radar")[0] == 403
    assert patch(owner, connection="theirs")[0] == 403
    assert patch(owner, copies=[{"data_center": "dc1", "connection": "theirs", "table": "x"}])[0] == 403
    assert patch(owner, team="rader")[0] == 422
    assert patch(Client(), team="radar")[0] in (401, 403)
    factories.member(User.objects.get(username="ann"), radar, Role.OWNER)
    status, answer = patch(owner, team="radar")
    assert (status, answer["team"]) == (200, "radar")


def owner_of(dataset: Dataset) -> Client:
    """Somebody who may change it, and has no role in any other team."""
    person = factories.user("olga")
    factories.member(person, dataset.team, Role.OWNER)
    browser = Client()
    browser.force_login(person)
    return browser


def patched(browser: Client, **body: Any) -> int:
    return browser.patch("/api/v1/datasets/flights", body, content_type="application/json").status_code


@pytest.mark.parametrize("team", ["radar", " radar", "radar\n", "\u2003radar\u00a0"])
def test_nobody_gives_a_dataset_to_a_team_of_others_however_its_name_is_written(team: str) -> None:
    dataset = onboard(AT_ONE)
    factories.team("radar")
    assert patched(owner_of(dataset), team=team) == 403
    dataset.refresh_from_db()
    assert dataset.team.name == "flight-ops"


def test_a_team_that_was_given_a_dataset_reads_no_other_table_of_the_connection(tmp_path: Path) -> None:
    """Of who gave it the connection still is: whoever has it now reads what was given."""
    dataset = onboard(AT_ONE)
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("CREATE TABLE payroll AS SELECT * FROM flights")
    change(dataset, team=factories.team("radar").name)
    browser = owner_of(dataset)
    assert patched(browser, table="payroll") == 403
    assert patched(browser, table="payroll", connection="ops") == 403
    assert patched(browser, copies=[{"data_center": "dc1", "connection": "ops", "table": "payroll"}]) == 403
    assert dataset.feed.object == "flights"
    assert patched(browser, description="Ours now") == 200
    factories.member(User.objects.get(username="olga"), factories.team("flight-ops"), Role.OWNER)
    assert patched(browser, table="payroll") == 200


def test_of_two_that_make_a_circle_at_once_the_second_is_refused() -> None:
    """Each was checked while the other was not there yet."""
    flights = onboard(AT_ONE)
    delays = factories.dataset("delays", team=flights.team)
    first = prepare_change(flights, {"upstream": (UpstreamRequest("delays"),)})
    second = prepare_change(delays, {"upstream": (UpstreamRequest("flights"),)})
    first.write(actor="ann", now=CHANGED_AT)
    with pytest.raises(Refused, match="cannot be its upstream"):
        second.write(actor="bob", now=CHANGED_AT)
    assert [str(edge.upstream) for edge in flights.upstream_edges.all()] == ["delays"]
    assert not delays.upstream_edges.exists()
