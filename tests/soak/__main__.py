"""`python -m tests.soak --rounds 5 --seed 7 --database both`: fault rounds; ends with 1 where a check failed.

Without `--seed` a fresh one is drawn and printed. Each database is played in a process of its own, with mounts of its own
where this machine allows that.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.soak.report import Round, table
from tests.soak.stand import machine
from tests.soak.stand.instance import set_django_up
from tests.soak.stand.stage import DATABASES, stage

_ALONE = "--one-process"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--database", choices=(*DATABASES, "both"), default="both")
    parser.add_argument("--faults", default="", help="a pattern: only faults whose names match it")
    parser.add_argument(_ALONE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    databases = DATABASES if options.database == "both" else (options.database,)
    if options.one_process:
        return play_on(options.database, options.rounds, seed, options.faults)
    return max(_play_apart(database, options.rounds, seed, options.faults) for database in databases)


def _play_apart(database: str, rounds: int, seed: int, faults: str) -> int:
    """Settings are read once a process."""
    command = [
        sys.executable,
        "-m",
        "tests.soak",
        _ALONE,
        "--rounds",
        str(rounds),
        "--seed",
        str(seed),
        "--faults",
        faults,
    ]
    apart = ["unshare", "-m"] if machine.can_mount() else []
    return subprocess.run([*apart, *command, "--database", database], check=False).returncode


def play_on(database: str, rounds: int, seed: int, faults: str) -> int:
    # Whoever ends it ends what it started, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rng, folder = Random(f"{database} {seed}"), Path(tempfile.mkdtemp(prefix=f"lakehub-soak-{database}-"))
    print(f"Database {database}, seed {seed}, {rounds} rounds", flush=True)
    played: list[Round] = []
    with stage(database, folder, rng) as standing:
        set_django_up(standing.instance.environment)
        from tests.soak.rounds import play

        try:
            for each in play(standing, rounds=rounds, faults=faults, rng=rng):
                print(each, flush=True)
                played.append(each)
        except KeyboardInterrupt:
            print(f"Ended after {len(played)} of {rounds} rounds", flush=True)
        has_failed = len(played) < rounds or any(each.findings for each in played)
        if has_failed:
            # It may be on a file system that ends with this process.
            shutil.copytree(standing.instance.home, folder / "home-kept", symlinks=True)
    print(f"\nDatabase {database}, seed {seed}\n\n{table(played)}\n", flush=True)
    if has_failed:
        print(f"The instance's log and folder are kept: {folder}/log and {folder}/home-kept", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
