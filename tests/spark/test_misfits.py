"""Values that do not fit, of a dataset that wants null in their place: the rows are in the lake, the notes in the error table, and the sums hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.capture.null_instead import as_option
from ingestion.domain.schema import Schema
from ingestion.heatpipe.encoder import Encoder
from ingestion.spark.contract.spec import ReplaySpec
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop
from tests.unit.ingestion.heatpipe.messages import NOW, change

DATABASE, REQUIRED = "lakehub_misfits", frozenset({"id"})


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def test_what_does_not_fit_is_null_and_noted_until_it_is_mended(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """By messages of a version whose columns the table cannot have."""
    shop = CapturedShop(server, tmp_path, "odd", options=as_option(REQUIRED))
    server.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, n int, city varchar(9))", "INSERT INTO odd VALUES (1, 1, 'a')"
    )
    server.take("odd", required=REQUIRED)
    shop.run(spark, "bootstrap")
    unlike = server.versions.register("odd", Schema.of({"id": "string", "n": "string", "city": "string"}))
    encoder = Encoder(unlike, ("id",), "somebody", "dc1", lambda: NOW)
    rows = [("2", "x", "b"), ("3", "33", "c"), ("?", "4", "d"), ("5", "y", "e")]
    keys = [b"\x7f" + bytes([number]) for number in range(len(rows))]
    messages = [
        encoder.encode(change(dict(zip(("id", "n", "city"), row, strict=True)), reference=key, key=row[0])).value
        for row, key in zip(rows, keys, strict=True)
    ]
    server.write("odd", *messages)
    report = shop.run(spark, "incremental")
    assert (report.counts.read, report.counts.applied, report.counts.errors) == (4, 3, 1)
    assert shop.timeline.commits()[-1].run["nulled"] == 2
    assert {key: (row["n"], row["city"]) for (key,), row in shop.in_lake(spark).items()} == {
        1: (1, "a"),
        2: (None, "b"),
        3: (33, "c"),
        5: (None, "e"),
    }
    notes = {json.loads(row["raw"])["id"]: row for row in shop.rejected(spark)}
    assert {key: (row["column"], row["reason"].startswith("null instead: `n` is")) for key, row in notes.items()} == {
        "2": ("n", True),
        "5": ("n", True),
        "?": ("id", False),
    }
    server.write("odd", *messages)
    lake = shop.in_lake(spark)
    again = shop.run(spark, "incremental").counts
    assert (again.read, again.errors, again.is_balanced, shop.in_lake(spark)) == (4, 1, True, lake)

    fixes = {row["error_key"]: json.dumps({"n": 7}) for row in (notes["2"], notes["5"])}
    server.write(
        "odd", encoder.encode(change({"id": "5", "n": "55", "city": "z"}, reference=b"\x7f\x7f", key="5")).value
    )
    assert shop.run(spark, "replay", replay=ReplaySpec(tuple(fixes), "ana", fixes)).counts.applied == 2
    after = shop.run(spark, "incremental")
    assert (after.counts.read, after.counts.applied, after.counts.superseded, after.counts.errors) == (3, 2, 1, 0)
    lake = shop.in_lake(spark)
    assert (lake[2,]["n"], lake[2,]["city"], lake[5,]["n"], lake[5,]["city"]) == (7, "b", 55, "z")
    assert "nulled" not in shop.timeline.commits()[-1].run
