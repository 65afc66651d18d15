"""Every engine answers the same measures of the same rows alike. A new engine gets a row in ENGINES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import quality.engines.duckdb
from lakehub.catalog.metadata.tables import Files, HudiCopy, SqlTable
from lakehub.catalog.storages.files import FilesStorage
from lakehub.kernel.outcome import Outcome
from quality.domain.language.measures import LAST_COMMIT, ROWS, Measure
from quality.domain.language.values import Failed
from quality.engines import run_scan
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, Part, WholeTable
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sqlalchemy import SqlAlchemyEngine
from quality.engines.storage.hudi_snapshot import FileSlice, read_snapshot
from tests.contracts.flight_tables import (
    DAY,
    DISTINCT_BOTH,
    DISTINCT_ID,
    DISTINCT_TAIL,
    FILLED,
    LATEST,
    LEAST,
    MEASURES,
    MOST,
    NULLS,
    PLANES_NAME,
    ROWS_OF_FLIGHTS,
    SEATS,
    SUM,
    UNMATCHED,
    Place,
    arrow,
    duckdb_over_files,
    duckdb_over_hudi,
    sqlite,
)
from tests.hudi_tables import commit, hudi_table

ENGINES = [duckdb_over_hudi, duckdb_over_files, sqlite]


@pytest.fixture(scope="module", params=ENGINES, ids=lambda make: make.__name__)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    make: Callable[[Path], Place] = request.param
    return make(tmp_path_factory.mktemp("place"))


WHOLE = {
    ROWS: 6,
    DISTINCT_ID: 4,
    DISTINCT_TAIL: 4,
    DISTINCT_BOTH: 4,
    UNMATCHED: 1,
    NULLS: 1,
    FILLED: 5,
    SUM: 13.5,
    SEATS: 100 + 2**40,
    LEAST: -1.0,
    MOST: 4.0,
}
FIRST_DAY = {
    ROWS: 3,
    DISTINCT_ID: 2,
    DISTINCT_TAIL: 2,
    DISTINCT_BOTH: 2,
    UNMATCHED: 0,
    NULLS: 1,
    FILLED: 2,
    SUM: 1.5,
    SEATS: 60,
    LEAST: -1.0,
    MOST: 2.5,
}
SECOND_DAY = {
    ROWS: 3,
    DISTINCT_ID: 2,
    DISTINCT_TAIL: 2,
    DISTINCT_BOTH: 2,
    UNMATCHED: 1,
    NULLS: 0,
    FILLED: 3,
    SUM: 12.0,
    SEATS: 40 + 2**40,
    LEAST: 4.0,
    MOST: 4.0,
}
NOTHING = {
    ROWS: 0,
    DISTINCT_ID: 0,
    DISTINCT_TAIL: 0,
    DISTINCT_BOTH: 0,
    UNMATCHED: 0,
    NULLS: 0,
    FILLED: 0,
    SUM: None,
    SEATS: None,
    LEAST: None,
    MOST: None,
}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (WholeTable(), WHOLE),
        (OnePartition(DAY, "2026-11-15"), FIRST_DAY),
        (OnePartition(DAY, "2026-11-16"), SECOND_DAY),
        (OnePartition(DAY, "2027-01-01"), NOTHING),
    ],
    ids=["whole", "first day", "second day", "an absent day"],
)
def test_it_measures_a_part(place: Place, part: Part, expected: dict[Measure, object]) -> None:
    assert place.answers(part, *MEASURES) == expected


def test_it_measures_each_partition_in_one_go(place: Place) -> None:
    answers = place.answers(EachPartition(DAY), *MEASURES)
    for measure in MEASURES:
        days = answers[measure]
        # A database leaves out the days for which there is nothing to count.
        assert days.get("2026-11-15", 0) == FIRST_DAY[measure]
        assert days.get("2026-11-16", 0) == SECOND_DAY[measure]


def test_rows_alone_are_counted_too(place: Place) -> None:
    assert place.answers(WholeTable(), ROWS) == {ROWS: 6}
    assert place.answers(EachPartition(DAY), ROWS) == {ROWS: {"2026-11-15": 3, "2026-11-16": 3}}


def test_a_time_is_utc_or_has_no_zone(place: Place) -> None:
    latest = place.answers(WholeTable(), LATEST)[LATEST]
    assert latest.replace(tzinfo=None) == datetime(2026, 11, 16, 9)
    assert not latest.utcoffset()


def test_a_column_that_is_not_there_costs_only_its_own_measure(place: Place) -> None:
    wrong = Measure("nulls", ("tialnum",))
    answers = place.answers(WholeTable(), ROWS, wrong)
    assert answers[ROWS] == 6
    assert answers[wrong] == Failed(Outcome.ERROR, "There is no column `tialnum`. Did you mean `tailnum`?")


def test_a_sum_of_texts_costs_only_itself(place: Place) -> None:
    texts = Measure("sum", ("tailnum",))
    answers = place.answers(WholeTable(), ROWS, texts, SUM, MOST)
    assert (answers[ROWS], answers[SUM], answers[MOST]) == (6, 13.5, 4.0)
    assert answers[texts].outcome is Outcome.ERROR


def test_a_lookup_into_a_column_that_is_not_there_costs_only_itself(place: Place) -> None:
    wrong = Measure("unmatched", ("tailnum",), PLANES_NAME, ("tail",))
    answers = place.answers(WholeTable(), ROWS, wrong)
    assert (answers[ROWS], answers[wrong].outcome) == (6, Outcome.ERROR)


def test_a_target_that_is_not_there_says_so(place: Place) -> None:
    with pytest.raises(CannotRead, match="nowhere"):
        place.engine.measure(Scan(place.bad, (ROWS,)), Limits())


def test_all_the_measures_of_a_part_are_one_scan(place: Place) -> None:
    fused = tuple(measure for measure in MEASURES if measure.kind not in ("distinct", "unmatched"))
    assert place.engine.measure(Scan(place.flights, fused, OnePartition(DAY, "2026-11-15")), Limits()).scan_count == 1


def test_names_are_quoted(place: Place) -> None:
    hostile = Measure("nulls", ('x") FROM flights; DROP TABLE flights; --',))
    answers = place.answers(WholeTable(), hostile, ROWS)
    assert (answers[hostile].outcome, answers[ROWS]) == (Outcome.ERROR, 6)


def test_values_are_bound(place: Place) -> None:
    try:
        rows = place.answers(OnePartition(DAY, "2026-11-15' OR '1'='1"), ROWS)[ROWS]
    except CannotRead:  # a column of dates refuses what is no date
        rows = 0
    assert rows == 0


def test_a_file_that_vanished_is_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = duckdb_over_hudi(tmp_path)
    uris = iter(
        [
            replace(read_snapshot(place.flights.uri), slices=(FileSlice("/gone.parquet", None),)),
            read_snapshot(place.flights.uri),
        ]
    )
    monkeypatch.setattr(quality.engines.duckdb, "read_snapshot", lambda uri, **filters: next(uris))
    assert place.answers(WholeTable(), ROWS) == {ROWS: 6}


def test_a_table_with_no_commit_has_no_rows(tmp_path: Path) -> None:
    uri = hudi_table(tmp_path / "new", {})
    for record in (tmp_path / "new" / ".hoodie").glob("2*"):
        record.unlink()
    measured = DuckDbEngine().measure(Scan(HudiCopy(uri), (ROWS, SUM, LAST_COMMIT)), Limits())
    assert (measured.answers, measured.instant) == ({ROWS: 0, SUM: None, LAST_COMMIT: None}, "")


def test_it_says_which_commit_was_read(tmp_path: Path) -> None:
    place = duckdb_over_hudi(tmp_path)
    commit(tmp_path / "flights", {"2026-11-17": arrow(ROWS_OF_FLIGHTS)}, column=DAY, instant="20261117120000000")
    measured = place.engine.measure(Scan(place.flights, (ROWS, LAST_COMMIT)), Limits())
    assert (measured.instant, measured.answers[ROWS]) == ("20261117120000000", 12)
    assert measured.answers[LAST_COMMIT] == datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_a_folder_that_is_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match=r"is not a Hudi table: it has no .hoodie folder. Bootstrap"):
        DuckDbEngine().measure(Scan(HudiCopy(tmp_path.as_uri()), (ROWS,)), Limits())


def test_rows_without_a_partition_are_counted_under_none(tmp_path: Path) -> None:
    rows = arrow([{**row, DAY: None} for row in ROWS_OF_FLIGHTS]).cast(arrow(ROWS_OF_FLIGHTS).schema)
    uri = hudi_table(tmp_path / "t", {None: rows}, column=DAY)
    for measures in ((ROWS,), (ROWS, NULLS)):
        assert DuckDbEngine().measure(Scan(HudiCopy(uri), measures, EachPartition(DAY)), Limits()).answers[ROWS] == {
            None: 6
        }


def test_a_file_that_is_damaged_after_it_was_listed_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = duckdb_over_hudi(tmp_path)
    listed = read_snapshot(place.flights.uri)
    monkeypatch.setattr(quality.engines.duckdb, "read_part", lambda uri, part: listed)
    Path(listed.slices[0].path).write_bytes(b"neither head nor foot")
    for measures in ((ROWS,), (NULLS,)):  # from the footers, and from the rows
        with pytest.raises(CannotRead, match=r"\.parquet cannot be read: it is not a Parquet file"):
            place.answers(WholeTable(), *measures)


def test_a_damaged_file_among_others_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "1.parquet").write_bytes(b"neither head nor foot")
    with pytest.raises(CannotRead, match=r"\.parquet cannot be read: it is not a Parquet file"):
        DuckDbEngine().measure(Scan(Files(f"{tmp_path.as_uri()}/*.parquet", "parquet"), (ROWS,)), Limits())


def test_a_lookup_into_damaged_files_costs_only_itself(tmp_path: Path) -> None:
    place = duckdb_over_files(tmp_path)
    (tmp_path / "damaged.parquet").write_bytes(b"neither head nor foot")
    damaged = Files(f"{tmp_path.as_uri()}/damaged.parquet", "parquet")
    scan = Scan(place.flights, (ROWS, UNMATCHED), WholeTable(), {PLANES_NAME: damaged})
    answers = place.engine.measure(scan, Limits()).answers
    assert answers[ROWS] == 6
    assert "looked into cannot be read" in str(answers[UNMATCHED])


@pytest.mark.parametrize("ending", ["parquet", "avro"])
def test_no_link_out_of_the_folder_of_files_is_read(tmp_path: Path, ending: str) -> None:
    secret, folder = tmp_path / f"secret.{ending}", tmp_path / "in"
    folder.mkdir()
    for path, rows in ((secret, 1000), (folder / f"a.{ending}", 3)):
        write_numbers(path, rows)
    (folder / f"b.{ending}").symlink_to(secret)
    storage = FilesStorage(folder.as_uri())
    scan = Scan(storage.table(f"*.{ending}"), (ROWS,))
    assert DuckDbEngine().measure(scan, Limits()).answers[ROWS] == 3
    with pytest.raises(CannotRead, match="There are no files"):
        DuckDbEngine().measure(replace(scan, target=storage.table(f"b.{ending}")), Limits())


def write_numbers(path: Path, rows: int) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"id": list(range(rows))}), path)
        return
    schema = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"id": number} for number in range(rows)])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://me:secret@db/ops", "has no driver here"),
        ("nothing://me:secret@db/ops", "a database driver that Lakehub does not open"),
    ],
)
def test_a_database_without_its_driver_cannot_be_read(url: str, why: str) -> None:
    with pytest.raises(CannotRead, match=why) as caught:
        SqlAlchemyEngine().measure(Scan(SqlTable(url, "flights"), (ROWS,)), Limits())
    assert "secret" not in str(caught.value)


def test_what_an_engine_did_not_foresee_is_told_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: DuckDbEngine, scan: Scan, limits: Limits) -> None:
        raise OSError("token=secret is not valid")

    monkeypatch.setattr(DuckDbEngine, "measure", fail)
    with pytest.raises(CannotRead, match=r"The engine duckdb failed \(OSError\): see the worker's log"):
        run_scan("duckdb", Scan(HudiCopy(tmp_path.as_uri()), (ROWS,)), Limits())
    assert "is not valid" in caplog.text


def test_a_scan_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(1_000_000))}), tmp_path / "1.parquet")
    scan = Scan(Files(f"{tmp_path.as_uri()}/*.parquet", "parquet"), (DISTINCT_ID,))
    answer = DuckDbEngine().measure(scan, Limits(timeout=timedelta(milliseconds=20), threads=1)).answers[DISTINCT_ID]
    assert answer == Failed(Outcome.ERROR, "the scan took longer than its timeout")


def test_a_sum_that_overflows_while_it_runs_costs_only_itself(tmp_path: Path) -> None:
    most = Decimal(10**38 - 1)
    pq.write_table(
        pa.table({"id": [1, 2], "much": pa.array([most, most], pa.decimal128(38, 0))}), tmp_path / "1.parquet"
    )
    much, ids = Measure("sum", ("much",)), Measure("sum", ("id",))
    scan = Scan(Files(f"{tmp_path.as_uri()}/*.parquet", "parquet"), (ROWS, much, ids))
    measured = DuckDbEngine().measure(scan, Limits())
    assert (measured.answers[ROWS], measured.answers[ids], measured.scan_count) == (2, 3, 5)
    assert "verflow" in str(measured.answers[much]) or "ut of range" in str(measured.answers[much]).lower()


def test_a_password_is_never_shown() -> None:
    target = SqlTable("postgresql+psycopg://me:secret@127.0.0.1:1/ops", "flights")
    with pytest.raises(CannotRead) as caught:
        SqlAlchemyEngine().measure(Scan(target, (ROWS,)), Limits())
    assert "secret" not in str(caught.value) + repr(target)
    assert "me:***@127.0.0.1" in str(caught.value)
