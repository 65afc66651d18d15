"""A part of a table changed, by Lakehub's jobs and by Hudi's own writer, each with a table and with Spark sessions of its own: the look-up alone, then the whole upsert."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.harness import Report
from bench.indexing.look_ups import LookUp, look_up
from bench.writing import rows
from bench.writing.contenders import CHANGED, Contender
from bench.writing.costs import Cost, cost_of
from bench.writing.sessions import session

_LAST_DAYS = 2
"""So many days at least hold changes that are clustered, and twice the rows that are changed."""


class Kind(NamedTuple):
    """`share`: of the rows of the table."""

    share: float
    spread: bool

    def __str__(self) -> str:
        return f"{100 * self.share:g} % {'spread' if self.spread else 'clustered'}"


@dataclass(frozen=True)
class Size:
    """`grown`: keys that are looked up in each table, for what a look-up grows with the table. A kind is measured up to `turns` times, but not again once
    `patience_s` have gone by."""

    tables: tuple[int, ...]
    kinds: tuple[Kind, ...]
    days: int
    grown: int
    turns: int = 3
    patience_s: float = 20.0
    is_brief: bool = False
    """No warm-up, and loaded in the session of the changes, which then have the memory of the load."""


@dataclass(frozen=True)
class Measured:
    """Medians. `phases`: of the last job, seconds by name."""

    look_up: LookUp
    upsert: Cost
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Changes:
    """Of one contender and table. `grown`: seconds, until the groups of keys were named, and in all, by whether the keys are spread."""

    loaded_s: float
    kinds: dict[Kind, Measured]
    grown: dict[bool, LookUp]


def measure(contender: Contender, table: int, size: Size, *, is_grown: bool, beside: Collection[int] = ()) -> Changes:
    """`is_grown`: also how a look-up grows with the table."""
    folder = Path(tempfile.mkdtemp(prefix="lakehub-bench-index-"))
    try:
        with session() as spark:
            load = cost_of(spark, lambda: contender.load(spark, folder, rows.loaded(spark, table, days=size.days)))
            if size.is_brief:
                return _changes(_Turns(spark, contender, folder, table, size, beside), load.seconds, is_grown)
        with session() as spark:
            return _changes(_Turns(spark, contender, folder, table, size, beside), load.seconds, is_grown)
    finally:
        shutil.rmtree(folder)


def _changes(turns: _Turns, loaded_s: float, is_grown: bool) -> Changes:
    if not turns.size.is_brief:
        turns.upsert(Kind(turns.size.kinds[0].share, spread=False))  # which is not measured
    kinds = {kind: turns.measured(kind) for kind in turns.size.kinds}
    grown = {spread: turns.grown(spread) for spread in (False, True)} if is_grown else {}
    turns.check()
    return Changes(loaded_s, kinds, grown)


@dataclass
class _Turns:
    spark: SparkSession
    contender: Contender
    folder: Path
    table: int
    size: Size
    beside: Collection[int]
    number: int = 0

    def measured(self, kind: Kind) -> Measured:
        look_ups, upserts, phases = list[LookUp](), list[Cost](), dict[str, float]()
        for _ in self._until_enough(upserts):
            count = self._prepare(round(kind.share * self.table), kind.spread)
            look_ups.append(look_up(self.spark, self.contender, self.folder, count, beside=self.beside))
            phases = self._upsert(upserts)
        return Measured(_median(look_ups), Cost.median(upserts), phases)

    def upsert(self, kind: Kind) -> None:
        self._prepare(round(kind.share * self.table), kind.spread)
        self._upsert([])

    def grown(self, spread: bool) -> LookUp:
        count = self._prepare(self.size.grown, spread)
        self.number -= 1  # it is not written
        return _median([look_up(self.spark, self.contender, self.folder, count) for _ in range(self.size.turns)])

    def check(self) -> None:
        """No row is lost or doubled, and the last batch is there."""
        stored = self.spark.read.format("hudi").load((self.folder / "lake" / "orders").as_uri())
        counts = stored.selectExpr("count(*) as rows", "count(distinct id) as ids").first()
        assert counts is not None
        is_there = stored.where(f"amount = {self.number + 0.5}").count() > 0
        if (counts["rows"], counts["ids"]) != (self.table, self.table) or not is_there:
            raise AssertionError(f"{self.contender.name} left {counts} of {self.table} rows, or not the last batch")

    def _until_enough(self, costs: list[Cost]) -> Iterator[None]:
        while len(costs) < self.size.turns and sum(cost.seconds for cost in costs) <= self.size.patience_s:
            yield

    def _prepare(self, count: int, spread: bool) -> int:
        self.number += 1
        last_days = max(_LAST_DAYS, -(-2 * count * self.size.days // self.table))
        orders = rows.changed(
            self.table, count, days=self.size.days, spread=spread, number=self.number, last_days=last_days
        )
        rows.to_parquet(self.folder / CHANGED, orders)
        self.contender.prepare(self.folder, orders)
        return len(orders)

    def _upsert(self, costs: list[Cost]) -> dict[str, float]:
        phases = dict[str, float]()
        work = lambda: phases.update(self.contender.upsert(self.spark, self.folder, self.number))  # noqa: E731
        costs.append(cost_of(self.spark, work, beside=self.beside))
        return phases


def _median(made: list[LookUp]) -> LookUp:
    asked = sorted(each.asked_s for each in made)
    return LookUp(Cost.median([each.cost for each in made]), asked[len(asked) // 2])


def tell(report: Report, table: int, measured: Mapping[str, Changes]) -> None:
    lines, phases = [], []
    for name, changes in measured.items():
        for kind, each in changes.kinds.items():
            upsert, found = each.upsert, each.look_up
            asked = f"{found.asked_s:.2f}" if each.phases else "-"
            lines.append(
                [
                    name,
                    str(kind),
                    asked,
                    f"{found.cost.seconds:.2f}",
                    _mb(found.cost.read),
                    f"{upsert.seconds:.2f}",
                    _mb(upsert.read),
                    _mb(upsert.written),
                    _mb(upsert.peak),
                ]
            )
            if each.phases:
                phases.append([name, str(kind), *(f"{each.phases.get(phase, 0):.2f}" for phase in _PHASES)])
            slug = f"{table}_{slug_of(name)}_{slug_of(str(kind))}"
            report.figure(f"{slug}_look_up_s", found.cost.seconds)
            report.figure(f"{slug}_s", upsert.seconds)
            report.figure(f"{slug}_read_mb", upsert.read / 1e6)
            report.figure(f"{slug}_peak_mb", upsert.peak / 1e6)
    report.table(f"A part of {table:,} rows changed", _HEADINGS, lines)
    report.table("Lakehub's seconds by phase", ["writer", "changed", *_PHASES], phases)


_HEADINGS = [
    "writer",
    "changed",
    "index asked, s",
    "look-up, s",
    "MB read",
    "whole upsert, s",
    "MB read",
    "MB written",
    "memory, MB",
]
_PHASES = ("read", "judge", "write", "report", "total")


def slug_of(text: str) -> str:
    return "_".join(text.replace(",", "").replace("%", "percent").replace(".", "_").lower().split())


def _mb(count: float) -> str:
    return f"{count / 1e6:.1f}" if count < 1e7 else f"{count / 1e6:.0f}"
