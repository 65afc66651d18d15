"""A copy is put elsewhere in its changelog: back reads again and changes nothing, forward leaves changes out, once, and whatever else is at work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import LogMoveSpec
from ingestion.spark.execute import execute
from ingestion.spark.loading import write_path
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import SECRET, CapturedShop


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, "lakehub_positions", tmp_path / "log") as tapped:
        yield tapped


@pytest.fixture
def shop(spark: SparkSession, server: TappedServer, tmp_path: Path) -> CapturedShop:
    """Two rows were deleted and one was changed thrice after the load."""
    shop = CapturedShop(server, tmp_path, "moved")
    server.execute("CREATE TABLE moved (id int PRIMARY KEY, n int)")
    server.execute("INSERT INTO moved SELECT seq, 0 FROM seq_1_to_20", "DELETE FROM moved WHERE id = 20")
    server.take("moved")
    shop.run(spark, "bootstrap")
    server.execute(
        "UPDATE moved SET n = 1", "UPDATE moved SET n = 2 WHERE id < 9", "DELETE FROM moved WHERE id IN (1, 9)"
    )
    server.execute("UPDATE moved SET n = 3 WHERE id = 2")
    shop.follow(spark)
    return shop


def place(shop: CapturedShop) -> int:
    checkpoint = shop.timeline.checkpoint()
    assert checkpoint is not None
    return int(checkpoint.position["log"]["moved"]["0"])


def put(shop: CapturedShop, spark: SparkSession, offset: int, *, may_skip: bool = False) -> JobReport:
    return shop.tried(spark, "set_position", log_move=LogMoveSpec({"moved": {"0": offset}}, may_skip))


def test_back_reads_again_and_changes_nothing(spark: SparkSession, shop: CapturedShop) -> None:
    before, end = shop.in_lake(spark), place(shop)
    assert put(shop, spark, 20).error.startswith("UnfitMove: Partition 0 of `moved`: the copy was loaded from 21 on")  # type: ignore[union-attr]
    report = put(shop, spark, 21)
    assert (report.status, report.counts.read, place(shop)) == ("succeeded", 0, 21)
    note = next(iter(shop.timeline.newest_first())).run["log_move"]
    assert (note["skipped"], note["read_again"]) == (0, end - 21)
    again = shop.run(spark, "incremental")
    assert (again.counts.read, again.counts.applied) == (end - 21, 0)
    run = next(iter(shop.timeline.newest_first())).run
    assert (sum(run["logged_hours"].values()), len(run["source_times"])) == (end - 21, 21)
    assert note["from_at"] <= datetime.now(UTC).isoformat()
    assert note["upto_at"] is None
    assert (place(shop), shop.in_lake(spark)) == (end, before)
    assert before == shop.in_source()


def test_forward_leaves_changes_out_where_somebody_agreed_to_that(
    spark: SparkSession, server: TappedServer, shop: CapturedShop
) -> None:
    server.execute("UPDATE moved SET n = 50 WHERE id = 5", "UPDATE moved SET n = 60 WHERE id = 6")
    server.take("moved")
    here = place(shop)
    refused = put(shop, spark, here + 1)
    assert "About 1 changes of `moved` would be left out" in (refused.error or "")
    assert place(shop) == here
    assert put(shop, spark, here + 1, may_skip=True).status == "succeeded"
    shop.run(spark, "incremental")
    lake = shop.in_lake(spark)
    assert (lake[5,]["n"], lake[6,]["n"]) == (2, 60)
    assert put(shop, spark, here + 2).status == "nothing_to_do"


def test_a_job_that_died_after_its_commit_does_not_move_a_copy_that_has_read_on(
    spark: SparkSession, shop: CapturedShop
) -> None:
    """The run is tried again, and finds what it has done."""
    end = place(shop)
    spec = shop.spec("set_position", log_move=LogMoveSpec({"moved": {"0": 25}}))
    url = shop.server.url.render_as_string(hide_password=False)
    execute(spec, spark=spark, secrets={SECRET: url})
    shop.run(spark, "incremental")
    report = execute(spec, spark=spark, secrets={SECRET: url})
    assert (report.status, place(shop)) == ("succeeded", end)


def test_a_batch_that_was_read_from_the_old_place_is_read_again(
    spark: SparkSession, server: TappedServer, shop: CapturedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit would take the copy back to where it was, and the position that somebody has set would be lost."""
    server.execute("UPDATE moved SET n = 9 WHERE id = 7")
    server.take("moved")
    end, commit_batch = place(shop), write_path.commit_batch
    reports: list[JobReport] = []

    def moved_meanwhile(*given: Any, **named: Any) -> JobReport:
        monkeypatch.setattr(write_path, "commit_batch", commit_batch)
        reports.append(put(shop, spark, 30))
        return commit_batch(*given, **named)

    monkeypatch.setattr(write_path, "commit_batch", moved_meanwhile)
    report = shop.run(spark, "incremental")
    assert ([each.status for each in reports], report.counts.read) == (["succeeded"], end + 1 - 30)
    assert shop.in_lake(spark) == shop.in_source()
