"""What the benches share: repeats, readable tables, targets, and one JSON line for whoever compares runs.

A bench is a module with `main`, started as `python -m bench.checks [--quick]`:

    def main() -> int:
        return run("checks", bench, __doc__)

    def bench(report: Report) -> None:
        taken = timed(work, repeats=3)
        report.figure("lakehub_s", taken.median)
        report.at_most("lakehub over the floor", taken.median / floor, 2, unit="x")
        report.table("Seconds", ["tool", "s"], [["Lakehub", f"{taken.median:.2f}"]])

Where it ran and what it printed goes to docs/benchmarks.md by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from lakehub.setup.locations import cache_folder


@dataclass(frozen=True)
class Timing:
    """How long each repeat took, in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        """What the machine can do when nobody disturbs it."""
        return min(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)


def timed(work: Callable[[], object], *, repeats: int, warm_up: int = 0) -> Timing:
    """`work` done `warm_up` times unmeasured, then `repeats` times measured."""
    for _ in range(warm_up):
        work()
    return Timing(tuple(_took(work) for _ in range(repeats)))


def _took(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@dataclass(frozen=True)
class Target:
    """What was promised, and whether it was kept."""

    name: str
    want: str
    got: str
    met: bool


@dataclass
class Report:
    """What a bench has found out. `quick`: less data, so that the numbers show that it works, not how fast."""

    name: str
    quick: bool = False
    figures: dict[str, float] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    arguments: argparse.Namespace = field(default_factory=argparse.Namespace)
    """What the command line said, for the options of the bench's own."""
    out: TextIO = field(default_factory=lambda: sys.stdout)

    def figure(self, name: str, value: float) -> None:
        """A number under a name that stays the same from run to run."""
        self.figures[name] = round(value, 6)

    def at_most(self, name: str, got: float, want: float, *, unit: str = "") -> None:
        self.targets.append(Target(name, f"<= {_short(want)}{unit}", f"{_short(got)}{unit}", got <= want))

    def at_least(self, name: str, got: float, want: float, *, unit: str = "") -> None:
        self.targets.append(Target(name, f">= {_short(want)}{unit}", f"{_short(got)}{unit}", got >= want))

    def print_line(self, text: str = "") -> None:
        print(text, file=self.out, flush=True)

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.print_line(f"\n{title}\n\n{markdown(headings, rows)}")

    def line(self) -> str:
        """The whole report as one JSON object without a line break."""
        return json.dumps(
            {"bench": self.name, "figures": self.figures, "targets": [asdict(target) for target in self.targets]}
        )


def markdown(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table that reads well as text and as Markdown; numbers stand right."""
    lines = [list(map(str, headings)), *(list(map(str, row)) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(headings))]
    right = [bool(rows) and all(_is_number(line[place]) for line in lines[1:]) for place in range(len(headings))]
    ruler = [f"{'-' * (width - 1)}:" if number else "-" * width for width, number in zip(widths, right, strict=True)]
    padded = [
        [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, right, strict=True)
        ]
        for line in (lines[0], ruler, *lines[1:])
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def _is_number(text: str) -> bool:
    """Begins as a number does; an empty cell or a dash leaves its column as it is."""
    return text in ("", "-") or text.lstrip("+-<>= ")[:1].isdigit()


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"


def machine() -> str:
    """The machine in one line, as the documentation names it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def run(
    name: str,
    bench: Callable[[Report], None],
    about: str | None,
    *,
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> int:
    """The bench from the command line to the last line. Missed targets are in the report, not in the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=(about or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less data: under 50 s on two cores")
    options(parser)
    arguments = parser.parse_args()
    report = Report(name, quick=arguments.quick, arguments=arguments)
    report.print_line(
        f"bench.{name}{' --quick' if report.quick else ''}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine()}"
    )
    begun = time.perf_counter()
    bench(report)
    if report.targets:
        rows = [[target.name, target.want, target.got, "yes" if target.met else "NO"] for target in report.targets]
        report.table("Targets", ["target", "want", "got", "met"], rows)
    report.print_line(f"\n{time.perf_counter() - begun:.0f} s in all")
    report.print_line(report.line())
    return 0


class ChildFailed(RuntimeError):
    """A process of a bench ended without its result; says what it wrote last."""


@dataclass(frozen=True)
class Child:
    """What a process of its own printed as its last line, and the most memory that one of its processes had."""

    output: dict[str, Any]
    peak_mb: float


def child(command: Sequence[str | Path], *, environ: Mapping[str, str], timeout_s: float) -> Child:
    """Runs `command`, whose last line of output is a JSON object. Raises ChildFailed."""
    words = [str(word) for word in command]
    watched = [sys.executable, "-c", _WATCH, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        watched, env=dict(environ), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            out, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise ChildFailed(f"{words[0]} did not end within {timeout_s:.0f} s.") from None
        except BaseException:
            _end(process)
            raise
    lines = [line for line in out.splitlines() if line.strip()]
    if process.returncode or len(lines) < 2:
        raise ChildFailed(f"{' '.join(words[:4])} ended with {process.returncode}:\n{(errors or out)[-2000:]}")
    return Child(json.loads(lines[-2]), float(lines[-1]) / 1024)


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it has started, such as a JVM."""
    os.killpg(process.pid, signal.SIGKILL)


_WATCH = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print("\\n%d" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def cached(name: str) -> Path:
    """A folder for what a bench makes once: below the cache of the project."""
    folder = cache_folder() / "bench" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
