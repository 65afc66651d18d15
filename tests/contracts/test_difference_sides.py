"""Copies in any two places are compared alike: awkward rows with planted differences, every side against every other one.

A new side gets a row in SIDES; servers and Spark run the same facts in tests/services and tests/spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from lakehub.catalog.metadata.tables import Files, HudiCopy, SqlTable, StoredTable
from lakehub.kernel.outcome import Outcome
from quality.cross_source.methods import row_difference
from quality.cross_source.methods.row_difference import MAX_ROWS_OF_EMPTY_SIDE, difference
from quality.domain.difference.reconcile import Bounds, reconcile
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed
from quality.engines import ENGINES
from quality.engines.scans.parts import CannotRead, OnePartition, WholeTable
from quality.engines.scans.row_endpoint import RowEndpoint
from quality.engines.scans.scan import Limits
from tests.hudi_tables import hudi_table

Record = dict[str, Any]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("code", pa.string()),
        ("day", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us")),
        ("born", pa.date32()),
        ("active", pa.bool_()),
        ("note", pa.string()),
    ]
)
KEY = ("id", "code")
DAY = "2026-11-16"
NAMES = (
    "",
    "é~,",
    "日本語 Straße",
    "a'b\"c",
    "12:x,",
    "~",
    " padded ",
    "\U0001f600",
    "tab\tline\nbreak",
    "\\",
    "%s:?",
    "NULL",
)


def records() -> list[Record]:
    """300 rows: null keys, a doubled row, zeros at the end of decimals, times with and without fractions, and a text of 5 MB."""
    at = datetime(2026, 3, 29, 1, 30)
    made: list[Record] = [
        {
            "id": number - 20,
            "code": NAMES[number % len(NAMES)],
            "day": DAY,
            "amount": None if number % 11 == 0 else Decimal(number * 25 - 1_000) / 100,
            "at": None if number % 13 == 0 else at + timedelta(minutes=7 * number, microseconds=number % 3),
            "born": None if number % 17 == 0 else date(1899, 12, 31) + timedelta(days=300 * number),
            "active": (None, True, False)[number % 3],
            "note": None if number % 5 else f"note {number}",
        }
        for number in range(300)
    ]
    made[7]["code"] = made[8]["id"] = None
    made[9]["id"], made[9]["code"] = None, None
    made[21]["note"] = "ü" * 2_500_000
    return [*made, made[40]]


def hudi(folder: Path, rows: list[Record]) -> tuple[str, StoredTable]:
    by_day = {day: [row for row in rows if row["day"] == day] for day in {row["day"] for row in rows} or {DAY}}
    days: dict[str | None, pa.Table] = {day: pa.Table.from_pylist(of_day, SCHEMA) for day, of_day in by_day.items()}
    return "duckdb", HudiCopy(hudi_table(folder, days, column="day"))


def parquet(folder: Path, rows: list[Record]) -> tuple[str, StoredTable]:
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / "1.parquet")
    return "duckdb", Files(f"{folder.as_uri()}/*.parquet", "parquet")


def sqlite(folder: Path, rows: list[Record]) -> tuple[str, StoredTable]:
    url = f"sqlite:///{folder}.db"
    fill(sa.create_engine(url, poolclass=sa.NullPool), "records", rows)
    return "sqlalchemy", SqlTable(url, "records")


LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
MICROSECONDS = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def fill(engine: sa.Engine, name: str, rows: list[Record]) -> None:
    """A table of a database, whose types are not those of the lake: narrower integers, longer decimals."""
    kinds: dict[str, Any] = {
        "id": sa.Integer(), "code": sa.String(40), "day": sa.String(10), "amount": sa.Numeric(20, 4), "at": MICROSECONDS,
        "born": sa.Date(), "active": sa.Boolean(), "note": LONG_TEXT,
    }  # fmt: skip
    table = sa.Table(
        name,
        meta := sa.MetaData(),
        *(sa.Column(column, kind) for column, kind in kinds.items()),
        mysql_charset="utf8mb4",
    )
    meta.create_all(engine)
    with engine.begin() as connection:
        if rows:
            connection.execute(table.insert(), rows)


SIDES = [hudi, parquet, sqlite]
Make = Callable[[Path, list[Record]], tuple[str, StoredTable]]


@pytest.fixture(params=SIDES, ids=lambda make: make.__name__)
def make(request: pytest.FixtureRequest) -> Make:
    maker: Make = request.param
    return maker


def opened(make: Make, folder: Path, rows: list[Record], day: str = DAY) -> RowEndpoint:
    engine, target = make(folder, rows)
    part = OnePartition("day", day) if day else WholeTable()
    return ENGINES.get(engine)().row_endpoint(target, part, Limits())


def compared(here: RowEndpoint, there: RowEndpoint, *excluded: str) -> Any:
    answer = difference(Measure("difference", KEY, values=excluded), here, there)
    assert not isinstance(answer, Failed), answer
    return answer


def key(record: Record) -> tuple[str | None, str | None]:
    return None if record["id"] is None else str(record["id"]), record["code"]


def kinds(answer: Any) -> set[tuple[str, str | None, str | None]]:
    return {(record["kind"], record["key"]["id"], record["key"]["code"]) for record in answer["differences"]}


def changed(record: Record, **values: Any) -> Record:
    return {**record, **values}


def damaged(whole: list[Record]) -> tuple[list[Record], set[tuple[str, str | None, str | None]]]:
    """The rows of a copy and what is wrong with them."""
    rows = list(whole)
    rows[30] = changed(rows[30], amount=Decimal("0.01"))
    rows[31] = changed(rows[31], at=rows[31]["at"] + timedelta(microseconds=1), note="")
    rows[8] = changed(rows[8], active=None if rows[8]["active"] else True)
    rows[21] = changed(rows[21], note=rows[21]["note"][:-1] + "u")
    rows += [whole[50], changed(whole[60], id=5_000)]
    lost = [whole[9], whole[7], whole[100]]
    wrong = {
        *(("missing", *key(record)) for record in lost),
        *(("changed", *key(whole[place])) for place in (30, 31, 8, 21)),
        ("doubled", *key(whole[50])),
        ("surplus", "5000", whole[60]["code"]),
    }
    return [row for row in rows if not any(row is record for record in lost)], wrong


def check_a_damaged_copy(make_here: Make, make_there: Make, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    whole = records()
    rows, wrong = damaged(whole)
    here, there = opened(make_here, folder / "here", rows), opened(make_there, folder / "there", whole)
    answer = compared(here, there)
    assert kinds(answer) == wrong
    assert (answer["keys"], answer["differing"]) == (301, 8)
    columns = {record["key"]["id"]: record.get("columns", {}) for record in answer["differences"]}
    assert columns["10"] == {"amount": ["0.01", "-2.5"]}
    assert set(columns["11"]) == {"at", "note"}
    assert set(columns[key(whole[21])[0]]) == {"note"}
    assert len(str(columns)) < 3_000
    back = compared(there, here)
    mirrored = {"missing": "surplus", "surplus": "missing", "doubled": "doubled there", "changed": "changed"}
    assert kinds(back) == {(mirrored[kind], *of) for kind, *of in wrong}
    assert back["differing"] == 5


def check_the_same_rows(make_here: Make, make_there: Make, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    whole = records()
    here, there = opened(make_here, folder / "here", whole[::-1]), opened(make_there, folder / "there", whole)
    answer = compared(here, there)
    assert (answer["differing"], answer["differences"]) == (0, [])
    assert answer["report"]["columns"] == len(SCHEMA)
    assert answer["report"]["bytes_moved"] < 5_000


@pytest.mark.parametrize(("make_here", "make_there"), list(product(SIDES, SIDES)))
def test_each_record_that_differs_is_named(make_here: Make, make_there: Make, tmp_path: Path) -> None:
    check_a_damaged_copy(make_here, make_there, tmp_path)


@pytest.mark.parametrize(("make_here", "make_there"), list(product(SIDES, SIDES)))
def test_the_same_rows_in_another_order_do_not_differ(make_here: Make, make_there: Make, tmp_path: Path) -> None:
    check_the_same_rows(make_here, make_there, tmp_path)


def test_only_the_tested_day_is_compared(make: Make, tmp_path: Path) -> None:
    whole = records()
    other_day = [changed(row, day="2026-11-15") for row in whole[:10]]
    here, there = opened(make, tmp_path / "here", [*whole, *other_day]), opened(make, tmp_path / "there", whole)
    assert compared(here, there)["differing"] == 0


def test_a_key_that_is_doubled_on_both_sides_differs_only_where_its_rows_do(make: Make, tmp_path: Path) -> None:
    first, *_ = records()
    rows = [changed(first, note=note) for note in "abc"]
    other = [changed(first, note=note) for note in "abd"]
    same = opened(make, tmp_path / "one", rows), opened(make, tmp_path / "two", rows[::-1])
    assert compared(*same)["differing"] == 0
    (record,) = compared(same[0], opened(make, tmp_path / "three", other))["differences"]
    assert (record["kind"], record["columns"]) == ("changed", {"note": ["c", "d"]})


def test_of_an_empty_side_all_is_missing_and_of_an_empty_other_side_nothing(make: Make, tmp_path: Path) -> None:
    few = records()[:20]
    empty, whole = opened(make, tmp_path / "empty", []), opened(make, tmp_path / "whole", few)
    answer = compared(empty, whole)
    assert (answer["keys"], answer["differing"], answer["report"]["missing"]) == (20, 20, 20)
    answer = compared(whole, empty)
    assert (answer["keys"], answer["differing"], answer["report"]["surplus"]) == (20, 0, 20)
    assert {record["kind"] for record in answer["differences"]} == {"surplus"}
    nothing = difference(Measure("difference", KEY), empty, empty)
    assert isinstance(nothing, Failed)
    assert nothing.outcome is Outcome.NO_DATA


def test_of_an_empty_other_side_of_many_rows_none_is_named(make: Make, tmp_path: Path) -> None:
    many = [changed(records()[0], id=number) for number in range(MAX_ROWS_OF_EMPTY_SIDE + 1)]
    empty, whole = opened(make, tmp_path / "empty", []), opened(make, tmp_path / "whole", many)
    for here, there, kind, differing in ((whole, empty, "surplus", 0), (empty, whole, "missing", len(many))):
        answer = compared(here, there)
        assert (answer["differing"], answer["report"][kind], answer["differences"]) == (differing, len(many), [])


def test_more_rows_than_are_fetched_at_once(make: Make, tmp_path: Path) -> None:
    record = records()[3]
    whole = [changed(record, id=number) for number in range(20_000)]
    here = [
        *whole[500:9_000],
        *(changed(row, note="other") for row in whole[9_000:9_300]),
        *whole[9_300:],
        *whole[-200:],
    ]
    answer = compared(opened(make, tmp_path / "here", here), opened(make, tmp_path / "there", whole))
    report = answer["report"]
    assert (report["missing"], report["changed"], report["doubled"], answer["differing"]) == (500, 300, 200, 1_000)
    assert len(answer["differences"]) == 1_000
    assert report["bytes_moved"] < 300_000


def write(folder: Path, **columns: Any) -> RowEndpoint:
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "1.parquet")
    return ENGINES.get("duckdb")().row_endpoint(
        Files(f"{folder.as_uri()}/*.parquet", "parquet"), WholeTable(), Limits()
    )


def lite(folder: Path, *statements: str) -> RowEndpoint:
    engine = sa.create_engine(f"sqlite:///{folder}.db", poolclass=sa.NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    return ENGINES.get("sqlalchemy")().row_endpoint(SqlTable(f"sqlite:///{folder}.db", "t"), WholeTable(), Limits())


ID = Measure("difference", ("id",))


def answer_of(here: RowEndpoint, there: RowEndpoint, measure: Measure = ID) -> Any:
    return difference(measure, here, there)


def test_columns_that_only_one_side_has_and_inexact_ones_are_left_out_and_said(tmp_path: Path) -> None:
    here = write(tmp_path / "a", id=[1, 2], ratio=[0.1, 0.2], mine=[1, 2])
    there = lite(
        tmp_path / "b", "CREATE TABLE t (id INTEGER, ratio FLOAT, theirs TEXT)", "INSERT INTO t VALUES (1, 9.5, 'x')"
    )
    answer = answer_of(here, there)
    assert {(record["kind"], record["key"]["id"]) for record in answer["differences"]} == {("surplus", "2")}
    assert answer["report"]["left_out"] == [
        "ratio: DOUBLE, which engines write differently",
        "mine: only here",
        "theirs: only on the other side",
    ]


def test_one_engine_compares_floats_and_lists_too(tmp_path: Path) -> None:
    here = write(tmp_path / "a", id=[1, 2, 3], ratio=[0.1, 0.2, float("nan")], tags=[["a"], ["b"], None])
    there = write(tmp_path / "b", id=[1, 2, 3], ratio=[0.1, 0.25, float("nan")], tags=[["a"], ["b", "c"], None])
    (record,) = answer_of(here, there)["differences"]
    assert record["columns"] == {"ratio": ["0.2", "0.25"], "tags": ["[b]", "[b, c]"]}


def test_types_that_hold_the_same_values_are_the_same(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    here = write(
        tmp_path / "a", id=pa.array([1, 2], pa.int32()), m=pa.array([Decimal("1.50"), None]), at=pa.array([at, at]),
        n=pa.array([7, 8], pa.uint8()),
    )  # fmt: skip
    there = write(
        tmp_path / "b", id=pa.array([1, 2], pa.int64()), m=pa.array([Decimal("1.5000"), None]),
        at=pa.array([at.replace(tzinfo=None)] * 2), n=pa.array(["7", "9"]),
    )  # fmt: skip
    (record,) = answer_of(here, there)["differences"]
    assert (record["key"], record["columns"]) == ({"id": "2"}, {"n": ["8", "9"]})


def test_a_key_of_floats_or_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    here, there = write(tmp_path / "a", id=[0.5], code=["x"]), write(tmp_path / "b", id=[0.5], kode=["x"])
    with pytest.raises(CannotRead, match="`id` cannot be part of a key: it is DOUBLE"):
        answer_of(here, there)
    with pytest.raises(CannotRead, match=r"There is no column `code` on the other side\. Did you mean `kode`"):
        answer_of(here, there, Measure("difference", ("code",)))


def names(differences: Iterable[Record]) -> list[str]:
    return [record["key"]["id"] for record in differences]


def test_a_partition_that_was_never_written_lacks_everything(tmp_path: Path) -> None:
    early, late = records()[:2], [changed(row, day="2026-11-17") for row in records()[:2]]
    here = opened(hudi, tmp_path / "here", early, "2026-11-17")
    assert here.columns() is None
    answer = compared(here, opened(parquet, tmp_path / "there", late, "2026-11-17"))
    assert names(answer["differences"]) == ["-19", "-20"]


def test_too_many_differences_count_against_the_side_that_lacks_records_and_leave_the_other_open(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no examples all of them counted against both sides, though one of them lacks nothing."""
    few = Bounds(open_cells=10, rows_of_cells=0)
    monkeypatch.setattr(row_difference, "reconcile", partial(reconcile, bounds=few))
    whole, lossy = opened(hudi, tmp_path / "here", records()), opened(make, tmp_path / "there", records()[150:])
    lacking = compared(lossy, whole)
    assert (lacking["keys"], lacking["differing"]) == (301, 150)
    answer = difference(Measure("difference", KEY), whole, lossy)
    assert isinstance(answer, Failed)
    assert answer.outcome is Outcome.NO_DATA
    assert answer.cause.startswith("too many records differ, about 150, to say which of them are missing here")
