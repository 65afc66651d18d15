"""HFiles loaded into a table whose regions begin with them, and into one that was not split."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.harness import Report
from bench.indexing.entries import entries, key, pieces, write_hfile
from bench.indexing.server import HBase
from ingestion.index.entries import FAMILIES, FAMILY
from ingestion.index.thrift_client import ThriftAddress, ThriftIndexClient
from ingestion.spark.global_index.hbase_client.administration import Administration, open_administration

_ASKED = 10_000


class Load(NamedTuple):
    """`taken`: HFiles that HBase took; more than there were where one reached over the border of two regions."""

    seconds: float
    taken: int
    regions: int
    keys_a_second: float


def compare(report: Report, spark: SparkSession, hbase: HBase, folder: Path, *, rows: int, files: int) -> None:
    first_rows = _write(folder / "hfiles", rows, files)
    tables = {"pre-split at the HFiles": first_rows[1:], "not split": []}
    loads = {}
    with open_administration(spark, {"hbase.zookeeper.quorum": hbase.quorum}) as administration:
        _warm_up(administration, folder)
        for place, (name, starts) in enumerate(tables.items()):
            staged = folder / f"staged-{place}"
            shutil.copytree(folder / "hfiles", staged)
            loads[name] = _load(administration, hbase, f"loaded-{place}", staged, starts, rows)
    _tell(report, loads, rows, files)


def _tell(report: Report, loads: dict[str, Load], rows: int, files: int) -> None:
    lines = []
    for name, load in loads.items():
        split = load.taken - files
        numbers = (f"{load.seconds:.2f}", split, load.regions, f"{load.keys_a_second:,.0f}")
        lines.append([name, *map(str, numbers)])
        slug = "_".join(name.replace("-", "_").split())
        report.figure(f"load_{slug}_s", load.seconds)
        report.figure(f"load_{slug}_split_hfiles", split)
    headings = ["table", "s", "HFiles split", "regions", "keys a second, then"]
    report.table(f"{files} HFiles of {rows:,} entries loaded", headings, lines)
    report.at_most("HFiles split where the table is pre-split", loads["pre-split at the HFiles"].taken - files, 0)


def _write(folder: Path, rows: int, files: int) -> list[bytes]:
    """The first row of each."""
    written = [
        write_hfile(entries(begin, end), folder / FAMILY.decode() / f"{begin:012}")
        for begin, end in pieces(rows, files)
    ]
    return [each.first for each in written]


def _warm_up(administration: Administration, folder: Path) -> None:
    """What the first load of a JVM has to load itself."""
    write_hfile(entries(0, 10), folder / "first" / FAMILY.decode() / "0")
    administration.create("first", "bench", FAMILIES, [])
    administration.load("first", (folder / "first").as_uri())


def _load(
    administration: Administration, hbase: HBase, name: str, staged: Path, starts: Sequence[bytes], rows: int
) -> Load:
    administration.create(name, "bench", FAMILIES, starts)
    begun = time.perf_counter()
    loaded = administration.load(name, staged.as_uri())
    seconds = time.perf_counter() - begun
    return Load(seconds, loaded.files, loaded.regions, _keys_a_second(hbase, name, rows))


def _keys_a_second(hbase: HBase, name: str, rows: int) -> float:
    """Asked once before, so that each table's keys come from the memory of the server."""
    host, _, port = hbase.thrift.rpartition(":")
    keys = [key(number) for number in range(0, rows, max(1, rows // _ASKED))]
    with closing(ThriftIndexClient(ThriftAddress(host, int(port)), name)) as client:
        client.note({})
        answered = len(client.get(keys))
        begun = time.perf_counter()
        client.get(keys)
        seconds = time.perf_counter() - begun
    if answered != len(keys):
        raise AssertionError(f"{name} lacks {len(keys) - answered:,} of {len(keys):,} entries")
    return len(keys) / seconds
