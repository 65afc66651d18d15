"""The page of rejected rows: how many, of which column and why, and the newest of them, for members of the team."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from ingestion.models import JobKind, JobState, ReplayRequest
from lakehub.accounts.models import Role
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy
from tests import factories as make
from tests.error_tables import error_row, error_table, key_of, resolve

PAGE = "/datasets/flights/rejected"
HOSTILE = '<script>alert("x")</script>'


@pytest.fixture
def copy(flights: Dataset, tmp_path: Path) -> DatasetCopy:
    """In dc1, whose lake is a folder of the test."""
    DataCenter.objects.filter(name="dc1").update(lake_uri=tmp_path.as_uri())
    DataCenter.objects.filter(name="dc2").update(lake_uri=(tmp_path / "dc2").as_uri())
    return make.copy_of(flights)


@pytest.fixture
def folder(copy: DatasetCopy, tmp_path: Path) -> Path:
    return tmp_path / "_errors" / copy.uri.rstrip("/").rpartition("/")[2]


def html_of(browser: Client, where: str = PAGE) -> str:
    return browser.get(where).content.decode()


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def test_counts_and_newest_rows_are_shown(page: Client, folder: Path) -> None:
    error_table(folder, [error_row(0), error_row(1), error_row(2, column="", reason="not JSON", raw="{oops")])
    text = words(html_of(page))
    assert "3 rejected rows in dc1" in text
    assert "amount not a valid decimal(12,2)" in text
    assert "`amount` is 0.125 (float), which is no decimal(12,2) Raw row, 17 characters" in text
    assert "not JSON Raw row, 5 characters…{oopsFrom orders." in text


def test_rows_are_chosen_by_column_and_reason(page: Client, folder: Path) -> None:
    error_table(folder, [error_row(1, raw="row one"), error_row(2, column="id", raw="row two")])
    assert 'href="?dc=dc1&amp;column=id#rows"' in html_of(page)
    shown = html_of(page, f"{PAGE}?column=id")
    assert ("row two" in shown, "row one" in shown, "Show all" in shown) == (True, False, True)
    assert "row one" in html_of(page, f"{PAGE}?reason=1.125")
    assert "No rejected row matches." in html_of(page, f"{PAGE}?reason=nothing")


def test_many_groups_leave_the_rows_in_sight(page: Client, folder: Path) -> None:
    error_table(folder, [error_row(number, column=f"c{number:02}") for number in range(60)])
    text = words(html_of(page))
    assert "40 smaller groups…" in text
    assert "The 50 largest of 60 groups are listed." in text


def test_a_row_links_to_the_run_that_read_it(page: Client, copy: DatasetCopy, folder: Path) -> None:
    run = make.run(copy, JobKind.INCREMENTAL)
    error_table(folder, [error_row(0, run=str(run.key)), error_row(1, run="no-uuid", raw="elsewhere")])
    assert f'<a href="/datasets/flights/ingestion#run-{run.pk}">Run {run.pk}</a>' in html_of(page)
    of_run = html_of(page, f"{PAGE}?run={run.pk}")
    assert (f"Matching rows of run {run.pk}" in of_run, "elsewhere" in of_run) == (True, False)


def test_older_rows_are_on_further_pages_with_the_filters(page: Client, folder: Path) -> None:
    error_table(folder, [error_row(number, raw=f"raw-{number}.") for number in range(60)])
    first = html_of(page, f"{PAGE}?column=amount")
    (older,) = re.findall(r'href="(\?[^"]*cursor=[^"#]*)', first)
    rest = html_of(page, PAGE + older.replace("&amp;", "&"))
    assert ("raw-49." in first, "raw-50." in first) == (True, False)
    assert ("raw-49." in rest, "raw-59." in rest, "column=amount" in older) == (False, True, True)


def test_nothing_of_a_row_is_markup(page: Client, folder: Path) -> None:
    hostile = dict.fromkeys(("column", "reason", "raw", "source", "run"), HOSTILE)
    error_table(folder, [error_row(0, **hostile)])
    html = html_of(page)
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;") >= 4


@pytest.mark.parametrize("field", ["column", "reason", "raw", "source"])
def test_what_no_page_shows_is_a_mark(page: Client, folder: Path, field: str) -> None:
    error_table(folder, [error_row(0, **{field: "a\0b\x1b\u202ec\x85"})])
    html = html_of(page)
    assert "a\u2400b\u241b\ufffdc\ufffd" in html
    assert not set("\0\x1b\u202e\x85") & set(html)


def test_a_long_row_is_cut_and_downloaded_whole(page: Client, folder: Path) -> None:
    error_table(folder, [error_row(0, raw=HOSTILE + "y" * 1_000_000)])
    html = html_of(page)
    assert len(html) < 100_000
    assert "Raw row, 1,000,027 characters" in html
    answer = page.get(f"{PAGE}/{key_of(0)}?dc=dc1")
    assert answer.content.decode() == HOSTILE + "y" * 1_000_000
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="flights.rejected.txt"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_other_copy_has_its_own(page: Client, folder: Path) -> None:
    error_table(folder, [error_row(0)])
    assert "No rejected row in dc2" in words(html_of(page, f"{PAGE}?dc=dc2"))
    assert "1 rejected row in dc1" in words(html_of(page, f"{PAGE}?dc=nowhere&run=x&cursor=x"))


def test_an_empty_table_says_what_comes_here(page: Client, folder: Path) -> None:
    assert "A row that does not fit is kept here with the column and the reason" in words(html_of(page))


def test_a_damaged_table_leaves_the_rest_of_the_page(page: Client, folder: Path) -> None:
    error_table(folder, [error_row(0)])
    next(folder.glob("*.parquet")).write_bytes(b"PAR1")
    text = words(html_of(page))
    assert "The rejected rows in dc1 cannot be read." in text
    assert "Primary key" in text
    assert page.get(f"{PAGE}/{key_of(0)}?dc=dc1").status_code == 503


def test_rows_are_for_members_of_the_team(page: Client, folder: Path, guest: Client) -> None:
    error_table(folder, [error_row(0, raw="secret", reason="secret")])
    assert "secret" in html_of(guest)
    assert 'href="/datasets/flights/rejected"' in html_of(guest, "/datasets/flights/ingestion")
    stranger, person = Client(), make.user("stranger")
    make.member(person, make.team("pricing"), Role.ADMIN)
    stranger.force_login(person)
    for where in (PAGE, f"{PAGE}/{key_of(0)}?dc=dc1"):
        refused = stranger.get(where)
        assert (refused.status_code, "secret" in refused.content.decode()) == (403, False)
    ingestion = html_of(stranger, "/datasets/flights/ingestion")
    assert ("/datasets/flights/rejected" in ingestion, "Only members of team flight-ops" in ingestion) == (False, True)


def test_what_is_not_there_is_not_found(page: Client, folder: Path) -> None:
    assert page.get(f"{PAGE}/nothing?dc=dc1").status_code == 404
    assert page.get(f"{PAGE}/nothing?dc=dc9").status_code == 404
    assert page.get("/datasets/nowhere/rejected").status_code == 404


def test_the_queries_do_not_grow_with_the_rows(
    page: Client, copy: DatasetCopy, folder: Path, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    runs = [make.run(copy, JobKind.INCREMENTAL) for _ in range(40)]
    error_table(folder, [error_row(number, run=str(run.key)) for number, run in enumerate(runs)])
    with django_assert_max_num_queries(22):
        page.get(PAGE)


@pytest.fixture
def table(copy: DatasetCopy, folder: Path) -> DatasetCopy:
    """A loaded copy with three rejected rows of one kind."""
    make.run(copy, JobKind.BOOTSTRAP, JobState.SUCCEEDED)
    Dataset.objects.filter(pk=copy.dataset_id).update(columns=[{"name": "amount", "type": "decimal(12,2)"}])
    error_table(folder, [error_row(number) for number in range(3)])
    return copy


def replay(browser: Client, **fields: Any) -> str:
    """What the page says afterwards."""
    return words(browser.post(f"{PAGE}/replay", {"dc": "dc1", **fields}, follow=True).content.decode())


def test_selected_rows_are_replayed_with_the_values_of_the_form(page: Client, table: DatasetCopy) -> None:
    html = html_of(page)
    assert f'form="replay" name="row" value="{key_of(1)}"' in html
    said_after = replay(page, row=[key_of(0), key_of(1)], values='{"amount": "1.5"}')
    request = ReplayRequest.objects.get()
    assert f"Run {request.pk} tries 2 rejected rows again" in said_after
    assert (set(request.keys), request.values) == ({key_of(0), key_of(1)}, {"amount": "1.5"})


def test_all_rows_of_a_kind_are_replayed(page: Client, table: DatasetCopy) -> None:
    assert "Replay 3 rows" in words(html_of(page))
    assert "tries 3 rejected rows again" in replay(page, column="amount", kind="not a valid decimal(12,2)")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "one of the two"),
        ({"row": [key_of(0)], "values": "{"}, "This is not JSON"),
        ({"row": [key_of(0)], "values": "[" * 50_000}, "This is not JSON"),
        ({"row": [key_of(0)], "values": '{"amount": "\\u0000"}'}, "NUL"),
        ({"row": [key_of(0)], "values": '{"amount": "\\ud800"}'}, "half a character"),
        ({"row": [key_of(9)]}, "not in the error table"),
    ],
)
def test_what_cannot_be_replayed_is_said_on_the_page(
    page: Client, table: DatasetCopy, fields: dict[str, Any], message: str
) -> None:
    assert message in replay(page, **fields)
    assert not ReplayRequest.objects.exists()


def test_resolved_rows_are_listed_apart_with_who_and_with_what(page: Client, table: DatasetCopy, folder: Path) -> None:
    resolve(folder, error_row(1), by=HOSTILE, fixed='{"amount": "<b>1.5"}')
    assert "2 rejected rows in dc1" in words(html_of(page))
    html = html_of(page, f"{PAGE}?state=resolved")
    assert "1 resolved row in dc1" in words(html)
    assert ("{&quot;amount&quot;: &quot;&lt;b&gt;1.5&quot;}" in html, HOSTILE in html, "<b>1.5" in html) == (
        True,
        False,
        False,
    )
    assert 'name="row"' not in html


def test_who_may_not_replay_sees_no_form(page: Client, table: DatasetCopy, guest: Client) -> None:
    html = html_of(guest)
    assert ('id="replay"' in html, 'name="row"' in html, "Replay all" in html) == (False, False, False)
    assert guest.post(f"{PAGE}/replay", {"dc": "dc1", "row": key_of(0)}).status_code == 403
    assert page.get(f"{PAGE}/replay").status_code == 405
