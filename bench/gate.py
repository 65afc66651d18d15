"""The gate under load, beside a plain Django view with the same authentication and one SELECT, on the server that `up` runs.

Closed loop: as many answers as the server can give. Open loop: half as many questions a second as the gate could answer just
before, 200 at most, whatever comes back; a latency runs from the moment at which the question was meant to go. Both in turns, so
that gate and view meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.harness import ChildFailed, Report, run
from bench.schedule import instance
from bench.serving.load import Load, Turn
from bench.serving.server import free_address, wait_until_ready

MAX_RATE, SHARE_OF_CLOSED_LOOP = 200, 0.5
"""Of the open loop. A rate near what a slow day's machine can answer would measure the queue before it."""
GATE, PLAIN, API = "/api/v1/gate", "/yardstick/plain", "/yardstick/api"
SETTINGS = "bench.serving.settings"


@dataclass(frozen=True)
class Size:
    datasets: int
    incidents: int
    turns: int
    """Of each address, in the closed loop."""
    turn_s: float
    open_turns: int
    open_turn_s: float


FULL, QUICK = Size(2_000, 100_000, 60, 0.5, 24, 2.0), Size(200, 5_000, 24, 0.25, 6, 1.2)


def main() -> int:
    return run("gate", bench, __doc__, options=_options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--connections", type=int, default=4, help="of the closed loop")


def bench(report: Report) -> None:
    size = QUICK if report.quick else FULL
    with instance(report.arguments.database, settings=SETTINGS) as home:
        from bench.serving import fleet

        begun, now = time.monotonic(), datetime.now(UTC)
        tokens = fleet.build(size.datasets, size.incidents, now=now)
        _analyze()
        report.print_line(
            f"{size.datasets:,} datasets, {size.incidents:,} incidents made in {time.monotonic() - begun:.0f} s"
        )
        with _server(home) as address:
            questions = _questions(size.datasets, tokens, now)
            _check(address, questions[GATE])
            most = _closed_loop(report, address, questions, size)
            _open_loop(report, address, questions, size, rate=round(min(MAX_RATE, SHARE_OF_CLOSED_LOOP * most)))


def _analyze() -> None:
    """Statistics for the planner, as autovacuum would have made them."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


@contextmanager
def _server(home: Path) -> Iterator[tuple[str, int]]:
    """The `web` line of the Procfile, as `manage.py up` runs it."""
    from lakehub.processes.commands import process_commands, process_environment

    address = free_address()
    env = process_environment(f"127.0.0.1:{address[1]}")
    line = os.path.expandvars(_with_defaults(process_commands(["web"])["web"], env))
    with (home / "web.log").open("wb") as log:
        process = subprocess.Popen(shlex.split(line), env=env, stdout=log, stderr=log)
    try:
        wait_until_ready(address, process, home / "web.log")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _with_defaults(line: str, env: dict[str, str]) -> str:
    """`${NAME:-default}` as a shell reads it."""
    out = subprocess.run(["sh", "-c", f"echo {line}"], env=env, capture_output=True, text=True, check=True)
    return out.stdout.strip()


def _questions(datasets: int, tokens: Sequence[str], now: datetime) -> dict[str, list[str]]:
    """Whole requests by address: one to seven of the last days of some dataset, by some consumer."""
    chance = random.Random(7)
    requests: dict[str, list[str]] = {GATE: [], PLAIN: [], API: []}
    for number in range(2_000):
        end = now - timedelta(days=chance.randrange(1, 20))
        start = end - timedelta(days=chance.randrange(1, 8))
        query = f"dataset=flights_{chance.randrange(datasets):04}&from={start:%Y-%m-%d}&to={end:%Y-%m-%d}"
        for address, texts in requests.items():
            texts.append(
                f"GET {address}?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {tokens[number % len(tokens)]}\r\n\r\n"
            )
    return requests


def _check(address: tuple[str, int], questions: Sequence[str]) -> None:
    """The answers are right: every verdict that there is to expect comes back, with reasons."""
    verdicts: set[str] = set()
    for text in questions[:300]:
        path, _, rest = text.removeprefix("GET ").partition(" ")
        token = rest.partition("Authorization: ")[2].strip()
        request = urllib.request.Request(f"http://127.0.0.1:{address[1]}{path}", headers={"Authorization": token})
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - an address of our own
            body = json.load(answer)
        assert body["reasons"]
        assert body["allowed"] == (body["verdict"] == "pass"), body
        verdicts.add(body["verdict"])
    assert verdicts == {"pass", "fail"}, verdicts


def _run_load(load: Load) -> dict[str, list[Turn]]:
    """The turns by address. Sent by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.serving.load"],
        input=json.dumps(vars(load)),
        capture_output=True,
        text=True,
        timeout=len(load.requests) * load.turns * load.turn_s + 60,
        check=False,
    )
    if done.returncode:
        raise ChildFailed(done.stderr[-2000:])
    turns: dict[str, list[Turn]] = {where: [] for where in load.requests}
    for turn in map(_turn, json.loads(done.stdout)):
        if set(turn.statuses) != {"200"}:
            raise ChildFailed(f"Not every question was answered: {turn.statuses}")
        turns[turn.of].append(turn)
    return turns


def _turn(fields: dict[str, Any]) -> Turn:
    return Turn(**fields)


def _closed_loop(report: Report, address: tuple[str, int], questions: dict[str, list[str]], size: Size) -> float:
    """How many questions the gate answers a second."""
    connections = report.arguments.connections
    _run_load(Load(address, questions, turns=3, turn_s=0.3, connections=connections))  # each process builds its caches
    turns = _run_load(Load(address, questions, size.turns, size.turn_s, connections))
    rates = {where: [len(turn.latencies) / turn.seconds for turn in own] for where, own in turns.items()}
    median = {where: statistics.median(turn_rates) for where, turn_rates in rates.items()}
    share = {where: _median_ratio(rates[GATE], turn_rates) for where, turn_rates in rates.items()}
    names = {GATE: "the gate", PLAIN: "a Django view", API: "a view of the API"}
    rows = [
        [names[where], f"{median[where]:.0f}", f"{max(rates[where]):.0f}", f"{share[where]:.2f}"]
        for where in (PLAIN, API, GATE)
    ]
    report.table(
        f"Closed loop, {connections} connections, medians of {size.turns} turns",
        ["", "answers/s", "best turn", "gate's share"],
        rows,
    )
    for where, name in ((GATE, "gate"), (PLAIN, "django"), (API, "api")):
        report.figure(f"{name}_per_s", median[where])
    report.at_least(
        "gate over a Django view with the same authentication and one SELECT",
        share[PLAIN],
        0.5,
        unit="x",
    )
    return median[GATE]


def _median_ratio(of_gate: Sequence[float], of_other: Sequence[float]) -> float:
    """Of turns that follow each other, so that both had the same of a machine that does other work as well."""
    return statistics.median(gate / other for gate, other in zip(of_gate, of_other, strict=True))


def _open_loop(
    report: Report, address: tuple[str, int], questions: dict[str, list[str]], size: Size, *, rate: int
) -> None:
    """The gate and the plain view in turns, so that a hiccup of the machine is nobody's; of each turn its own quantiles."""
    compared = {where: questions[where] for where in (GATE, PLAIN)}
    turns = {
        where: [_quantiles(turn) for turn in own]
        for where, own in _run_load(
            Load(address, compared, size.open_turns, size.open_turn_s, connections=32, rate=rate)
        ).items()
    }
    medians = {
        where: {f"p{place}": statistics.median(turn[place - 1] for turn in cuts) for place in (50, 90, 99)}
        for where, cuts in turns.items()
    }
    ratios = {
        f"p{place}": _median_ratio(*([turn[place - 1] for turn in turns[where]] for where in (GATE, PLAIN)))
        for place in (50, 90, 99)
    }
    rows = [
        [name, f"{medians[PLAIN][name]:.1f}", f"{medians[GATE][name]:.1f}", f"{ratio:.1f}"]
        for name, ratio in ratios.items()
    ]
    report.table(
        f"Open loop, {rate} questions a second from the intended send, medians of {size.open_turns} turns of {size.open_turn_s} s, ms",
        ["", "a Django view", "the gate", "gate over view"],
        rows,
    )
    report.figure("open_rate_per_s", rate)
    for where, name in ((GATE, "gate"), (PLAIN, "django")):
        for quantile, value in medians[where].items():
            report.figure(f"open_{name}_{quantile}_ms", value)
    report.at_most("p99 of the gate over that of the view at the same rate", ratios["p99"], 3, unit="x")


def _quantiles(turn: Turn) -> list[float]:
    """In milliseconds, from the 1st to the 99th."""
    return statistics.quantiles([1000 * latency for latency in turn.latencies], n=100, method="inclusive")


if __name__ == "__main__":
    sys.exit(main())
