"""What one rejected message in a hundred costs a job on a captured table: a commit to the error table, and no look-up for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ingestion.spark.changes import committing
from ingestion.spark.contract.report import JobReport
from ingestion.spark.rejected import repeated_rows
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop

EVENTS, BATCHES = 2_000, 3


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, "lakehub_errors", tmp_path / "log") as tapped:
        yield tapped


def jobs(spark: SparkSession) -> int:
    """How many the session has started so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())  # type: ignore[union-attr]


def _look(looks: list[object], read: Callable[..., pa.Table], *args: Any) -> pa.Table:
    looks.append(args)
    return read(*args)


def batches(
    spark: SparkSession, shop: CapturedShop, folder: Path, *, one_in: int
) -> list[tuple[JobReport, tuple[int, int]]]:
    """Of EVENTS updates each, of which one in so many is cut off; 0: none. With the jobs of Spark, and the looks into stored files, that each took."""
    server, name = shop.server, shop.name
    server.execute(
        f"CREATE TABLE {name} (id int PRIMARY KEY, n int)", f"INSERT INTO {name} SELECT seq, 0 FROM seq_1_to_{EVENTS}"
    )
    server.take(name)
    shop.run(spark, "bootstrap")
    shop.log_url = (folder / name).as_uri()
    shop.write(name, *server.messages(name))
    taken = []
    for number in range(BATCHES):
        server.execute(f"UPDATE {name} SET n = {number + 1}")
        server.take(name)
        messages = server.messages(name)[-EVENTS:]
        cut = [text[:-3] if one_in and place % one_in == 0 else text for place, text in enumerate(messages)]
        shop.write(name, *cut)
        before, looks = jobs(spark), list[object]()
        with pytest.MonkeyPatch.context() as patched:
            for module in (committing, repeated_rows):
                patched.setattr(module, "read_stored_rows", partial(_look, looks, module.read_stored_rows))
            report = shop.run(spark, "incremental")
        taken.append((report, (jobs(spark) - before, len(looks))))
    return taken


def test_one_error_in_a_hundred_costs_no_look_up(spark: SparkSession, server: TappedServer, tmp_path: Path) -> None:
    clean = batches(spark, CapturedShop(server, tmp_path, "clean"), tmp_path, one_in=0)
    noisy = batches(spark, shop := CapturedShop(server, tmp_path, "noisy"), tmp_path, one_in=100)
    assert [(each.counts.read, each.counts.errors) for each, _ in clean] == [(EVENTS, 0)] * BATCHES
    assert [(each.counts.read, each.counts.applied, each.counts.errors) for each, _ in noisy] == [
        (EVENTS, EVENTS - EVENTS // 100, EVENTS // 100)
    ] * BATCHES
    # The first errors make the error table. Keys are looked for once a batch, and errors not at all.
    assert [costs for _, costs in clean[1:]] == [(0, 1)] * (BATCHES - 1)
    assert [costs for _, costs in noisy[1:]] == [(0, 1)] * (BATCHES - 1)
    assert len(shop.rejected(spark)) == BATCHES * EVENTS // 100
    assert {row["n"] for key, row in shop.in_lake(spark).items()} == {0, BATCHES}
