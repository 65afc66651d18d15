"""The state of a part of a table changes if and only if its data may have changed; an absent part has none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehub.catalog.metadata.tables import Files, HudiCopy, SqlTable
from quality.domain.language.measures import ROWS
from quality.engines import run_scan
from quality.engines.scans.parts import OnePartition, WholeTable
from quality.engines.scans.scan import Limits, Scan
from quality.engines.storage.hudi_snapshot import read_snapshot
from quality.measuring.cache import _part_states as part_states
from tests import hudi_tables

DAY = "flight_date"
FIRST, SECOND, ABSENT = (OnePartition(DAY, f"2026-11-{day}") for day in (14, 15, 16))


def rows(day: str, count: int) -> pa.Table:
    return pa.table({"id": range(count), DAY: pa.array([day] * count, pa.string())})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    days: dict[str | None, pa.Table] = {part.value: rows(part.value, 10) for part in (FIRST, SECOND)}
    hudi_tables.hudi_table(tmp_path / "flights", days, column=DAY)
    return tmp_path / "flights"


def test_a_commit_to_one_partition_leaves_the_others_as_they_were(table: Path) -> None:
    copy, parts = HudiCopy(table.as_uri()), (FIRST, SECOND, ABSENT, WholeTable())
    before = part_states(copy, parts)
    hudi_tables.overwrite(table, SECOND.value, rows(SECOND.value, 9), column=DAY, instant="20261117120000000")
    after = part_states(copy, parts)
    assert [before[part] == after[part] for part in (FIRST, SECOND, WholeTable())] == [True, False, False]
    assert (ABSENT in before, ABSENT in after) == (False, False)
    hudi_tables.commit(table, {ABSENT.value: rows(ABSENT.value, 3)}, column=DAY, instant="20261117130000000")
    assert ABSENT in part_states(copy, parts)


@pytest.mark.parametrize("part", [FIRST, SECOND, WholeTable()])
def test_one_part_has_the_same_state_as_among_others(table: Path, part: OnePartition | WholeTable) -> None:
    copy = HudiCopy(table.as_uri())
    assert part_states(copy, [part])[part] == part_states(copy, [FIRST, SECOND, WholeTable()])[part]


def test_files_change_with_their_size_and_time(tmp_path: Path) -> None:
    files = Files(str(tmp_path / "*.parquet"), "parquet")
    assert part_states(files, [WholeTable()]) == {}
    pq.write_table(rows("2026-11-14", 3), tmp_path / "a.parquet")
    before = part_states(files, [WholeTable(), FIRST])
    assert before == part_states(files, [WholeTable(), FIRST])
    pq.write_table(rows("2026-11-14", 4), tmp_path / "a.parquet")
    assert before[FIRST] != part_states(files, [FIRST])[FIRST]


@pytest.mark.parametrize("target", [SqlTable("sqlite://", "flights"), HudiCopy("file:///nowhere")])
def test_what_does_not_say_has_no_state(target: SqlTable | HudiCopy) -> None:
    assert part_states(target, [WholeTable()]) == {}


def test_a_library_that_fails_costs_no_result(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr("quality.engines.storage.hudi_snapshot.read_snapshot", broken)
    assert part_states(HudiCopy(table.as_uri()), [FIRST]) == {}


def test_an_absent_partition_is_empty_whatever_the_newest_file_says_of_the_column(table: Path) -> None:
    """Of a file without rows the columns may be null by type: hudi-rs then lets every partition through its filter."""
    untyped = pa.table({"id": pa.array([], pa.null()), DAY: pa.array([], pa.null())})
    hudi_tables.commit(table, {"2026-11-20": untyped}, column=DAY, instant="20261117120000000")
    assert read_snapshot(table.as_uri(), column=DAY, value=ABSENT.value).slices == ()
    measured = run_scan("duckdb", Scan(HudiCopy(table.as_uri()), (ROWS,), ABSENT), Limits())
    assert measured.answers[ROWS] == 0
