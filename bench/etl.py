"""A modelled table brought up to date after a day's change of its inputs: by full recompute, by a look-back of some days, and incrementally, by rows and by whole partitions.

Two pipelines read 1, 4 and 16 million trips in 100 partitions by day: a wide table that joins each trip with its driver and city, and the sums of each city by day. A day's change brings as many rows
as a day has, and updates, deletes and late rows in older partitions, 4 % of the rows in all (1 % where only the newest partition is touched). Each way begins with the same files, in one Spark session of two cores. The full
recompute is one Spark job that writes no shuffle and sorts nothing; the incremental ways are the job of the product, which the pipeline tells by its `operation` what to write.

Memory over time is the heap in use, garbage included, and that of the Python process, beyond what both had after a collection before. *Correct after* is the time from the change to a table that equals the
SELECT, without what a schedule adds: once as it goes, once with all Spark jobs of the run stopped after half of its time, and the run begun again. A look-back that misses rows never gets there.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.harness import Report, run, timed
from bench.modelling import trips
from bench.modelling.day_change import DayChange, day_change
from bench.modelling.lake_copies import copied
from bench.modelling.meters import Cost, EndedBefore, JobFailed, measure, seconds_with_failure
from bench.modelling.savings import break_even, saved
from bench.modelling.truth import Truth
from bench.modelling.ways import Way, full, incremental, look_back, whole_partitions
from bench.writing.sessions import session
from tests.spark.pipeline_lake import PipelineLake

JUDGED, JUDGED_TOUCHED, JUDGED_WAY = "wide", 0.1, whole_partitions()
INCREMENTAL = (incremental(), whole_partitions())
TARGETS = {
    "run time": 82.0,
    "core-seconds": 59.0,
    "memory-seconds": 73.0,
    "time to a correct table, with a failure": 60.0,
}
"""Per cent less than a full recompute, of the largest table with 10 % of its partitions touched."""


@dataclass(frozen=True)
class Size:
    """`touched`: shares of the partitions. `look_backs`: in days."""

    rows: tuple[int, ...]
    touched: tuple[float, ...] = (0.01, 0.1, 0.5, 1.0)
    days: int = 100
    pipelines: tuple[str, ...] = ("wide", "daily")
    look_backs: tuple[int, ...] = (3, 7)
    warm_up_rows: int = 100_000
    is_brief: bool = False
    """Without failures."""

    @property
    def ways(self) -> list[Way]:
        return [full(), *(look_back(days, self.days) for days in self.look_backs), *INCREMENTAL]


FULL = Size((1_000_000, 4_000_000, 16_000_000))
QUICK = Size((6_000,), (0.1,), days=30, pipelines=("wide",), look_backs=(1,), warm_up_rows=0, is_brief=True)


class Result(NamedTuple):
    """`with_failure_s` None: it misses rows, and does so then too, or a quick run leaves it out."""

    cost: Cost
    with_failure_s: float | None
    missed: int
    phases: dict[str, float]


Results = dict[tuple[int, str, float, str], Result]
"""By rows, pipeline, share of partitions and way."""


def main() -> int:
    return run("etl", bench, __doc__, options=_options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, action="append", help="of a table, instead of the usual: hundreds")
    parser.add_argument(
        "--touched", type=float, action="append", help="share of the partitions, such as 0.1, instead of the usual"
    )
    parser.add_argument("--pipeline", choices=trips.PIPELINES, help="only this one")


def bench(report: Report) -> None:
    size = _chosen(QUICK if report.quick else FULL, report.arguments)
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="lakehub-bench-etl-") as name, session() as spark:
        empty = PipelineLake(spark, Path(name), trips.TABLES, trips.PIPELINES)
        if size.warm_up_rows:
            warm_up = replace(size, rows=(size.warm_up_rows,), touched=(JUDGED_TOUCHED,))
            _measure_table(
                Report("warm-up"), replace(empty, folder=empty.folder / "warm-up"), size.warm_up_rows, warm_up
            )
        for rows in size.rows:
            lake = replace(empty, folder=empty.folder / f"{rows}")
            results |= _measure_table(report, lake, rows, size)
            for pipeline in size.pipelines:
                _tell(report, results, rows, pipeline, size)
    _judge(report, results, size)


def _chosen(size: Size, arguments: argparse.Namespace) -> Size:
    return replace(
        size,
        rows=tuple(sorted(arguments.rows or size.rows)),
        touched=tuple(sorted(arguments.touched or size.touched)),
        pipelines=size.pipelines if arguments.pipeline is None else (arguments.pipeline,),
    )


def _measure_table(report: Report, lake: PipelineLake, rows: int, size: Size) -> Results:
    results: Results = {}
    trips.make_tables(lake, rows, size.days)
    for pipeline in size.pipelines:
        loaded = timed(partial(_load, lake, pipeline), repeats=1)
        report.print_line(f"{rows:,} trips: `{pipeline}` loaded in {loaded.median:.0f} s")
    for touched in size.touched:
        change = day_change(days=size.days, rows=rows, touched=touched)
        with copied(lake) as changed:
            trips.apply(changed, change)
            for pipeline in size.pipelines:
                truth = Truth.of(changed, pipeline)
                is_judged = (rows, pipeline, touched) == (max(size.rows), JUDGED, JUDGED_TOUCHED)
                repeats = 3 if is_judged and not size.is_brief else 1
                for way in size.ways:
                    result = _measure_way(changed, pipeline, way, truth, repeats, is_brief=size.is_brief)
                    results[rows, pipeline, touched, way.name] = result
                    report.print_line(_summary(rows, pipeline, change, touched, way, result))
    return results


def _load(lake: PipelineLake, pipeline: str) -> None:
    report = lake.run("bootstrap", pipeline)
    if report.error is not None:
        raise JobFailed(report.error)


def _measure_way(
    changed: PipelineLake, pipeline: str, way: Way, truth: Truth, repeats: int, *, is_brief: bool
) -> Result:
    """Of several times the one in the middle, and the most rows that were missed."""
    times = list[Result]()
    for _ in range(repeats):
        with copied(changed) as lake:
            cost = measure(lake.spark, partial(way.update, lake, pipeline))
            times.append(Result(cost, None, truth.rows_missed(lake), dict(way.phases)))
    middle = sorted(times, key=lambda each: each.cost.seconds)[len(times) // 2]
    missed = max(each.missed for each in times)
    if missed or is_brief:
        return middle._replace(missed=missed)
    seconds = _seconds_with_failure(changed, pipeline, way, truth, middle.cost.seconds)
    return middle._replace(with_failure_s=seconds)


def _seconds_with_failure(changed: PipelineLake, pipeline: str, way: Way, truth: Truth, seconds: float) -> float:
    """Stopped after half of its time, which is less than it was where the JVM has become quicker since."""
    while True:
        with copied(changed) as lake:
            try:
                taken = seconds_with_failure(lake.spark, partial(way.update, lake, pipeline), after_s=seconds / 2)
            except EndedBefore as ended:
                seconds = min(seconds, ended.seconds) * 0.8
                continue
            if missed := truth.rows_missed(lake):
                raise AssertionError(f"After a failure {way.name} of `{pipeline}` has {missed:,} wrong rows")
            return taken


def _summary(rows: int, pipeline: str, change: DayChange, touched: float, way: Way, result: Result) -> str:
    """As soon as it is known."""
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in result.phases.items())
    return (
        f"{rows:,} trips, {100 * touched:g} % of partitions, {100 * change.share:.1f} % of rows changed, `{pipeline}`, {way.name}: {result.cost.seconds:.1f} s, "
        f"{result.cost.core_s:.1f} core s, {result.cost.jobs:.0f} Spark jobs, {result.missed:,} rows missed"
        + (f" ({phases})" if phases else "")
    )


_HEADINGS = [
    "partitions touched",
    "way",
    "s",
    "core s",
    "memory, GiB s",
    "MB read",
    "MB written",
    "correct after, s",
    "with a failure, s",
    "rows missed",
]


def _tell(report: Report, results: Results, rows: int, pipeline: str, size: Size) -> None:
    lines = []
    for touched in size.touched:
        for way in size.ways:
            result = results[rows, pipeline, touched, way.name]
            cost, after = result.cost, result.with_failure_s
            numbers = [cost.seconds, cost.core_s, cost.memory_gib_s, cost.read / 1e6, cost.written / 1e6]
            correct = (
                ["never", "never"]
                if result.missed
                else [f"{cost.seconds:.1f}", "-" if after is None else f"{after:.1f}"]
            )
            lines.append(
                [
                    f"{100 * touched:g} %",
                    way.name,
                    *(f"{number:,.1f}" for number in numbers),
                    *correct,
                    f"{result.missed:,}",
                ]
            )
            slug = f"{rows}_{pipeline}_{100 * touched:g}_percent_{_slug(way.name)}"
            report.figure(f"{slug}_s", cost.seconds)
            report.figure(f"{slug}_core_s", cost.core_s)
            report.figure(f"{slug}_memory_gib_s", cost.memory_gib_s)
            report.figure(f"{slug}_missed", result.missed)
            if after is not None:
                report.figure(f"{slug}_with_failure_s", after)
    report.table(f"`{pipeline}`, {rows:,} trips in {size.days} partitions", _HEADINGS, lines)
    _tell_break_even(report, results, rows, pipeline, size)


def _tell_break_even(report: Report, results: Results, rows: int, pipeline: str, size: Size) -> None:
    for ours in INCREMENTAL:
        ratios = []
        for touched in size.touched:
            taken = [results[rows, pipeline, touched, way.name].cost.seconds for way in (full(), ours)]
            ratios.append((touched, taken[1] / taken[0]))
        even = break_even(ratios)
        if even is not None:
            report.figure(f"{rows}_{pipeline}_{_slug(ours.name)}_break_even_percent", 100 * even)
        report.print_line(f"`{pipeline}`, {rows:,} trips, {ours.name}: {_where_it_pays(ratios, even)}")


def _where_it_pays(ratios: Sequence[tuple[float, float]], even: float | None) -> str:
    if even is None:
        return "quicker at each share measured"
    if even == ratios[0][0]:
        return "quicker at none of the shares measured"
    return f"quicker up to {100 * even:.0f} % of the partitions"


def _judge(report: Report, results: Results, size: Size) -> None:
    """Nothing where a quick run or the options left out what is judged."""
    savings = {
        rows: _savings(
            results[rows, JUDGED, JUDGED_TOUCHED, full().name],
            results[rows, JUDGED, JUDGED_TOUCHED, JUDGED_WAY.name],
        )
        for rows in size.rows
        if not size.is_brief and (rows, JUDGED, JUDGED_TOUCHED, JUDGED_WAY.name) in results
    }
    if not savings:
        return
    smallest, largest = min(savings), max(savings)
    for name, wanted in TARGETS.items():
        report.at_least(
            f"less {name}, {largest:,} trips, {100 * JUDGED_TOUCHED:g} % of partitions",
            savings[largest][name],
            wanted,
            unit=" %",
        )
    if largest > smallest:
        grown = savings[largest]["run time"] - savings[smallest]["run time"]
        report.at_least(f"points more of run time saved, {smallest:,} to {largest:,} trips", grown, 0)


def _savings(whole: Result, ours: Result) -> dict[str, float]:
    """In per cent, by the names of the targets."""
    assert whole.with_failure_s is not None
    assert ours.with_failure_s is not None
    pairs: Sequence[tuple[float, float]] = [
        (whole.cost.seconds, ours.cost.seconds),
        (whole.cost.core_s, ours.cost.core_s),
        (whole.cost.memory_gib_s, ours.cost.memory_gib_s),
        (whole.with_failure_s, ours.with_failure_s),
    ]
    return {name: 100 * saved(of, now) for name, (of, now) in zip(TARGETS, pairs, strict=True)}


def _slug(text: str) -> str:
    return "_".join(text.replace(",", "").replace("-", "_").lower().split())


if __name__ == "__main__":
    raise SystemExit(main())
