"""The same 20 checks on 3.4 million real flights: Lakehub, one query written by hand, and its peers, each as its users would.

Every contender has a process of its own, gets the same rows in the same files, and must come to the same results.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from math import isclose
from typing import Any

from bench import peers
from bench.flights import FlightTables, flight_tables
from bench.harness import Child, ChildFailed, Report, Timing, child, run
from bench.suite import ROWS_A_COPY, suite
from lakehub.setup.artifacts import ArtifactNotFetched
from lakehub.setup.locations import cache_folder

COPIES = 10


@dataclass(frozen=True)
class Contender:
    """`way` is what its module takes as ENGINE; contenders are compared with those on the same `engine`."""

    tool: str
    module: str
    way: str
    engine: str

    @property
    def label(self) -> str:
        return f"{self.tool} on {self.way}"

    @property
    def ours(self) -> bool:
        return self.module in ("floor", "lakehub")


FLOOR = Contender("hand-written query", "floor", "duckdb", "duckdb")
LAKEHUB = Contender("Lakehub", "lakehub", "duckdb", "duckdb")
LAKEHUB_ON_FILES = Contender("Lakehub", "lakehub", "files", "duckdb")
LAKEHUB_ON_SPARK = Contender("Lakehub", "lakehub", "spark", "spark")
GX = [
    Contender("Great Expectations", "gx", "pandas", "pandas"),
    Contender("Great Expectations", "gx", "pandas-loaded", "pandas"),
    Contender("Great Expectations", "gx", "duckdb", "duckdb"),
    Contender("Great Expectations", "gx", "spark", "spark"),
]
SODA = [Contender("Soda", "soda", "duckdb", "duckdb"), Contender("Soda", "soda", "spark", "spark")]
DEEQU = Contender("PyDeequ", "deequ", "spark", "spark")
CONTENDERS = [FLOOR, LAKEHUB, LAKEHUB_ON_FILES, SODA[0], *GX[:3], LAKEHUB_ON_SPARK, SODA[1], GX[3], DEEQU]


class Disagreement(AssertionError):
    """Two contenders found different things in the same rows: no time of theirs says anything."""


@dataclass(frozen=True)
class ContenderRun:
    version: str
    first: float
    timing: Timing
    processor: float
    """Seconds that all its threads worked, in the repeat with the least: what other work on the machine disturbs little."""
    results: dict[str, list[Any]]
    peak_mb: float


def main() -> int:
    return run("checks", bench, __doc__)


def bench(report: Report) -> None:
    copies = 1 if report.quick else COPIES
    data = flight_tables(copies)
    # A Spark session takes longer to start than a quick run may take.
    chosen = [FLOOR, LAKEHUB, LAKEHUB_ON_FILES, SODA[0], GX[0]] if report.quick else CONTENDERS
    if not report.quick:
        _install(report)
    ran, absent = _run_contenders(report, chosen, data, copies)
    require_agreement(ran, copies)
    report.print_line(
        f"\n{len(ran)} contenders found the same in {ROWS_A_COPY * copies:,} rows with {len(suite(copies))} checks."
    )
    report.table("Seconds from the data to 20 stored or returned results", HEADINGS, list(_rows(ran, absent)))
    for contender, result in ran.items():
        report.figure(f"{contender.module}_{contender.way}_processor_s".replace("-", "_"), result.processor)
    report_targets(report, {contender: result.timing.least for contender, result in ran.items()})


def _install(report: Report) -> None:
    try:
        peers.install()
    except (peers.PeersNotInstalled, ArtifactNotFetched) as problem:
        report.print_line(f"The peers {problem}")


def _run_contenders(
    report: Report, chosen: list[Contender], data: FlightTables, copies: int
) -> tuple[dict[Contender, ContenderRun], dict[Contender, str]]:
    ran: dict[Contender, ContenderRun] = {}
    absent: dict[Contender, str] = {}
    for contender in chosen:
        try:
            repeats = 2 if report.quick else 3 if contender.engine == "spark" else 5
            ran[contender] = _run_contender(contender, data, copies, repeats)
            report.print_line(f"{contender.label}: {ran[contender].timing.least:.2f} s")
        except (peers.PeersNotInstalled, ChildFailed) as problem:
            if contender.ours:
                raise
            absent[contender] = str(problem)
            report.print_line(f"{contender.label}: {problem}")
    return ran, absent


def _run_contender(contender: Contender, data: FlightTables, copies: int, repeats: int) -> ContenderRun:
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="lakehub-bench-"))
        python = sys.executable if contender.ours else str(peers.python())
        environ = {
            **peers.environ(),
            "PYSPARK_PYTHON": python,
            "LAKEHUB_HOME": home,
            "LAKEHUB_CACHE": str(cache_folder()),
            "LAKEHUB_LOG_LEVEL": "WARNING",
            "LAKEHUB_REUSE_RESULTS": "0",
            "TMPDIR": home,
        }
        command = [
            python,
            "-m",
            f"bench.contenders.{contender.module}",
            contender.way,
            str(data.plain.parent),
            copies,
            repeats,
        ]
        ended: Child = child([str(word) for word in command], environ=environ, timeout_s=900)
    output = ended.output
    return ContenderRun(
        output["version"],
        output["first"],
        Timing(tuple(output["seconds"])),
        output["processor"],
        output["found"],
        ended.peak_mb,
    )


def require_agreement(ran: dict[Contender, ContenderRun], copies: int) -> None:
    """Each outcome is the floor's, and so is each value that a tool gives."""
    right = ran[FLOOR].results
    for contender, result in ran.items():
        for check in suite(copies):
            passed, value = result.results[check.name]
            want_passed, want = right[check.name]
            if passed != want_passed or (value is not None and not isclose(value, want, rel_tol=1e-9, abs_tol=1e-9)):
                raise Disagreement(
                    f"`{check.name}`: {contender.label} found {passed}, {value}; the query {want_passed}, {want}."
                )


HEADINGS = ["contender", "version", "least", "median", "first", "x Lakehub", "processor", "MB"]


def _rows(ran: dict[Contender, ContenderRun], absent: dict[Contender, str]) -> Iterator[list[str]]:
    for contender in CONTENDERS:
        if contender in ran:
            result = ran[contender]
            base = ran.get(LAKEHUB_ON_SPARK if contender.engine == "spark" else LAKEHUB, result)
            timing = result.timing
            numbers = (timing.least, timing.median, result.first, timing.least / base.timing.least, result.processor)
            # The JVM's memory is not among what the machine counts for a process.
            memory = "-" if contender.engine == "spark" else f"{result.peak_mb:.0f}"
            yield [contender.label, result.version, *(f"{number:.2f}" for number in numbers), memory]
        elif contender in absent:
            yield [contender.label, f"not run: {absent[contender].splitlines()[0]}", *["-"] * 6]


def report_targets(report: Report, least: dict[Contender, float]) -> None:
    for contender, seconds in least.items():
        report.figure(f"{contender.module}_{contender.way}_s".replace("-", "_"), seconds)
    lakehub_seconds, floor = least[LAKEHUB], least[FLOOR]
    report.at_most("Lakehub over the hand-written query", lakehub_seconds / floor, 2, unit="x")
    if LAKEHUB_ON_FILES in least:
        report.at_most("the same on plain files", least[LAKEHUB_ON_FILES] / floor, 2, unit="x")
    for peer, seconds in least.items():
        counterpart_seconds = least.get(LAKEHUB_ON_SPARK if peer.engine == "spark" else LAKEHUB, lakehub_seconds)
        if not peer.ours and peer.engine in ("duckdb", "spark"):
            report.at_most(f"Lakehub over {peer.label}", counterpart_seconds / seconds, 1, unit="x")
        if peer.module in ("gx", "deequ") and peer.engine != "duckdb":
            report.at_least(f"{peer.label} over Lakehub", seconds / counterpart_seconds, 5, unit="x")


if __name__ == "__main__":
    sys.exit(main())
