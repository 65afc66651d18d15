"""Rows that break a test: read when it fails, few and short, kept while it fails, for the owning team's eyes only."""

from __future__ import annotations

import csv
import io
import logging
import shutil
from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pytest
from django.test import Client

from lakehub.accounts.models import Role
from quality.execution import failing_rows, retention
from quality.models import Category, FailingRows, QualityTest, Result, Unit
from tests import factories, hudi_tables
from tests.factories import DAY, HOUR, NOW
from tests.web.quality.conftest import DAYS, World

pytestmark = pytest.mark.django_db
UNEXPECTED = "unexpected(this.tailnum, 'N1', 'N2', 'N3', 'N4', 'N5', 'N6') == 0"
"""One row in seven has N0."""


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(counts=(70, 700, 7_000), where=("dc1",))


def failing(world: World, expression: str, category: Category = Category.OTHERS, *, days: int = 3) -> QualityTest:
    """A test whose units of the newest days are due; nothing else is."""
    sustain = timedelta()
    test = factories.test(world.flights, category, key="odd", expression=expression, sustain=sustain)
    for day in DAYS[-days:]:
        factories.unit(test, world.copy(), factories.day(day), due_at=NOW, last_pass_at=NOW - DAY)
    return test


def replace_rows(world: World, rows: pa.Table) -> None:
    """All that the table holds are these rows of the newest day."""
    shutil.rmtree(world.table())
    hudi_tables.hudi_table(world.table(), {DAYS[2]: rows}, column="flight_date")


def rows_of(day: str) -> FailingRows:
    return FailingRows.objects.select_related("result").get(unit__start=factories.day(day).start)


def test_up_to_100_rows_are_named_by_key_and_tested_columns(world: World) -> None:
    failing(world, UNEXPECTED)
    world.run(NOW)
    kept = [rows_of(day) for day in DAYS]
    assert [len(row.samples[0]["rows"]) for row in kept] == [10, 100, 100]
    sample = kept[0].samples[0]
    assert sample["columns"] == ["id", "flight_date", "tailnum"]
    assert sorted(sample["rows"])[:2] == [["0", "2026-11-14", "N0"], ["14", "2026-11-14", "N0"]]
    assert [row.result for row in kept] == [Result.objects.get(unit=row.unit_id) for row in kept]


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("nulls(this.tailnum) == 0 and unexpected(this.tailnum, 'N1') == 0", 60),
        ("mismatched(this.tailnum, 'N[1-6]') == 0", 10),
        ("outside(this.id, 0, 68) == 0", 1),
        ("div(unexpected(this.tailnum, 'N1'), rows(this)) < 1%", 60),
    ],
)
def test_each_kind_of_column_test_has_rows(world: World, expression: str, rows: int) -> None:
    failing(world, expression)
    world.run(NOW)
    assert sum(len(sample["rows"]) for sample in rows_of(DAYS[0]).samples) == rows


def test_duplicates_are_named_with_how_often_they_are_there(world: World) -> None:
    doubled = pa.table({"id": [1, 1, 1, 2], "flight_date": [DAYS[2]] * 4, "tailnum": ["N1"] * 4})
    replace_rows(world, doubled)
    failing(world, "sub(1, div(distinct(this, id, flight_date), rows(this))) < 0.1%", Category.DUPLICATES, days=1)
    world.run(NOW)
    (sample,) = rows_of(DAYS[2]).samples
    assert sample["columns"] == ["id", "flight_date", "rows with this key"]
    assert sample["rows"] == [["1", DAYS[2], "3"]]


def test_nothing_is_read_of_a_test_that_passes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_rows, "read_failing_rows", lambda *_, **__: pytest.fail("read"))
    failing(world, "unexpected(this.tailnum, 'N1') >= 0")
    failing_rows_test = factories.test(world.flights, key="many", expression="rows(this) > 1000000")
    factories.unit(failing_rows_test, world.copy(), factories.day(DAYS[0]), due_at=NOW)
    assert world.run(NOW) == 4
    assert not FailingRows.objects.exists()


def test_a_rerun_that_observes_the_same_reads_them_once_an_hour(world: World) -> None:
    failing(world, UNEXPECTED, days=1)
    for at in (NOW, NOW + HOUR / 2, NOW + 2 * HOUR):
        Unit.objects.filter(test__key="odd").update(due_at=at)
        world.run(at)
        assert rows_of(DAYS[2]).read_at == (NOW if at < NOW + HOUR else at)


def test_long_texts_and_many_columns_stay_small(world: World) -> None:
    """Rows of 5 MB and 500 columns: the key and the tested columns, cut, and 64 KB in all."""
    wide = {f"c{number}": ["x"] * 100 for number in range(500)}
    texts = [f"{number}" + "é" * 300 for number in range(99)] + ["z" * 5_000_000]
    table = pa.table({"id": list(range(100)), "flight_date": [DAYS[2]] * 100, "tailnum": texts, **wide})
    replace_rows(world, table)
    failing(world, "unexpected(this.tailnum, 'N1') == 0", days=1)
    world.run(NOW)
    (sample,) = rows_of(DAYS[2]).samples
    assert sample["columns"] == ["id", "flight_date", "tailnum"]
    assert max(len(value) for row in sample["rows"] for value in row) == 201
    assert len(str(sample["rows"]).encode()) < failing_rows.MAX_BYTES + 5_000
    assert 90 < len(sample["rows"]) <= 100


def test_they_are_kept_while_the_unit_fails_and_30_days_after(world: World) -> None:
    failing(world, UNEXPECTED, days=2)
    world.run(NOW)
    later = NOW + 40 * DAY
    Unit.objects.filter(start=factories.day(DAYS[1]).start).update(first_fail_at=None, last_fail_at=None)
    Result.objects.all().delete()
    assert rows_of(DAYS[2]).result is None
    assert retention.delete_old_failing_rows(now=NOW + 20 * DAY, retention=30 * DAY) == 0
    assert retention.delete_old_failing_rows(now=later, retention=30 * DAY) == 1
    assert FailingRows.objects.get() == rows_of(DAYS[2])


def test_what_no_database_takes_is_written_out(world: World) -> None:
    """A NUL, of which PostgreSQL keeps no JSON: no row would be shown of the test."""
    replace_rows(world, pa.table({"id": [1], "flight_date": [DAYS[2]], "tailnum": ["N\0"]}))
    failing(world, "unexpected(this.tailnum, 'N1') == 0", days=1)
    world.run(NOW)
    assert rows_of(DAYS[2]).samples[0]["rows"] == [["1", DAYS[2], "N\\x00"]]


def test_what_cannot_be_read_costs_no_result(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no rows today")

    monkeypatch.setattr(failing_rows, "run_requests", fail)
    failing(world, UNEXPECTED, days=1)
    assert world.run(NOW) == 1
    assert (Result.objects.get().outcome, FailingRows.objects.count()) == ("fail", 0)


def test_no_value_is_in_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    failing(world, UNEXPECTED)
    world.run(NOW)
    assert FailingRows.objects.count() == 3
    assert "N0" not in caplog.text.replace("'N1'", "")


# On the page


@pytest.fixture
def page(world: World) -> str:
    odd = pa.table({"id": [1, 2], "flight_date": [DAYS[2]] * 2, "tailnum": ['=HYPERLINK("http://x")', None]})
    replace_rows(world, odd)
    failing(world, "unexpected(this.tailnum, 'N1') == 0 and nulls(this.tailnum) == 0", days=1)
    world.run(NOW)
    return "/datasets/flights/tests/odd"


def signed_in(role: Role | None) -> Client:
    client, person = Client(), factories.user()
    if role is not None:
        factories.member(person, factories.team(), role)
    client.force_login(person)
    return client


def test_members_see_them_and_download_them(page: str) -> None:
    client = signed_in(Role.VIEWER)
    shown = client.get(page).content.decode()
    assert "Rows that fail" in shown
    assert "=HYPERLINK(&quot;http://x&quot;)" in shown
    answer = client.get(f"{page}/rows/{Unit.objects.get(test__key='odd').pk}.csv")
    rows = list(csv.reader(io.StringIO(b"".join(answer).decode())))
    assert rows[0] == ["measure", "id", "flight_date", "tailnum"]
    assert ["unexpected(tailnum, N1)", "1", DAYS[2], '\'=HYPERLINK("http://x")'] in rows
    assert ["nulls(tailnum)", "2", DAYS[2], ""] in rows


def test_who_is_in_no_role_of_the_team_sees_none(page: str) -> None:
    client = signed_in(None)
    shown = client.get(page).content.decode()
    assert "Rows that fail" not in shown
    assert "HYPERLINK" not in shown
    assert client.get(f"{page}/rows/{Unit.objects.get(test__key='odd').pk}.csv").status_code == 403


def test_another_test_has_none_of_them(page: str, world: World) -> None:
    factories.test(world.flights, key="other")
    unit = Unit.objects.get(test__key="odd").pk
    client = signed_in(Role.VIEWER)
    assert client.get(f"/datasets/flights/tests/other/rows/{unit}.csv").status_code == 404


# Over the API


def test_the_api_has_what_the_page_has(page: str) -> None:
    unit = Unit.objects.get(test__key="odd")
    answer = signed_in(Role.VIEWER).get(f"/api/v1/units/{unit.pk}/rows")
    body = answer.json()
    assert (body["unit"], body["result"], body["test"]) == (unit.pk, Result.objects.get(unit=unit).pk, "odd")
    assert (body["data_center"], body["fails"]) == ("dc1", True)
    by_measure = {sample["measure"]: sample for sample in body["samples"]}
    nulls = by_measure["nulls(tailnum)"]
    assert (nulls["columns"], nulls["rows"]) == (["id", "flight_date", "tailnum"], [["2", DAYS[2], None]])
    assert by_measure["unexpected(tailnum, N1)"]["rows"] == [["1", DAYS[2], '=HYPERLINK("http://x")']]


def test_the_api_shows_rows_to_members_only(page: str) -> None:
    address = f"/api/v1/units/{Unit.objects.get(test__key='odd').pk}/rows"
    refused = signed_in(None).get(address)
    assert (refused.status_code, "HYPERLINK" in refused.content.decode()) == (403, False)
    assert Client().get(address).status_code == 401


def test_the_api_says_where_there_are_none(page: str, world: World) -> None:
    other = factories.unit(factories.test(world.flights, key="other"), world.copy(), factories.day(DAYS[0]))
    for number, sentence in ((other.pk, "No rows that fail are kept"), (10**9, "There is no unit")):
        answer = signed_in(Role.VIEWER).get(f"/api/v1/units/{number}/rows")
        assert (answer.status_code, sentence in answer.json()["error"]["message"]) == (404, True)
