"""`python -m tests.soak.capture --rounds 3 --seed 7 --changelog both`: fault rounds for captured tables; ends with 1 where a check failed."""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tests.soak.capture.stand import BRIEF, CHANGELOGS, stand
from tests.soak.report import Round, table
from tests.soak.stand.instance import set_django_up


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.capture", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--changelog", choices=(*CHANGELOGS, "both"), default="both")
    parser.add_argument("--faults", default="", help="a pattern: only faults whose names match it")
    parser.add_argument("--events", default="", help="a pattern: only such events: add, rename, drop, load, repeat ...")
    parser.add_argument("--fail-fast", action="store_true", help="end with the first round that fails")
    options = parser.parse_args()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    patterns = {"faults": options.faults, "events": options.events}
    if options.changelog != "both":
        return play_on(options.changelog, options.rounds, seed, patterns, fail_fast=options.fail_fast)
    command = [sys.executable, "-m", "tests.soak.capture", "--rounds", str(options.rounds), "--seed", str(seed)]
    command += [word for name, pattern in patterns.items() for word in (f"--{name}", pattern)]
    command += ["--fail-fast"] if options.fail_fast else []
    # Settings are read once a process.
    return max(subprocess.run([*command, "--changelog", each], check=False).returncode for each in CHANGELOGS)


def play_on(changelog: str, rounds: int, seed: int, patterns: Mapping[str, str], *, fail_fast: bool) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    random, folder = Random(f"{changelog} {seed}"), Path(tempfile.mkdtemp(prefix=f"lakehub-capture-{changelog}-"))
    print(f"Changelog {changelog}, seed {seed}, {rounds} rounds", flush=True)
    played: list[Round] = []
    with stand(changelog, folder, random, **BRIEF) as standing:
        set_django_up(standing.instance.environment)
        from tests.soak.capture.rounds import Wanted, play

        for each in play(standing, Wanted(rounds, **patterns), random):
            print(each, flush=True)
            played.append(each)
            if fail_fast and each.findings:
                break
    has_failed = len(played) < rounds or any(each.findings for each in played)
    print(f"\nChangelog {changelog}, seed {seed}\n\n{table(played)}\n", flush=True)
    if has_failed:
        print(f"The instance's log and folder are kept: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
