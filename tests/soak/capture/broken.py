"""`python -m tests.soak.capture.broken`: do the fault rounds fail where a line of the product is broken? Each is broken in a copy of this tree; ends with 1 where its rounds hold."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehub.setup.artifacts import PROJECT_ROOT
from tests.soak.capture.stand import CHANGELOGS

_LINKED = (".venv", ".cache")
"""Of the tree, and not in git."""


@dataclass(frozen=True)
class Break:
    """`line` of `file`, which has it once, becomes `broken`. `rounds`: the arguments that show it. `finding`: a pattern of what the rounds say then."""

    name: str
    file: str
    line: str
    broken: str
    rounds: tuple[str, ...]
    finding: str


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
    held = 0
    chosen = [each for each in BREAKS if re.search(options.only, each.name)]
    for each in chosen:
        require_line(PROJECT_ROOT / each.file, each)
    for each in chosen:
        problem = _problem(each, options.changelog)
        held += bool(problem)
        print(f"{'HELD' if problem else 'failed, as it must'}  {each.name}{problem}", flush=True)
    return 1 if held else 0


def _problem(broken: Break, changelog: str) -> str:
    """Empty: the rounds found it."""
    folder = Path(tempfile.mkdtemp(prefix="lakehub-broken-"))
    scratch = folder / "tmp"
    scratch.mkdir()
    # MariaDB runs as a user of its own, with temporary files.
    folder.chmod(0o755)
    scratch.chmod(0o1777)
    _copy_tree(folder)
    _break_line(folder / broken.file, broken)
    command = [sys.executable, "-m", "tests.soak.capture", "--changelog", changelog, "--fail-fast", *broken.rounds]
    env = os.environ | {"TMPDIR": str(scratch)}
    played = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    finding = re.search(rf".*(?:{broken.finding}).*", played.stdout)
    if played.returncode != 1 or finding is None:
        (folder / "output").write_text(played.stdout + played.stderr)
        return f": ended with {played.returncode}, and not by {broken.finding!r}: {folder}/output"
    print(f"  {finding[0].strip()[:300]}", flush=True)
    shutil.rmtree(folder)
    return ""


def _copy_tree(folder: Path) -> None:
    """With what is changed and not committed yet."""
    for name in _files():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT_ROOT / name, target)
    for name in _LINKED:
        (folder / name).symlink_to((PROJECT_ROOT / name).resolve())


def _files() -> Sequence[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (PROJECT_ROOT / name).is_file()]


def require_line(file: Path, broken: Break) -> None:
    """Once, so that nothing else is broken. Raises SystemExit."""
    times = file.read_text().splitlines().count(broken.line)
    if times != 1:
        raise SystemExit(f"{broken.file} has this line {times} times, and not once: {broken.line.strip()}")


def _break_line(file: Path, broken: Break) -> None:
    lines = [broken.broken if line == broken.line else line for line in file.read_text().splitlines()]
    file.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    sys.exit(main())
