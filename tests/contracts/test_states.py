"""The state of a part of a table changes if and only if its data may have changed; an absent part has none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quality.domain.expression.measures import ROWS
from quality.engines import read
from quality.engines.scan import Files, HudiCopy, Limits, One, Scan, SqlTable, Whole
from quality.engines.slices import snapshot
from quality.engines.states import states
from tests import lake

DAY = "flight_date"
FIRST, SECOND, ABSENT = (One(DAY, f"2026-11-{day}") for day in (14, 15, 16))


def rows(day: str, count: int) -> pa.Table:
    return pa.table({"id": range(count), DAY: pa.array([day] * count, pa.string())})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    days: dict[str | None, pa.Table] = {part.value: rows(part.value, 10) for part in (FIRST, SECOND)}
    lake.hudi_table(tmp_path / "flights", days, column=DAY)
    return tmp_path / "flights"


def test_a_commit_to_one_partition_leaves_the_others_as_they_were(table: Path) -> None:
    copy, parts = HudiCopy(table.as_uri()), (FIRST, SECOND, ABSENT, Whole())
    before = states(copy, parts)
    lake.overwrite(table, SECOND.value, rows(SECOND.value, 9), column=DAY, instant="20261117120000000")
    after = states(copy, parts)
    assert [before[part] == after[part] for part in (FIRST, SECOND, Whole())] == [True, False, False]
    assert (ABSENT in before, ABSENT in after) == (False, False)
    lake.commit(table, {ABSENT.value: rows(ABSENT.value, 3)}, column=DAY, instant="20261117130000000")
    assert ABSENT in states(copy, parts)


@pytest.mark.parametrize("part", [FIRST, SECOND, Whole()])
def test_one_part_has_the_same_state_as_among_others(table: Path, part: One | Whole) -> None:
    copy = HudiCopy(table.as_uri())
    assert states(copy, [part])[part] == states(copy, [FIRST, SECOND, Whole()])[part]


def test_files_change_with_their_size_and_time(tmp_path: Path) -> None:
    files = Files(str(tmp_path / "*.parquet"), "parquet")
    assert states(files, [Whole()]) == {}
    pq.write_table(rows("2026-11-14", 3), tmp_path / "a.parquet")
    before = states(files, [Whole(), FIRST])
    assert before == states(files, [Whole(), FIRST])
    pq.write_table(rows("2026-11-14", 4), tmp_path / "a.parquet")
    assert before[FIRST] != states(files, [FIRST])[FIRST]


@pytest.mark.parametrize("target", [SqlTable("sqlite://", "flights"), HudiCopy("file:///nowhere")])
def test_what_does_not_say_has_no_state(target: SqlTable | HudiCopy) -> None:
    assert states(target, [Whole()]) == {}


def test_a_library_that_fails_costs_no_result(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr("quality.engines.states.snapshot", broken)
    assert states(HudiCopy(table.as_uri()), [FIRST]) == {}


def test_an_absent_partition_is_empty_whatever_the_newest_file_says_of_the_column(table: Path) -> None:
    """Of a file without rows the columns may be null by type: hudi-rs then lets every partition through its filter."""
    untyped = pa.table({"id": pa.array([], pa.null()), DAY: pa.array([], pa.null())})
    lake.commit(table, {"2026-11-20": untyped}, column=DAY, instant="20261117120000000")
    assert snapshot(table.as_uri(), column=DAY, value=ABSENT.value).slices == ()
    found = read("duckdb", Scan(HudiCopy(table.as_uri()), (ROWS,), ABSENT), Limits())
    assert found.answers[ROWS] == 0
