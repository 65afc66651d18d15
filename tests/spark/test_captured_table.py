"""A table of MariaDB in the lake: its rows by a load, then every change of them by the binlog."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.heatpipe.broken_message import Defect
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.spark.changes import committing, tombstones
from ingestion.spark.changes.tombstones import read_tombstones
from ingestion.spark.contract.spec import DeleteSpec, RawSpec, ReplaySpec
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.language.measures import Measure
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.scan import Limits, Scan
from tests.fuzz_seed import SEED
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop, PausedAfterEach
from tests.spark.order_shop import changed_rows, read

DATABASE = "lakehub_captured"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


@pytest.mark.parametrize("index", ["memory", "record_index", "simple"])
def test_the_lake_has_what_the_source_has(
    spark: SparkSession, server: TappedServer, tmp_path: Path, index: str
) -> None:
    shop = CapturedShop(server, tmp_path, "trips", index=index)
    server.execute(
        "CREATE TABLE trips (id int PRIMARY KEY, city varchar(40), fare decimal(8,2), at datetime(6))",
        "INSERT INTO trips SELECT seq, concat('city ', seq), seq / 4, '2026-11-26 08:00:00' FROM seq_1_to_50",
    )
    server.take("trips")
    loaded = shop.run(spark, "bootstrap")
    assert (loaded.counts.read, loaded.counts.applied) == (50, 50)
    server.execute(
        "UPDATE trips SET city = 'Ulm' WHERE id <= 3",
        "DELETE FROM trips WHERE id IN (4, 5)",
        "INSERT INTO trips VALUES (51, 'Köln', 1.5, NULL), (52, NULL, NULL, '2026-11-26 09:00:00.000001')",
        "UPDATE trips SET id = 100 WHERE id = 6",
        "UPDATE trips SET fare = 9 WHERE id = 1",
    )
    before = Timeline(shop.table.uri).latest_completion()
    report = shop.follow(spark)
    assert (report.counts.read, report.counts.superseded, report.counts.errors) == (10, 1, 0)
    assert (report.written.inserts, report.written.updates, report.written.deletes) == (3, 3, 3)
    assert shop.in_lake(spark) == shop.in_source()
    assert read_tombstones(spark, shop.table, ["4", "5", "6", "7"]).states.keys() == {"4", "5", "6"}
    assert shop.follow(spark).status == "nothing_to_do"
    changed = [
        (operation, row["id"], row.get("city")) for operation, row in changed_rows(spark, shop.table.uri, before)
    ]
    assert sorted(changed, key=str) == [
        *(("d", key, f"city {key}") for key in (4, 5, 6)),
        *(("i", key, city) for key, city in ((100, "city 6"), (51, "Köln"), (52, None))),
        *(("u", key, "Ulm") for key in (1, 2, 3)),
    ]


def test_a_load_in_parts_while_the_table_is_written_loses_nothing(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Each part is another range of keys; what changes between them comes from the log, whichever part has read it."""
    shop = CapturedShop(server, tmp_path, "parts")
    server.execute("CREATE TABLE parts (id int PRIMARY KEY, n int)", "INSERT INTO parts SELECT seq, 0 FROM seq_1_to_40")
    server.take("parts")
    changes = [
        "UPDATE parts SET n = n + 1 WHERE id %% 2",
        "DELETE FROM parts WHERE id %% 5 = 0",
        "INSERT INTO parts VALUES (0, 7)",
    ]
    limits = {"commit_rows": 10, "chunk_rows": 10}
    for change in changes:
        assert shop.run(spark, "bootstrap", PausedAfterEach(), limits=limits).status == "paused"
        server.execute(change)
    server.take("parts")
    assert shop.run(spark, "bootstrap", limits=limits).status == "succeeded"
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()


def test_a_table_is_loaded_again_from_its_raw_chunks(spark: SparkSession, server: TappedServer, tmp_path: Path) -> None:
    """Without the source: as it was when it was read, and then with all that changed since. A load that is in parts lands them, too."""
    shop, folder = CapturedShop(server, tmp_path, "landed"), tmp_path / "lake" / ".lakehub" / "raw" / "landed"
    raw, limits = RawSpec(folder.as_uri()), {"commit_rows": 10, "chunk_rows": 5}
    server.execute(
        "CREATE TABLE landed (id int PRIMARY KEY, n int)", "INSERT INTO landed SELECT seq, 0 FROM seq_1_to_20"
    )
    server.take("landed")
    assert shop.run(spark, "bootstrap", PausedAfterEach(), limits=limits, raw=raw).status == "paused"
    server.execute("UPDATE landed SET n = 1 WHERE id > 15")
    assert shop.run(spark, "bootstrap", limits=limits, raw=raw).counts.read == 10
    server.execute("DELETE FROM landed WHERE id < 5", "INSERT INTO landed VALUES (0, 7)", "UPDATE landed SET n = n + 1")
    shop.follow(spark)
    again = {"replace": True, "raw": RawSpec(folder.as_uri(), is_read=True)}
    report = shop.tried(spark, "bootstrap", url="mysql://reader:hunter2@127.0.0.1:1/ops", **again)
    assert (report.error, report.counts.read, report.counts.applied) == (None, 20, 20)
    assert {key: row["n"] for (key,), row in shop.in_lake(spark).items()} == {
        number: int(number > 15) for number in range(1, 21)
    }
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()
    assert [path.name for path in folder.iterdir()] == ["bootstrap-1"]
    shop.run(spark, "bootstrap", replace=True, raw=RawSpec(folder.as_uri(), is_kept=False))
    assert not folder.exists()
    assert shop.in_lake(spark) == shop.in_source()


def test_single_rows_are_read_again_and_take_their_place_in_the_order_of_changes(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Those that the lake has lost come back. One that is gone at the source is left to the log, and what the log still has is older."""
    shop = CapturedShop(server, tmp_path, "again_rows", ("id", "code"))
    server.execute(
        "CREATE TABLE again_rows (id bigint, code varchar(9), n int, PRIMARY KEY (id, code))",
        "INSERT INTO again_rows SELECT 9007199254740990 + seq, 'it''s', 0 FROM seq_1_to_9",
    )
    server.take("again_rows", record_key=shop.record_key)
    shop.run(spark, "bootstrap")
    keys = {number: (str(9007199254740990 + number), "it's") for number in range(1, 12)}
    shop.run(spark, "delete", delete=DeleteSpec(keys=(keys[3], keys[4])))
    before = shop.timeline.checkpoint()
    server.execute(
        "UPDATE again_rows SET n = 7 WHERE id = 9007199254740997",
        "DELETE FROM again_rows WHERE id = 9007199254740998",
    )
    report = shop.run(spark, "backfill", keys=tuple(keys[number] for number in (3, 4, 7, 8, 11)))
    assert (report.counts.read, report.counts.applied, report.written.inserts) == (3, 3, 2)
    lake = {key[0] - 9007199254740990: row["n"] for key, row in shop.in_lake(spark).items()}
    assert lake == {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 7, 8: 0, 9: 0}
    after = shop.timeline.checkpoint()
    assert before is not None
    assert after is not None
    assert after.position == before.position
    report = shop.follow(spark, record_key=shop.record_key)
    assert (report.counts.superseded, report.written.deletes) == (1, 1)
    assert shop.in_lake(spark) == shop.in_source()
    assert shop.run(spark, "backfill", keys=(keys[8],)).status == "nothing_to_do"
    server.execute("INSERT INTO again_rows VALUES (1, '', 0), (2, '', 0)")
    report = shop.run(spark, "backfill", keys=(("1", ""), ("2", "")))
    assert (report.counts.read, report.counts.errors) == (2, 2)
    assert len({row["error_key"] for row in shop.rejected(spark)}) == 2


def test_columns_come_and_go_with_the_table(spark: SparkSession, server: TappedServer, tmp_path: Path) -> None:
    """A column that is dropped stays, and is null from then on; one that is renamed is another, with what the old one had."""
    shop = CapturedShop(server, tmp_path, "evolving")
    server.execute("CREATE TABLE evolving (id int PRIMARY KEY, a int, b int, c varchar(9))")
    server.execute("INSERT INTO evolving VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y'), (3, 3, 3, 'z')")
    server.take("evolving")
    shop.run(spark, "bootstrap")
    server.execute(
        "ALTER TABLE evolving ADD d decimal(5,1)",
        "UPDATE evolving SET d = 1.5 WHERE id = 1",
        "ALTER TABLE evolving DROP b, CHANGE c e varchar(20), MODIFY a bigint",
        "UPDATE evolving SET a = 5000000000 WHERE id = 2",
        "INSERT INTO evolving VALUES (4, 4, 'new', NULL)",
    )
    report = shop.follow(spark)
    assert (report.counts.applied, sorted(report.schema["added"]), report.schema["widened"]) == (
        3,
        ["d"],
        ["a"],
    )
    columns_added = [commit.run.get("schema", {}).get("added") for commit in shop.timeline.commits()]
    assert ["e"] in columns_added  # by the commit that fills it
    rows = {key: tuple(str(row[name]) for name in "abcde") for (key,), row in shop.in_lake(spark).items()}
    assert rows == {
        1: ("1", "1", "x", "1.5", "x"),
        2: ("5000000000", "None", "None", "None", "y"),
        3: ("3", "3", "z", "None", "z"),
        4: ("4", "None", "None", "None", "new"),
    }
    server.execute("UPDATE evolving SET d = 2 WHERE id = 4")
    assert shop.follow(spark).counts.applied == 1


AWKWARD = """
    u bigint unsigned, d decimal(20,4), w decimal(5,0), at datetime(6), ts timestamp(3) NULL, on_day date, t time(2),
    e enum('a','ü','zz'), s set('x','y','z'), b bit(1), bits bit(12), flag bool, j json, body blob, txt text CHARACTER SET latin1,
    emoji varchar(20) CHARACTER SET utf8mb4, f float, dbl double, y year, bin binary(4), PRIMARY KEY (u, emoji)
"""


def test_awkward_types_are_the_same_by_the_load_and_by_the_log(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Each row is there twice: read by the load, and captured when it is written again as it is. Only its metadata tells the two apart."""
    shop = CapturedShop(server, tmp_path, "awkward", ("u", "emoji")).with_history()
    server.execute(
        "SET SESSION sql_mode = ''",
        f"CREATE TABLE awkward ({AWKWARD})",
        """INSERT INTO awkward VALUES
            (18446744073709551615, 1234567890123456.7891, -7, '2026-11-26 08:00:00.000001', '2026-10-25 01:30:00.125', '1000-01-01', '-12:00:00.5', 'ü', 'x,z',
             1, b'111100001111', 1, '{"a": [1, "é"]}', x'00ff', 'é', '😀', 1.1, 1e300, 2026, x'01020304'),
            (0, 0, 99999, '0000-00-00', NULL, '0000-00-00', '838:59:59.99', 'zz', '', 0, 0, 0, '[]', '', '', 'b', -0.0, -0.0, 1901, x'00000000'),
            (1, NULL, NULL, '9999-12-31 23:59:59.999999', NULL, '9999-12-31', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ß', NULL, NULL, NULL, NULL)""",
    )
    server.take("awkward", record_key=shop.record_key)
    shop.run(spark, "bootstrap")
    loaded = shop.in_lake(spark)
    assert [len(loaded), sum(row["at"] is None for row in loaded.values())] == [3, 1]
    server.execute("UPDATE awkward SET flag = NOT flag, y = 2000", "UPDATE awkward SET flag = NOT flag, y = 2001")
    assert shop.follow(spark, record_key=shop.record_key).counts.read == 6
    captured = shop.in_lake(spark)
    versions = [row.asDict(recursive=True) for row in read(spark, shop.table.history_uri).collect()]
    assert len(versions) == 9
    for version in versions:
        plain = {name: value for name, value in version.items() if not name.startswith("_")}
        own = {"flag": plain["flag"], "y": plain["y"]}
        assert plain == loaded[plain["u"], plain["emoji"]] | own
    assert {row["y"] for row in captured.values()} == {2001}
    assert {key: row | {"y": 0} for key, row in captured.items()} == {
        key: row | {"y": 0} for key, row in loaded.items()
    }


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda message: b"",
    "oversized": lambda message: message + bytes(9 * 2**20),
    "magic byte": lambda message: b"\x07" + message[1:],
    "unknown schema": lambda message: b"\x00\x7f\xff\xff\xff" + message[5:],
    "other subject": lambda message: b"\x00\x00\x00\x00\x01" + message[5:],
    "truncated": lambda message: message[:-3],
    "trailing bytes": lambda message: message + b"?",
    "invalid utf8": lambda message: message.replace(b"x" * 8, b"\xff" * 8),
    "row key": lambda message: message.replace(b'["2', b'["9', 1),
    "corrupt": lambda message: message[:-4] + b"\x63" + message[-3:],  # which of two types its last value has
}
"""By the label that a person reads. A message has the row key, and its city is 8 times x."""


def test_broken_messages_are_told_apart_mended_and_published_again(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """One in a hundred is broken, each in another way, and two more could not be encoded. All else is in the lake at once; mended, all is, and a column
    that no version has once one has it."""
    server.execute("CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO others VALUES (1)")
    server.take("others")
    shop = CapturedShop(server, tmp_path, "noisy", told=timedelta(minutes=2))
    server.execute(
        "CREATE TABLE noisy (id int PRIMARY KEY, city varchar(20), fare decimal(8,2))",
        "INSERT INTO noisy SELECT seq, 'old', 1.5 FROM seq_1_to_500",
    )
    server.take("noisy")
    shop.run(spark, "bootstrap")
    server.execute(
        "INSERT INTO noisy SELECT seq, 'xxxxxxxx', 2.5 FROM seq_2000_to_2999",
        "UPDATE noisy SET city = 'later' WHERE id = 2900",
    )
    server.take("noisy")
    messages = server.messages("noisy")[500:]
    assert len(messages) == 1001
    broken = {100 * place: mend(messages[100 * place]) for place, mend in enumerate(BROKEN.values())}
    unencoded = UnencodedRow(
        "0-1-9999999", 0, Defect.TYPE, "fare", "no number", {"id": 2}, {"id": 3000, "city": "x", "fare": "?"}
    )
    shop.log_url = (tmp_path / "noise").as_uri()
    sent = [*server.messages("noisy")[:500], *(broken.get(place, message) for place, message in enumerate(messages))]
    shop.write("noisy", *sent)
    of_no_column = UnencodedRow(
        "0-1-9999999", 1, Defect.FIELD, "citi", "no such column", None, {"id": 3001, "city": "x", "citi": "x"}
    )
    shop.write("noisy.errors", unencoded.to_json(), of_no_column.to_json())
    report = shop.run(spark, "incremental")
    assert (report.counts.read, report.counts.applied, report.counts.errors) == (1003, 991, 12)
    rejected = {row["reason"].partition("): ")[0].partition("(")[2]: row for row in shop.rejected(spark)}
    assert rejected.keys() == BROKEN.keys() | {"type", "field"}
    source = shop.in_source()
    assert shop.in_lake(spark).keys() == source.keys() - {(2000 + place,) for place in broken if place != 900}
    keys = {label: 2000 + 100 * place for place, label in enumerate(BROKEN)} | {"type": 3000, "field": 3001}
    fixes = {
        row["error_key"]: json.dumps({"id": keys[label], "city": "mended", "fare": 2.5})
        for label, row in rejected.items()
    }
    replay = ReplaySpec(tuple(fixes), "ana", fixes)
    first = shop.run(spark, "replay", replay=replay).counts
    assert (first.applied, first.errors) == (11, 1)
    left = {row["error_key"]: row for row in shop.rejected(spark)}[rejected["field"]["error_key"]]
    assert "`citi` is no column of the source's schema" in left["reason"]
    server.execute("ALTER TABLE noisy ADD citi varchar(9)", "INSERT INTO noisy VALUES (3002, 'x', 1, 'x')")
    server.take("noisy")
    assert shop.run(spark, "replay", replay=replay).counts.applied == 1, "there is a version that has it"
    after = shop.run(spark, "incremental")
    assert (after.counts.read, after.counts.errors) == (13, 0)
    lake = shop.in_lake(spark)
    assert lake.keys() == (source.keys() | {(3000,), (3001,)}) - {(2,)}  # its key was 2 before
    assert {key for key, row in lake.items() if row["city"] == "mended"} == {(number,) for number in keys.values()} - {
        (2900,)
    }
    assert shop.run(spark, "replay", replay=replay).counts.read == 0


def test_events_that_come_again_in_any_order_change_nothing(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Rows that were deleted stay so, although the table does not have them any more."""
    shop = CapturedShop(server, tmp_path, "again")
    server.execute("CREATE TABLE again (id int PRIMARY KEY, n int)", "INSERT INTO again SELECT seq, 0 FROM seq_1_to_9")
    server.take("again")
    shop.run(spark, "bootstrap")
    server.execute(
        "DELETE FROM again WHERE id < 5",
        "INSERT INTO again VALUES (1, 1), (20, 1)",
        "UPDATE again SET n = 2 WHERE id = 5",
        "DELETE FROM again WHERE id = 20",
        "UPDATE again SET id = 21 WHERE id = 9",
    )
    shop.follow(spark)
    once = shop.in_lake(spark)
    assert once == shop.in_source()
    messages = server.messages("again")
    random.Random(SEED).shuffle(messages)
    server.write("again", *messages)
    report = shop.run(spark, "incremental")
    assert (report.counts.read, report.counts.errors) == (len(messages), 0)
    assert shop.in_lake(spark) == once
    server.execute("INSERT INTO again VALUES (2, 2), (20, 2)")
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()
    assert read_tombstones(spark, shop.table, ["3", "9"]).states.keys() == {"3", "9"}
    shop.run(spark, "bootstrap", replace=True)
    assert read_tombstones(spark, shop.table, ["3", "9"]).states == {}
    server.execute("DELETE FROM again WHERE id = 8", "INSERT INTO again VALUES (9, 9)")
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()


@pytest.mark.parametrize("index", ["memory", "record_index"])
def test_a_key_is_the_same_by_the_load_and_by_the_log(
    spark: SparkSession, server: TappedServer, tmp_path: Path, index: str
) -> None:
    """Each row is changed, and half of them are deleted: no key is there twice. A key that would not be is refused."""
    shop = CapturedShop(server, tmp_path, "keyed", ("d", "n", "t"), index=index)
    server.execute(
        "CREATE TABLE keyed (d date, n decimal(12,0), t varchar(9), x int, PRIMARY KEY (d, n, t))",
        "INSERT INTO keyed SELECT '1969-12-31' + interval seq day, -seq, concat('ü,', seq), 0 FROM seq_1_to_8",
        "INSERT INTO keyed VALUES ('9999-12-31', 999999999999, 'a:b', 0)",
    )
    server.take("keyed", record_key=shop.record_key)
    shop.run(spark, "bootstrap")
    server.execute("UPDATE keyed SET x = 1", "DELETE FROM keyed WHERE n %% 2 = 0")
    assert shop.follow(spark, record_key=shop.record_key).counts.errors == 0
    assert shop.in_lake(spark) == shop.in_source()
    timed = CapturedShop(server, tmp_path, "timed", ("at",), index=index)
    server.execute("CREATE TABLE timed (at datetime(6) PRIMARY KEY)", "INSERT INTO timed VALUES ('2026-11-26')")
    report = timed.tried(spark, "bootstrap")
    assert "the column `at`, which is a part of the record key" in str(report.error)


def test_what_no_event_can_be_older_than_is_let_go(
    spark: SparkSession, server: TappedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of deleted rows: a table of queues would know more of them than it has rows."""
    monkeypatch.setattr(tombstones, "_COMMITS_BETWEEN_REMOVALS", 1)
    shop = CapturedShop(server, tmp_path, "queue")
    server.execute("CREATE TABLE queue (id int PRIMARY KEY)", "INSERT INTO queue SELECT seq FROM seq_1_to_9")
    server.take("queue")
    shop.run(spark, "bootstrap")
    for number in (1, 2):
        server.execute(f"DELETE FROM queue WHERE id = {number}")
        shop.follow(spark)
    assert read_tombstones(spark, shop.table, ["1", "2"]).states.keys() == {"1", "2"}
    monkeypatch.setattr(committing, "TOMBSTONE_MARGIN", -timedelta(days=8))  # as if that were so long ago
    server.execute("DELETE FROM queue WHERE id = 3")
    shop.follow(spark)
    assert read_tombstones(spark, shop.table, ["1", "2", "3"]).states.keys() == {"3"}
    assert shop.in_lake(spark) == shop.in_source()


def test_whole_numbers_of_32_bits_widen_to_fractions_also_in_files_that_stay(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    shop = CapturedShop(server, tmp_path, "widening").with_table(partition_column="day")
    server.execute(
        "CREATE TABLE widening (id int PRIMARY KEY, day varchar(10), n int)",
        "INSERT INTO widening VALUES (1, '2026-11-01', 2147483647), (2, '2026-11-02', -5)",
    )
    server.take("widening")
    shop.run(spark, "bootstrap")
    server.execute("ALTER TABLE widening MODIFY n double", "INSERT INTO widening VALUES (3, '2026-11-02', 12.5)")
    assert shop.follow(spark).schema["widened"] == ["n"]
    assert {key: row["n"] for (key,), row in shop.in_lake(spark).items()} == {1: 2147483647.0, 2: -5.0, 3: 12.5}
    total = Measure("sum", ("n",))
    answers = DuckDbEngine().measure(Scan(HudiCopy(shop.table.uri), (total,)), Limits()).answers
    assert answers[total] == 2147483654.5
    server.execute("UPDATE widening SET day = '2026-11-02' WHERE id = 1")
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()
