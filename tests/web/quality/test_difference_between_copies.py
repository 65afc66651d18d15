"""Two copies with lost, doubled and changed records: each side answers for what is wrong on it, the records are named and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from incidents.lifecycle.intake import process_flips
from incidents.models import Incident
from lakehub.accounts.models import Role
from quality.execution import claims, evaluate, store
from quality.measuring.measure import measure_units
from quality.models import Category, Result, Unit
from tests import factories, hudi_tables
from tests.factories import NOW, day
from tests.web.quality.conftest import DAYS, World, rows

LATER = "20261117120000000"
DAY = DAYS[0]


def overwrite(world: World, where: str, changed: pa.Table, instant: str = LATER) -> None:
    hudi_tables.overwrite(world.table(where), DAY, changed, column="flight_date", instant=instant)


def damaged() -> pa.Table:
    """Flight 17 is lost, flight 4 is there twice, and flight 30 has another tail number."""
    whole = rows(DAY, 1000)
    kept = pa.concat_tables([whole.slice(0, 17), whole.slice(18), whole.slice(4, 1)])
    tail = pc.if_else(pc.equal(kept["id"], 30), "N999", kept["tailnum"])
    return kept.set_column(2, "tailnum", tail)


def outcome(unit: Unit) -> tuple[str, str, str]:
    return unit.latest_outcome, unit.detail["observed"], unit.detail["behind"]


def key(number: int) -> dict[str, str]:
    return {"id": str(number), "flight_date": DAY}


def test_each_copy_answers_for_what_is_wrong_on_its_side(make_world: Callable[..., World]) -> None:
    world = make_world(overrides={"consistency": "99.95%"})
    overwrite(world, "dc2", damaged())
    world.monitored()
    damaged_copy, other = world.unit("difference@dc1", DAY, "dc2"), world.unit("difference@dc2", DAY, "dc1")
    assert outcome(damaged_copy) == ("fail", "0.30%", "3 of 1,000")
    assert damaged_copy.detail["differences"] == [
        {"kind": "missing", "key": key(17)},
        {"kind": "doubled", "key": key(4)},
        {"kind": "changed", "key": key(30), "columns": {"tailnum": ["N999", "N2"]}},
    ]
    # What dc2 lost and doubled is not dc1's fault; which tail number is right nobody knows.
    assert outcome(other) == ("fail", "0.10%", "1 of 1,000")
    assert {record["kind"] for record in other.detail["differences"]} == {"surplus", "doubled there", "changed"}
    assert world.outcomes("difference@dc1", "dc2")[DAYS[1]] == "pass"


def test_one_lost_record_fails_the_copy_that_lost_it_and_no_other(make_world: Callable[..., World]) -> None:
    world = make_world(overrides={"consistency": "99.95%"})
    overwrite(world, "dc2", pa.concat_tables([rows(DAY, 1000).slice(0, 17), rows(DAY, 1000).slice(18)]))
    world.monitored()
    assert outcome(world.unit("difference@dc1", DAY, "dc2")) == ("fail", "0.10%", "1 of 1,000")
    assert outcome(world.unit("difference@dc2", DAY, "dc1")) == ("pass", "0%", "0 of 1,000")


def test_whatever_finds_a_loss_there_is_one_incident(make_world: Callable[..., World]) -> None:
    world = make_world(overrides={"consistency": "99.95%", "sustain": "0m"})
    overwrite(world, "dc2", damaged())
    world.monitored()
    process_flips(now=NOW)
    (incident,) = Incident.objects.filter(dataset=world.flights, category=Category.CONSISTENCY)
    failing = set(incident.spans.values_list("unit__test__key", flat=True))
    assert {"bloom@dc1", "difference@dc1", "difference@dc2"} <= failing


def test_a_day_that_a_copy_lacks_altogether_differs_in_every_record(make_world: Callable[..., World]) -> None:
    world = make_world()
    overwrite(world, "dc2", rows(DAY, 0))
    world.monitored()
    assert outcome(world.unit("difference@dc1", DAY, "dc2")) == ("fail", "100%", "1,000 of 1,000")
    assert len(world.unit("difference@dc1", DAY, "dc2").detail["differences"]) == 200


def test_a_day_that_the_other_copy_lost_leaves_this_one_verified(make_world: Callable[..., World]) -> None:
    world = make_world()
    overwrite(world, "dc2", rows(DAY, 0))
    world.monitored()
    assert outcome(world.unit("difference@dc2", DAY, "dc1")) == ("pass", "0%", "0 of 1,000")
    assert world.unit("difference@dc2", DAY, "dc1").detail["bloom"]["surplus"] == 1_000
    assert outcome(world.unit("bloom@dc2", DAY, "dc1")) == ("pass", "100%", "no keys on the other side")
    gating = Unit.objects.filter(copy=world.copy("dc1"), start=day(DAY).start, test__gating=True)
    assert set(gating.values_list("verdict", flat=True)) == {"pass"}


def test_a_column_that_each_data_center_writes_for_itself_may_be_left_out(make_world: Callable[..., World]) -> None:
    own = rows(DAY, 1000).set_column(2, "tailnum", pa.array(["dc2"] * 1000))
    world = make_world(overrides={"not_compared": "tailnum"})
    overwrite(world, "dc2", own)
    world.monitored()
    unit = world.unit("difference@dc1", DAY, "dc2")
    assert outcome(unit) == ("pass", "0%", "0 of 1,000")
    assert unit.detail["bloom"]["left_out"] == ["tailnum: not compared, as the test says"]


def test_it_heals_when_the_copies_agree_again(make_world: Callable[..., World]) -> None:
    world = make_world(overrides={"consistency": "99.95%"})
    overwrite(world, "dc2", damaged())
    world.monitored()
    overwrite(world, "dc2", rows(DAY, 1000), "20261117130000000")
    unit = world.unit("difference@dc1", DAY, "dc2")
    assert unit.due_at is not None
    world.run(unit.due_at)
    unit.refresh_from_db()
    assert (unit.latest_outcome, unit.detail.get("differences")) == ("pass", None)


def test_records_of_another_teams_dataset_are_named_for_that_team_only(
    make_world: Callable[..., World], client: Client
) -> None:
    """Whoever writes a test of their own dataset may compare it with any other: that shows no rows of the other."""
    world = make_world()
    salaries = rows(DAY, 1000)
    salaries = salaries.set_column(2, "tailnum", pa.array([f"EUR {number}000" for number in range(1000)]))
    days: dict[str | None, pa.Table] = {DAY: salaries}
    hudi_tables.hudi_table(world.lakes["dc1"] / "payroll", days, column="flight_date")
    payroll = factories.dataset("payroll", team=factories.team("people"), columns=world.flights.columns)
    for key, expression in (
        ("differ", "difference(this, payroll, '', id) < 1%"),
        ("match", "matching(this, payroll, 100%, tailnum) > 99%"),
    ):
        test = factories.test(world.flights, key=key, expression=expression)
        factories.unit(test, world.copy(), factories.day(DAY), due_at=NOW)
    world.run(NOW)
    assert "EUR " in str(world.unit("differ").detail["differences"])
    assert "EUR " in str(world.unit("match").detail["missing"])
    viewer = factories.user("vera")
    factories.member(viewer, world.flights.team, Role.VIEWER)
    client.force_login(viewer)
    pages = ("/datasets/flights/tests/differ", "/datasets/flights/tests/match", "/api/v1/datasets/flights/units")
    assert not any("EUR" in client.get(page).content.decode() for page in pages)
    factories.member(viewer, payroll.team, Role.VIEWER)
    assert all("EUR" in client.get(page).content.decode() for page in pages)


def statements_of_storing(world: World, days: Sequence[str]) -> tuple[list[str], list[Result]]:
    """What the database is asked while the differences of these days are stored."""
    due = Unit.objects.filter(
        test__key="difference@dc1", copy=world.copy("dc2"), start__in=[day(name).start for name in days]
    )
    due.update(due_at=NOW)
    claimed = claims.claim_due_units(now=NOW, worker="a")
    assert claimed is not None
    answers = measure_units(claimed.units[0].copy, claimed.units, now=NOW)
    runs = evaluate.evaluate_units(claimed.units, answers, now=NOW)
    with CaptureQueriesContext(connection) as captured:
        results = store.store_executions(claimed, runs, now=NOW, took=timedelta())
    return [query["sql"] for query in captured.captured_queries], results


def test_storing_many_differences_takes_as_many_statements_as_storing_one(make_world: Callable[..., World]) -> None:
    world = make_world()
    for number, name in enumerate(DAYS):
        lost = rows(name, 1000).slice(1)
        hudi_tables.overwrite(world.table("dc2"), name, lost, column="flight_date", instant=f"{LATER[:-1]}{number}")
    world.monitored()
    single, _ = statements_of_storing(world, DAYS[:1])
    many, results = statements_of_storing(world, DAYS)
    assert [len(result.detail["differences"]) for result in results] == [1, 1, 1]
    assert len(many) == len(single)


def test_other_datasets_are_looked_up_for_named_records_only_and_before_any_row_is_locked(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    overwrite(world, "dc2", damaged())
    world.monitored()
    agreeing, _ = statements_of_storing(world, DAYS[1:])
    differing, _ = statements_of_storing(world, DAYS[:1])
    assert not any("catalog_datasetcopy" in statement for statement in agreeing)
    begins = next(place for place, sql in enumerate(differing) if sql.startswith(("SAVEPOINT", "BEGIN")))
    looks = [place for place, statement in enumerate(differing) if "catalog_datasetcopy" in statement]
    assert looks
    assert max(looks) < begins
