"""One round: the writer writes, faults come, all is lifted, the instance comes to rest, everything is checked."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

from django.db import connection

from tests.soak.checks import CHECKS
from tests.soak.faults import Fault, all_faults
from tests.soak.log import Log, exceptions
from tests.soak.report import Round
from tests.soak.rest import wait_until_at_rest
from tests.soak.stand.onboarding import onboard_all
from tests.soak.stand.stage import Stage
from tests.soak.stand.waiting import NotInTime
from tests.soak.tally import Tally

WORK_S = (0.5, 6.0)
"""How long the instance has worked when a fault comes."""
MAX_LOG = 1_000_000
"""Bytes that a round may log."""


def play(stage: Stage, *, rounds: int, faults: str, rng: Random) -> Iterator[Round]:
    stage.instance.start()
    try:
        stage.wait_until(stage.instance.is_up, "the instance is up")
        _set_up(stage)
        wait_until_at_rest(stage)
        known = _possible_faults(stage, faults)
        deck: list[Fault] = []
        log = Log(stage.instance.log)
        log.next_part()
        for number in range(1, rounds + 1):
            yield play_round(stage, number, _draw(known, deck, rng), log, Random(rng.random()))
    finally:
        stage.instance.stop()


def _set_up(stage: Stage) -> None:
    onboard_all(
        lake=stage.instance.home / "lake",
        source_url=f"postgresql+psycopg://postgres@127.0.0.1:{stage.forwarder.port}/postgres",
        prices=stage.prices.folder,
        webhook=stage.receiver.url,
    )


def _possible_faults(stage: Stage, pattern: str) -> list[Fault]:
    """Those that match; what this machine or database lacks is said."""
    chosen = [fault for fault in all_faults() if re.search(pattern, fault.name)]
    for fault in chosen:
        if lacks := fault.missing(stage):
            print(f"Left out: {fault.name}, which {lacks}", flush=True)
    return [fault for fault in chosen if not fault.missing(stage)]


def _draw(known: Sequence[Fault], deck: list[Fault], rng: Random) -> list[Fault]:
    """One or two from a shuffled deck of all faults, so that each has its turn."""
    drawn = []
    for _ in range(rng.choice((1, 1, 2))):
        if not deck:
            deck += known
            rng.shuffle(deck)
        if drawn and (drawn[0].is_alone or deck[-1].is_alone):
            break
        drawn.append(deck.pop())
    return drawn


def play_round(stage: Stage, number: int, faults: list[Fault], log: Log, rng: Random) -> Round:
    before = Tally.of(stage)
    stage.source.resume()
    event = rng.choice((stage.source.plant_defect, stage.source.heal_defect, lambda: ""))()
    findings = _strike_all(stage, faults, rng)
    stage.source.pause()
    began, rest_s = time.monotonic(), None
    try:
        wait_until_at_rest(stage)
        rest_s = time.monotonic() - began
        findings += [finding for check in CHECKS for finding in check(stage)]
    except NotInTime as late:
        findings.append(str(late))
        # What it could not leave by itself is not to fail the rounds to come, too.
        stage.instance.terminate()
    finally:
        connection.close()
    findings += stage.instance.take_findings()
    findings += _log_findings(log.next_part(), faults)
    counts = Tally.of(stage).since(before)
    if counts["messages doubled"] and not any(fault.may_double for fault in faults):
        findings.append(f"{counts['messages doubled']} messages came twice")
    return Round(
        number, tuple(fault.name for fault in faults), (event,) if event else (), rest_s, counts, tuple(findings)
    )


def _strike_all(stage: Stage, faults: Sequence[Fault], rng: Random) -> list[str]:
    """Side by side, each at a moment of its own."""
    with ThreadPoolExecutor() as side_by_side:
        struck = [side_by_side.submit(_strike, stage, fault, Random(rng.random())) for fault in faults]
        return [finding for each in struck for finding in each.result()]


def _strike(stage: Stage, fault: Fault, rng: Random) -> list[str]:
    time.sleep(rng.uniform(*WORK_S) * stage.slowness)
    try:
        return [f"{fault.name}: {finding}" for finding in fault.strike(stage, rng)]
    except NotInTime as late:
        return [f"{fault.name}: {late}"]


def _log_findings(text: str, faults: Sequence[Fault]) -> Iterator[str]:
    """Exceptions that no fault explains, each once, and a log that grew too much."""
    explained = re.compile("|".join(fault.explains for fault in faults if fault.explains) or "(?!)")
    unexplained = Counter(each for each in exceptions(text) if not explained.search(each))
    yield from (f"logged {count} times: {exception[:400]}" for exception, count in unexplained.items())
    if len(text) > MAX_LOG:
        yield f"the log grew by {len(text):,} bytes"
