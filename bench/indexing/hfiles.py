"""How fast HFiles are made: by our writer, by ImportTsv, and beside that the same entries put through Thrift."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import happybase

from bench.harness import Report
from bench.indexing.entries import entries, key, read_tsv, some_entries, write_hfile, write_tsv
from bench.indexing.import_tsv import ImportTsv, Spent
from bench.indexing.server import HBase
from bench.writing.costs import core_seconds
from ingestion.index.entries import FAMILIES
from ingestion.index.patient_client import BATCH
from ingestion.index.thrift_client import ThriftAddress, ThriftIndexClient

MIN_ROWS_A_CORE_SECOND, MIN_OF_IMPORT_TSV = 1_000_000, 20
_REPEATS = 3


@dataclass(frozen=True)
class Made:
    """`spent`: seconds, and core seconds of all processes that had a part."""

    name: str
    slug: str
    rows: int
    spent: Spent

    @property
    def rows_a_core_second(self) -> float:
        return self.rows / self.spent.core_seconds


def compare(report: Report, hbase: HBase, folder: Path, *, written: int, imported: int, put: int) -> None:
    """`written`, `imported`, `put`: rows of each."""
    ordered, from_text, tsv = entries(0, written), entries(0, imported), folder / "entries.tsv"
    write_tsv(from_text, tsv)
    made = [
        Made("Lakehub, entries in order", "hfile", written, _ours(partial(_write, ordered, written, folder))),
        Made(
            "Lakehub, the file of ImportTsv, with its sorting",
            "hfile_of_tsv",
            imported,
            _ours(lambda: _write(read_tsv(tsv), imported, folder)),
        ),
        Made("HBase, ImportTsv", "import_tsv", imported, _import(report, hbase, folder, tsv, imported)),
        Made(f"puts through Thrift, {BATCH:,} a call", "puts", put, _puts(hbase, put)),
    ]
    _tell(report, made)


def _tell(report: Report, made: list[Made]) -> None:
    lines = []
    for each in made:
        per_s, per_core_s = each.rows / each.spent.seconds, each.rows_a_core_second
        lines.append([each.name, f"{each.rows:,}", f"{each.spent.seconds:.2f}", f"{per_s:,.0f}", f"{per_core_s:,.0f}"])
        report.figure(f"{each.slug}_rows_per_s", per_s)
        report.figure(f"{each.slug}_rows_per_core_s", per_core_s)
    headings = ["entries of three cells", "rows", "s", "rows a second", "rows a core second"]
    report.table("How entries get into HBase's files", headings, lines)
    ours, from_tsv, theirs, _ = (each.rows_a_core_second for each in made)
    report.at_least("HFile rows in a core second", ours, MIN_ROWS_A_CORE_SECOND)
    report.at_least("HFile rows in a core second, of ImportTsv's", ours / theirs, MIN_OF_IMPORT_TSV, unit="x")
    label = "the same with reading and sorting ImportTsv's file"
    report.at_least(label, from_tsv / theirs, MIN_OF_IMPORT_TSV, unit="x")


def _import(report: Report, hbase: HBase, folder: Path, tsv: Path, rows: int) -> Spent:
    """Without what its start takes, but in a quick run, which has next to nothing else."""
    tool = ImportTsv(hbase, folder)
    spent = tool.run(tsv, "import_tsv", rows)
    if report.quick:
        return spent
    one_row = folder / "one_entry.tsv"
    write_tsv(entries(0, 1), one_row)
    start = tool.run(one_row, "import_tsv_start", 1)
    report.figure("import_tsv_start_s", start.seconds)
    return Spent(spent.seconds - start.seconds, spent.core_seconds - start.core_seconds)


def _ours(work: Callable[[], object]) -> Spent:
    """The median of the core seconds, and of the seconds."""
    taken = [_taken(work) for _ in range(_REPEATS)]
    return Spent(median(each.seconds for each in taken), median(each.core_seconds for each in taken))


def _taken(work: Callable[[], object]) -> Spent:
    begun, begun_core = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - begun, time.process_time() - begun_core)


def _write(table: object, rows: int, folder: Path) -> None:
    written = write_hfile(table, folder / "ours")
    if written.rows != rows:
        raise AssertionError(f"The HFile has {written.rows:,} of {rows:,} rows")


def _puts(hbase: HBase, rows: int) -> Spent:
    """With the core seconds of HBase: it sorts and writes what our writer does for the others."""
    host, _, port = hbase.thrift.rpartition(":")
    with closing(happybase.Connection(host, int(port))) as connection:
        connection.create_table("puts", {family.decode(): {"max_versions": 1} for family in FAMILIES})
    batches = some_entries(0, rows)
    with closing(ThriftIndexClient(ThriftAddress(host, int(port)), "puts")) as client:
        client.note({})
        before = core_seconds(hbase.processes)
        spent = _taken(lambda: client.put(batches, at_ms=1))
        of_hbase = core_seconds(hbase.processes) - before
        asked = [key(number) for number in range(0, rows, max(1, rows // BATCH))]
        if len(client.get(asked)) != len(asked):
            raise AssertionError("HBase lacks entries that were put")
    return Spent(spent.seconds, spent.core_seconds + of_hbase)
