"""Rejected rows over REST and by command: for members of the owning team, in pages, whatever they hold."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from ingestion.lake import error_rows
from ingestion.models import JobKind
from ingestion.runs.job_specs import error_table_uri
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Busy
from tests import factories as given
from tests.error_tables import error_row, error_table, key_of

ROWS = "/api/v1/datasets/flights/errors"
HOSTILE = "<script>alert(1)</script>\0\x1b[31m"


@pytest.fixture
def folder(copy: DatasetCopy, tmp_path: Path) -> Path:
    assert error_table_uri(copy) == (tmp_path / "_errors" / "flights").as_uri()
    return tmp_path / "_errors" / "flights"


@pytest.fixture
def viewer(copy: DatasetCopy) -> Client:
    return member(copy, Role.VIEWER)


def member(copy: DatasetCopy, role: Role | None) -> Client:
    client, user = Client(), given.user()
    given.member(user, copy.dataset.team if role else given.team("pricing"), role or Role.ADMIN)
    client.force_login(user)
    return client


def test_rows_come_in_pages_newest_first(viewer: Client, folder: Path) -> None:
    error_table(folder, [error_row(number) for number in range(3)])
    first = viewer.get(ROWS, {"limit": 2}).json()
    rest = viewer.get(ROWS, {"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [row["error_key"] for row in (*first["rows"], *rest["rows"])] == [key_of(number) for number in range(3)]
    assert (first["data_center"], rest["next_cursor"]) == ("dc1", "")
    assert first["rows"][0]["reason"] == "`amount` is 0.125 (float), which is no decimal(12,2)"


def test_rows_are_chosen_by_column_reason_and_run(viewer: Client, folder: Path, copy: DatasetCopy) -> None:
    run = given.run(copy, JobKind.INCREMENTAL)
    error_table(folder, [error_row(0, run=str(run.key)), error_row(1, column="id"), error_row(2)])
    asked = ({"run": run.pk}, {"column": "id"}, {"reason": "2.125"}, {"column": "id", "run": run.pk})
    keys = [[row["error_key"] for row in viewer.get(ROWS, each).json()["rows"]] for each in asked]
    assert keys == [[key_of(0)], [key_of(1)], [key_of(2)], []]


def test_counts_are_by_column_and_kind_of_reason(viewer: Client, folder: Path) -> None:
    error_table(folder, [error_row(0), error_row(1), error_row(2, column="id", reason="`id` is null, but it is a key")])
    counts = viewer.get(f"{ROWS}/counts").json()
    assert [(group["column"], group["kind"], group["rows"]) for group in counts["groups"]] == [
        ("amount", "not a valid decimal(12,2)", 2),
        ("id", "null in a key", 1),
    ]
    assert (counts["rows"], counts["group_count"]) == (3, 2)
    assert viewer.get(f"{ROWS}/counts", {"column": "id"}).json()["rows"] == 1


def test_a_raw_row_is_cut_in_the_list_and_whole_by_itself(viewer: Client, folder: Path) -> None:
    error_table(folder, [error_row(0, raw=HOSTILE + "x" * 1_000_000)])
    answer = viewer.get(ROWS)
    (row,) = answer.json()["rows"]
    assert (len(row["raw"]), row["raw_length"], len(answer.content) < 10_000) == (2_000, 1_000_000 + len(HOSTILE), True)
    whole = viewer.get(f"{ROWS}/{key_of(0)}")
    assert whole.json()["raw"] == HOSTILE + "x" * 1_000_000
    assert whole.headers["Content-Type"] == "application/json"


def test_where_there_is_no_table_there_are_no_rows(viewer: Client, folder: Path) -> None:
    assert viewer.get(ROWS).json() == {"data_center": "dc1", "rows": [], "next_cursor": ""}
    assert viewer.get(f"{ROWS}/counts").json() == {"data_center": "dc1", "rows": 0, "group_count": 0, "groups": []}


@pytest.mark.parametrize("where", ["", "/counts", f"/{key_of(0)}"])
def test_rows_are_for_members_of_the_team(copy: DatasetCopy, folder: Path, where: str) -> None:
    error_table(folder, [error_row(0, raw="secret", reason="secret", column="secret")])
    for role in Role:
        assert "secret" in member(copy, role).get(ROWS + where).content.decode()
    refused = member(copy, None).get(ROWS + where)
    assert (refused.status_code, "secret" in refused.content.decode()) == (403, False)
    assert "To see rows here you need to be" in refused.json()["error"]["message"]
    assert Client().get(ROWS + where).status_code == 401


@pytest.mark.parametrize(
    ("where", "code", "message"),
    [
        ("/api/v1/datasets/fligths/errors", 404, "Did you mean `flights`?"),
        (f"{ROWS}?data_center=dc9", 404, "no copy in `dc9`"),
        (f"{ROWS}/nothing", 404, "has no row `nothing`"),
        (f"{ROWS}?run=999", 404, "has no run 999"),
        (f"{ROWS}?run=x", 400, "A valid integer is required"),
        (f"{ROWS}?limit=201", 400, "less than or equal to 200"),
        (f"{ROWS}?limit=0", 400, "greater than or equal to 1"),
        (f"{ROWS}?cursor=x", 422, "This is not a cursor"),
        (f"{ROWS}?column=%00", 400, "NUL"),
    ],
)
def test_what_cannot_be_asked_is_answered_in_words(
    viewer: Client, folder: Path, where: str, code: int, message: str
) -> None:
    answer = viewer.get(where)
    assert (answer.status_code, message in answer.content.decode()) == (code, True), answer.content


def test_the_data_center_is_named_where_there_are_several(viewer: Client, folder: Path, copy: DatasetCopy) -> None:
    given.data_center("dc2", folder.parents[1].joinpath("dc2").as_uri())
    given.copy(copy.dataset, "dc2")
    error_table(folder, [error_row(0)])
    assert "name the data center" in viewer.get(ROWS).json()["error"]["message"]
    assert [len(viewer.get(ROWS, {"data_center": name}).json()["rows"]) for name in ("dc1", "dc2")] == [1, 0]


def test_a_damaged_table_and_too_many_readers_are_said(
    viewer: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error_table(folder, [error_row(0)])
    file = next(folder.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:40])
    damaged = viewer.get(ROWS)
    assert (damaged.status_code, file.name in damaged.json()["error"]["message"]) == (422, True)

    def busy(*_: object, **__: object) -> None:
        raise Busy("Other error tables are being read just now.", retry_after_s=5)

    monkeypatch.setattr(error_rows, "read_files", busy)
    answer = viewer.get(ROWS)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


def test_the_queries_do_not_grow_with_the_rows(
    viewer: Client, folder: Path, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    error_table(folder, [error_row(number) for number in range(200)])
    with django_assert_max_num_queries(8):
        assert len(viewer.get(ROWS, {"limit": 200}).json()["rows"]) == 200


# By command


def output(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("errors", "flights", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_the_command_counts_and_lists(folder: Path) -> None:
    error_table(folder, [error_row(number) for number in range(3)])
    lines = output("--limit", "2")
    assert lines[:3] == ["         3  amount: not a valid decimal(12,2)", "         3  in all", ""]
    assert [line.split("  ")[1] for line in lines[3:]] == [
        "amount: `amount` is 0.125 (float), which is no decimal(12,2)",
        "amount: `amount` is 1.125 (float), which is no decimal(12,2)",
    ]


def test_the_command_narrows_and_prints_json(folder: Path) -> None:
    error_table(folder, [error_row(0), error_row(1, column="id")])
    (line,) = output("--column", "id", "--json")
    assert json.loads(line)["error_key"] == key_of(1)
    assert output("--reason", "nothing like it") == ["No row was rejected."]


def test_a_terminal_gets_no_control_characters(folder: Path) -> None:
    error_table(folder, [error_row(0, raw=HOSTILE, reason=HOSTILE, column=HOSTILE)])
    assert all(line.isprintable() for line in output())


def test_the_command_says_what_is_wrong(folder: Path) -> None:
    with pytest.raises(CommandError, match="Did you mean `flights`"):
        call_command("errors", "fligths")
    with pytest.raises(CommandError, match="no copy in `dc9`"):
        call_command("errors", "flights", "--data-center", "dc9")
