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
from bench.flights import Data, made
from bench.harness import Child, ChildFailed, Report, Timing, child, run
from bench.suite import ROWS_A_COPY, suite
from lakehub.setup.artifacts import NotFetched
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
class Ran:
    version: str
    first: float
    timing: Timing
    processor: float
    """Seconds that all its threads worked, in the repeat with the least: what other work on the machine disturbs little."""
    found: dict[str, list[Any]]
    peak_mb: float


def main() -> int:
    return run("checks", bench, __doc__)


def bench(report: Report) -> None:
    copies = 1 if report.quick else COPIES
    data = made(copies)
    # A Spark session takes longer to start than a quick run may take.
    chosen = [FLOOR, LAKEHUB, LAKEHUB_ON_FILES, SODA[0], GX[0]] if report.quick else CONTENDERS
    if not report.quick:
        _install(report)
    ran, absent = _race(report, chosen, data, copies)
    agree(ran, copies)
    report.say(
        f"\n{len(ran)} contenders found the same in {ROWS_A_COPY * copies:,} rows with {len(suite(copies))} checks."
    )
    report.table("Seconds from the data to 20 stored or returned results", HEADINGS, list(_rows(ran, absent)))
    for one, result in ran.items():
        report.figure(f"{one.module}_{one.way}_processor_s".replace("-", "_"), result.processor)
    targets(report, {one: result.timing.least for one, result in ran.items()})


def _install(report: Report) -> None:
    try:
        peers.install()
    except (peers.NoPeers, NotFetched) as problem:
        report.say(f"The peers {problem}")


def _race(
    report: Report, chosen: list[Contender], data: Data, copies: int
) -> tuple[dict[Contender, Ran], dict[Contender, str]]:
    ran: dict[Contender, Ran] = {}
    absent: dict[Contender, str] = {}
    for one in chosen:
        try:
            repeats = 2 if report.quick else 3 if one.engine == "spark" else 5
            ran[one] = _run(one, data, copies, repeats)
            report.say(f"{one.label}: {ran[one].timing.least:.2f} s")
        except (peers.NoPeers, ChildFailed) as problem:
            if one.ours:
                raise
            absent[one] = str(problem)
            report.say(f"{one.label}: {problem}")
    return ran, absent


def _run(one: Contender, data: Data, copies: int, repeats: int) -> Ran:
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="lakehub-bench-"))
        python = sys.executable if one.ours else str(peers.python())
        environ = {
            **peers.environ(),
            "PYSPARK_PYTHON": python,
            "LAKEHUB_HOME": home,
            "LAKEHUB_CACHE": str(cache_folder()),
            "LAKEHUB_LOG_LEVEL": "WARNING",
            "LAKEHUB_REUSE_RESULTS": "0",
            "TMPDIR": home,
        }
        command = [python, "-m", f"bench.contenders.{one.module}", one.way, str(data.plain.parent), copies, repeats]
        ended: Child = child([str(word) for word in command], environ=environ, timeout_s=900)
    said = ended.said
    return Ran(
        said["version"], said["first"], Timing(tuple(said["seconds"])), said["processor"], said["found"], ended.peak_mb
    )


def agree(ran: dict[Contender, Ran], copies: int) -> None:
    """Each outcome is the floor's, and so is each value that a tool gives."""
    right = ran[FLOOR].found
    for one, result in ran.items():
        for check in suite(copies):
            passed, value = result.found[check.name]
            want_passed, want = right[check.name]
            if passed != want_passed or (value is not None and not isclose(value, want, rel_tol=1e-9, abs_tol=1e-9)):
                raise Disagreement(
                    f"`{check.name}`: {one.label} found {passed}, {value}; the query {want_passed}, {want}."
                )


HEADINGS = ["contender", "version", "least", "median", "first", "x Lakehub", "processor", "MB"]


def _rows(ran: dict[Contender, Ran], absent: dict[Contender, str]) -> Iterator[list[str]]:
    for one in CONTENDERS:
        if one in ran:
            result = ran[one]
            base = ran.get(LAKEHUB_ON_SPARK if one.engine == "spark" else LAKEHUB, result)
            timing = result.timing
            numbers = (timing.least, timing.median, result.first, timing.least / base.timing.least, result.processor)
            # The JVM's memory is not among what the machine counts for a process.
            memory = "-" if one.engine == "spark" else f"{result.peak_mb:.0f}"
            yield [one.label, result.version, *(f"{number:.2f}" for number in numbers), memory]
        elif one in absent:
            yield [one.label, f"not run: {absent[one].splitlines()[0]}", *["-"] * 6]


def targets(report: Report, least: dict[Contender, float]) -> None:
    for one, seconds in least.items():
        report.figure(f"{one.module}_{one.way}_s".replace("-", "_"), seconds)
    ours, floor = least[LAKEHUB], least[FLOOR]
    report.at_most("Lakehub over the hand-written query", ours / floor, 2, unit="x")
    if LAKEHUB_ON_FILES in least:
        report.at_most("the same on plain files", least[LAKEHUB_ON_FILES] / floor, 2, unit="x")
    for peer, seconds in least.items():
        mine = least.get(LAKEHUB_ON_SPARK if peer.engine == "spark" else LAKEHUB, ours)
        if not peer.ours and peer.engine in ("duckdb", "spark"):
            report.at_most(f"Lakehub over {peer.label}", mine / seconds, 1, unit="x")
        if peer.module in ("gx", "deequ") and peer.engine != "duckdb":
            report.at_least(f"{peer.label} over Lakehub", seconds / mine, 5, unit="x")


if __name__ == "__main__":
    sys.exit(main())
