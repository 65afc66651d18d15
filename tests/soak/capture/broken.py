"""`python -m tests.soak.capture.broken`: do the fault rounds fail where a line of the product is broken? Ends with 1 where they hold."""

from __future__ import annotations

import argparse
import re
import sys

from tests.soak.breaking import Break, play_broken
from tests.soak.capture.stand import CHANGELOGS

_TAKES_ROW = "            if number >= transaction.taken[topic]:"
_RECEIVES_MESSAGE = "                received[own].append(Received(each, place.sequence(each.partition, each.offset)))"
BREAKS = (
    Break(
        "dedupe: a tap that goes on within a transaction forgets which rows it has taken",
        "ingestion/capture/tap/tap.py",
        _TAKES_ROW,
        "            if number >= 0:",
        ("--seed", "61", "--rounds", "1", "--faults", "tap in a transaction", "--events", "add"),
        r"the changelog of visits has too often",
    ),
    Break(
        "capture: the tap passes a transaction of a table over, one of 100",
        "ingestion/capture/tap/tap.py",
        _TAKES_ROW,
        _TAKES_ROW.removesuffix(":") + " and transaction.facts.sequence % 100:",
        ("--seed", "62", "--rounds", "1", "--faults", "kill -9 follow", "--events", "add"),
        r"the changelog of \w+ lacks",
    ),
    Break(
        "merge: a change wins, whatever is there",
        "ingestion/domain/merging/merge.py",
        "        wins = event.force_update or all(event.version > version for version in versions)",
        "        wins = True",
        ("--seed", "63", "--rounds", "3", "--faults", "kill -9 follow", "--events", "repeat"),
        r"\d+ rows of the lake are others",
    ),
    Break(
        "checkpoint: a job goes on one message behind where it stood",
        "ingestion/heatpipe/reading.py",
        "    for message in log.read(topic, offsets):",
        "    for message in list(log.read(topic, offsets))[1:]:",
        ("--seed", "11", "--rounds", "3", "--faults", "kill -9 follow", "--events", "add"),
        r"rows of the lake are others|the history of riders lacks",
    ),
    Break(
        "misfits: the tap passes over what it cannot read",
        "ingestion/capture/tap/tap.py",
        "            messages = [self._rejected(table, transaction.gtid, number, change, unfit)]",
        "            messages = []",
        ("--seed", "64", "--rounds", "1", "--faults", "kill -9 follow", "--events", "misfits"),
        r"the changelog of riders lacks .*put aside",
    ),
    Break(
        "error table: what is published again wins over what came since",
        "ingestion/spark/changes/republishing.py",
        '            sequence = int(unencoded.transaction.rpartition("-")[2])',
        "            sequence = 2**40",
        ("--seed", "65", "--rounds", "1", "--faults", "kill -9 follow", "--events", "misfits"),
        r"riders: \d+ rows of the lake are others",
    ),
    Break(
        "cells: one that was added later wins",
        "ingestion/capture/tap/captured_cells.py",
        "            operation, (cell.row_key,), cell.ref_key, position, values, self.schema.version, transaction.at",
        "            operation, (cell.row_key,), transaction.sequence, position, values, self.schema.version, transaction.at",
        ("--seed", "66", "--rounds", "1", "--faults", "kill -9 follow", "--events", "add"),
        r"profiles: \d+ rows of the lake are others|the changelog of profiles has invented",
    ),
    Break(
        "dropped: the rows of a table that was dropped stay in the lake",
        "ingestion/capture/tap/tap.py",
        "        elif spec.topic not in self._stopped:",
        "        elif False:",
        ("--seed", "67", "--rounds", "3", "--faults", "kill -9 follow", "--events", "remake"),
        r"trips: \d+ rows of the lake are others",
    ),
    Break(
        "capture: the tap passes a message of a foreign topic over, whose key has later ones",
        "ingestion/capture/topics/topics_tap.py",
        _RECEIVES_MESSAGE,
        f"                if each.offset != 7:\n    {_RECEIVES_MESSAGE}",
        ("--changelog", "kafka", "--seed", "6", "--rounds", "1", "--faults", "kill -9 follow", "--events", "add"),
        r"the changelog of stock lacks",
    ),
    Break(
        "another primary key: the capture goes on",
        "ingestion/capture/tap/known_tables.py",
        "    if before.has_unique_rows and not now.has_unique_rows:",
        "    if False:",
        ("--seed", "68", "--rounds", "2", "--faults", "kill -9 follow", "--events", "key"),
        r"the capture of trips has stopped: not within",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.capture.broken", description=__doc__)
    parser.add_argument("--changelog", choices=CHANGELOGS, default="segments")
    parser.add_argument("--only", default="", help="a pattern: only lines whose names match it")
    options = parser.parse_args()
    chosen = [each for each in BREAKS if re.search(options.only, each.name)]
    return play_broken(chosen, ("tests.soak.capture", "--changelog", options.changelog, "--fail-fast"))


if __name__ == "__main__":
    sys.exit(main())
