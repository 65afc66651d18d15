"""Writes into the lake: small batches into tables of growing size, and the first load, beside Hudi's own writer. Each writer has a session of its own.

Lakehub's times are those of whole jobs: reading the source, fitting each row, judging it against the stored one, the commit with its
checkpoint, the report. Hudi's are those of its writer alone, from a Parquet file of the changed rows.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.harness import Report, run
from bench.writing import first_load, rows
from bench.writing.contenders import CONTENDERS, Contender
from bench.writing.costs import Cost, cost_of
from bench.writing.sessions import session

MAX_SECONDS, MAX_OF_HUDI, MAX_GROWTH, MAX_OF_INSERT = 2.0, 0.7, 1.2, 0.7


class Kind(NamedTuple):
    """`turns`: how often it is measured, at most; each takes long where many rows are spread over all files."""

    changed: int
    spread: bool
    turns: int = 3

    def __str__(self) -> str:
        return f"{self.changed:,} {'spread' if self.spread else 'in two days'}"


@dataclass(frozen=True)
class Size:
    """`warm_up`: small batches of each writer that are not measured."""

    tables: tuple[int, ...]
    kinds: tuple[Kind, ...]
    warm_up: int
    repeats: int
    loaded: int
    days: int = 182
    contenders: tuple[Contender, ...] = CONTENDERS

    def contenders_of(self, table: int) -> list[Contender]:
        return [contender for contender in self.contenders if table <= contender.most_rows]


SMALL = Kind(100, spread=False)
FULL = Size(
    (100_000, 1_000_000, 5_000_000),
    (
        Kind(1, spread=False),
        SMALL,
        Kind(100, spread=True),
        Kind(10_000, spread=False),
        Kind(10_000, spread=True, turns=1),
    ),
    warm_up=3,
    repeats=3,
    loaded=3_000_000,
)
QUICK = Size(
    (20_000,), (SMALL,), warm_up=1, repeats=1, loaded=10_000, days=4, contenders=(CONTENDERS[0], CONTENDERS[3])
)
Costs = dict[tuple[int, str, Kind], Cost]


def main() -> int:
    return run("write", bench, __doc__)


def bench(report: Report) -> None:
    size = QUICK if report.quick else FULL
    costs: Costs = {}
    for table in size.tables:
        for contender in size.contenders_of(table):
            with session() as spark:
                costs |= _upserts(report, spark, contender, table, size)
        _tell(report, costs, table, size)
    loads = first_load.costs(size.loaded, size.days)
    first_load.tell(report, loads, size.loaded, size.days, MAX_OF_INSERT)
    _judge(report, costs, size)


def _upserts(report: Report, spark: SparkSession, contender: Contender, table: int, size: Size) -> Costs:
    """The median of each kind of batch; each contender has a table of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lakehub-bench-write-"))
    try:
        load = cost_of(spark, lambda: contender.load(spark, folder, rows.loaded(spark, table, days=size.days)))
        report.print_line(f"{contender.name}: {table:,} rows loaded in {load.seconds:.0f} s")
        number, costs = 0, {}
        for kind, repeats in [(SMALL, size.warm_up), *((kind, min(size.repeats, kind.turns)) for kind in size.kinds)]:
            measured = []
            for _ in range(repeats):
                number += 1
                orders = rows.changed(table, kind.changed, days=size.days, spread=kind.spread, number=number)
                contender.prepare(folder, orders)
                measured.append(cost_of(spark, partial(contender.upsert, spark, folder, number)))
            costs[table, contender.name, kind] = Cost.median(measured)
        _check(spark, folder, table, number, contender)
        return costs
    finally:
        shutil.rmtree(folder)


def _check(spark: SparkSession, folder: Path, table: int, number: int, contender: Contender) -> None:
    """No row is lost or doubled, and the last batch is there."""
    stored = spark.read.format("hudi").load((folder / "lake" / "orders").as_uri())
    counts = stored.selectExpr("count(*) as rows", "count(distinct id) as ids", "max(amount) as last").first()
    assert counts is not None
    if (counts["rows"], counts["ids"]) != (table, table) or stored.where(f"amount = {number + 0.5}").count() == 0:
        raise AssertionError(f"{contender.name} left {counts} of {table} rows, or not the last batch")


def _tell(report: Report, costs: Costs, table: int, size: Size) -> None:
    lines = []
    for contender in size.contenders_of(table):
        for kind in size.kinds:
            cost = costs[table, contender.name, kind]
            lines.append(
                [
                    contender.name,
                    str(kind),
                    f"{cost.seconds:.2f}",
                    f"{cost.jobs:.0f}",
                    _mb(cost.read),
                    _mb(cost.written),
                ]
            )
            report.figure(f"{table}_{_slug(contender.name)}_{_slug(str(kind))}_s", cost.seconds)
    headings = ["writer", "changed rows", "s", "Spark jobs", "MB read", "MB written"]
    report.table(f"A batch into {table:,} rows of {size.days} days, median of {size.repeats} at most", headings, lines)


def _judge(report: Report, costs: Costs, size: Size) -> None:
    largest = size.tables[-1]
    seconds = {
        contender.name: costs[largest, contender.name, SMALL].seconds
        for contender in size.contenders_of(largest)
        if contender.is_global
    }
    ours = min(taken for name, taken in seconds.items() if name.startswith("Lakehub"))
    theirs = min(taken for name, taken in seconds.items() if name.startswith("Hudi"))
    report.at_most(f"100 rows in two days of {largest:,}, p50", ours, MAX_SECONDS, unit=" s")
    report.at_most(
        f"100 rows in two days of {largest:,}, of Hudi's best global index", ours / theirs, MAX_OF_HUDI, unit="x"
    )
    for contender in size.contenders:
        if contender.is_global and contender.name.startswith("Lakehub"):
            _judge_growth(report, costs, contender, size)


def _judge_growth(report: Report, costs: Costs, contender: Contender, size: Size) -> None:
    """Between the two largest tables that it is meant for."""
    tables = [table for table in size.tables if table <= contender.most_rows][-2:]
    if len(tables) == 2:
        smaller, larger = (costs[table, contender.name, SMALL].seconds for table in tables)
        label = f"{contender.name}: 100 rows, {tables[0]:,} to {tables[1]:,}"
        report.at_most(label, larger / smaller, MAX_GROWTH, unit="x")


def _mb(count: float) -> str:
    return f"{count / 1e6:.1f}"


def _slug(text: str) -> str:
    return "_".join(text.replace(",", "").lower().split())


if __name__ == "__main__":
    raise SystemExit(main())
