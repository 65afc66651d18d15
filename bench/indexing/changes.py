"""Rows of a table changed, and new ones beside them, by Lakehub's jobs and by Hudi's own writer, each with a table and with Spark sessions of its own: the look-up alone, then the whole upsert."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.harness import Report
from bench.indexing.batches import NEW, NEW_NOTE, batch
from bench.indexing.look_ups import LookUp, look_up
from bench.writing import rows
from bench.writing.contenders import CHANGED, Contender
from bench.writing.costs import Cost, cost_of
from bench.writing.rows import Order
from bench.writing.sessions import session

_WARM_UP = 0.001
"""The share of the batches that are not measured."""
_LAST_DAYS = 2
"""So many days at least hold changes that are clustered, and twice the rows that are changed."""


class Kind(NamedTuple):
    """`share`: rows of a batch, of those of the table."""

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
    patience_s: float = 12.0
    is_brief: bool = False
    """No warm-up, and loaded in the session of the changes, which then have the memory of the load."""


class Upserted(NamedTuple):
    """The median. `phases`: of the last job, seconds by name."""

    cost: Cost
    phases: Mapping[str, float]


class Measured(NamedTuple):
    look_up: LookUp
    upsert: Cost
    phases: Mapping[str, float]


@dataclass(frozen=True)
class Changes:
    """Of one contender and table. `grown`: by whether the keys are spread."""

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
    """Look-ups come last: an upsert by `hbase` then pays for what its index has to follow of the one before."""
    size = turns.size
    if not size.is_brief:
        for is_spread in (False, True):  # not measured: the writer of a few files and Spark are warm then
            turns.upserts(Kind(_WARM_UP, spread=is_spread))
    upserts = {kind: turns.upserts(kind) for kind in size.kinds}
    turns.check()
    kinds = {
        kind: Measured(turns.look_ups(turns.rows_of(kind), spread=kind.spread), *upserted)
        for kind, upserted in upserts.items()
    }
    grown = {spread: turns.look_ups(size.grown, spread=spread) for spread in (False, True)} if is_grown else {}
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
    new: int = 0
    """Rows that the table has got since it was loaded."""

    def upserts(self, kind: Kind) -> Upserted:
        made, phases = list[Cost](), dict[str, float]()
        for _ in self._until_enough(lambda: made):
            self.number += 1
            self._prepare(self._batch(self.rows_of(kind), kind.spread))
            work = partial(self._upsert, phases)
            made.append(cost_of(self.spark, work, beside=self.beside))
        return Upserted(Cost.median(made), phases)

    def look_ups(self, count: int, *, spread: bool) -> LookUp:
        """Of other rows than were changed last, and others each time, so that caches do not have them from the time before; the table was loaded with each of them."""
        made = list[LookUp]()
        last_days = self._last_days(count)
        for _ in self._until_enough(lambda: [each.cost for each in made]):
            orders = rows.changed(
                self.table, count, days=self.size.days, spread=spread, number=-len(made), last_days=last_days
            )
            self._prepare(orders)
            made.append(look_up(self.spark, self.contender, self.folder, count, beside=self.beside))
        asked = sorted(each.asked_s for each in made)
        return LookUp(Cost.median([each.cost for each in made]), asked[len(asked) // 2])

    def rows_of(self, kind: Kind) -> int:
        return round(kind.share * self.table)

    def check(self) -> None:
        """No row is lost or doubled, and the last batch is there."""
        stored = self.spark.read.format("hudi").load((self.folder / "lake" / "orders").as_uri())
        is_new, is_last = f"note = '{NEW_NOTE}'", f"amount = {self.number + 0.5}"
        sums = (
            "count(*) as rows",
            "count(distinct id) as ids",
            f"count_if({is_new}) as new",
            f"count_if({is_last}) > 0 as has_last",
        )
        counts, wanted = stored.selectExpr(*sums).first(), self.table + self.new
        if counts is None or tuple(counts) != (wanted, wanted, self.new, True):
            raise AssertionError(
                f"{self.contender.name} left {counts} of {wanted} rows, {self.new} of them new, or not the last batch"
            )

    def _until_enough(self, made: Callable[[], Sequence[Cost]]) -> Iterator[None]:
        while len(made()) < self.size.turns and sum(cost.seconds for cost in made()) <= self.size.patience_s:
            yield

    def _batch(self, count: int, spread: bool) -> list[Order]:
        orders = batch(
            self.table,
            count,
            days=self.size.days,
            spread=spread,
            number=self.number,
            last_days=self._last_days(count),
            new_before=self.new,
        )
        self.new += count // NEW
        return orders

    def _last_days(self, count: int) -> int:
        return max(_LAST_DAYS, -(-2 * count * self.size.days // self.table))

    def _prepare(self, orders: Sequence[Order]) -> None:
        rows.to_parquet(self.folder / CHANGED, orders)
        self.contender.prepare(self.folder, orders)

    def _upsert(self, phases: dict[str, float]) -> None:
        phases.update(self.contender.upsert(self.spark, self.folder, self.number))


def tell(report: Report, table: int, measured: Mapping[str, Changes]) -> None:
    lines, phases = [], []
    for name, changes in measured.items():
        for kind, each in changes.kinds.items():
            upsert, asking = each.upsert, each.look_up
            asked = f"{asking.asked_s:.2f}" if each.phases else "-"
            lines.append(
                [
                    name,
                    str(kind),
                    asked,
                    f"{asking.cost.seconds:.2f}",
                    _mb(asking.cost.read),
                    f"{upsert.seconds:.2f}",
                    _mb(upsert.read),
                    _mb(upsert.written),
                    _mb(upsert.peak),
                ]
            )
            if each.phases:
                phases.append([name, str(kind), *(f"{each.phases.get(phase, 0):.2f}" for phase in _PHASES)])
            slug = f"{table}_{slug_of(name)}_{slug_of(str(kind))}"
            report.figure(f"{slug}_look_up_s", asking.cost.seconds)
            report.figure(f"{slug}_s", upsert.seconds)
            report.figure(f"{slug}_read_mb", upsert.read / 1e6)
            report.figure(f"{slug}_peak_mb", upsert.peak / 1e6)
    report.table(f"Batches into {table:,} rows, a fifth of each new", _HEADINGS, lines)
    report.table("Lakehub's seconds by phase", ["writer", "batch", *_PHASES], phases)


_HEADINGS = [
    "writer",
    "batch",
    "index asked, s",
    "look-up, s",
    "MB read",
    "whole upsert, s",
    "MB read",
    "MB written",
    "memory, MB",
]
_PHASES = ("index", "read", "judge", "write", "report", "total")


def slug_of(text: str) -> str:
    return "_".join(text.replace(",", "").replace("%", "percent").replace(".", "_").lower().split())


def _mb(count: float) -> str:
    return f"{count / 1e6:.1f}" if count < 1e7 else f"{count / 1e6:.0f}"
