"""`python -m tests.soak.pipelines --rounds 40 --seed 7`: the soak of pipelines; ends with 1 where a round failed."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from ingestion.spark.session import close_session, open_session
from tests import brief_jvms
from tests.soak.pipelines.flights import Changes, flights_lake, real_rows
from tests.soak.pipelines.rounds import Played, Rounds

_DAYS = tuple(f"2013-{month:02}-{day:02}" for month in (1, 7) for day in (1, 2, 3))
"""Half a year apart: what changes in January is late."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.pipelines", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int)
    parser.add_argument(
        "--idle", action="store_true", help="at the end pipelines stay idle for longer than an input keeps its commits"
    )
    parser.add_argument("--faults", default="", help="a pattern: only faults whose names match it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="lakehub-pipelines-"))
    print(f"Seed {seed}, {options.rounds} rounds", flush=True)
    brief_jvms.configure(os.environ)
    spark = open_session("soak")
    try:
        rounds = spark_rounds(spark, folder, Random(seed), options.faults, overwrites=bool(seed % 2))
        played = _play(rounds, options.rounds, is_idle=options.idle)
    finally:
        close_session(spark)
    failed = sum(bool(each.problem) for each in played)
    print(
        f"\nSeed {seed}: {len(played)} rounds, {failed} failed, {sum(each.took_s for each in played):.0f} s", flush=True
    )
    if failed:
        print(f"The lake and the logs are kept: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def spark_rounds(spark: SparkSession, folder: Path, random: Random, faults: str, *, overwrites: bool) -> Rounds:
    rows = real_rows(_DAYS)
    lake = flights_lake(spark, folder, rows, overwrites=overwrites)
    return Rounds(lake, Changes.of(lake, rows, random, _DAYS), random, faults=faults)


def _play(rounds: Rounds, count: int, *, is_idle: bool) -> list[Played]:
    rounds.load()
    played = list[Played]()
    for each in rounds.play(count):
        print(each, flush=True)
        played.append(each)
        if each.problem:
            return played
    if is_idle:
        played.append(rounds.stay_idle())
        print(played[-1], flush=True)
    return played


if __name__ == "__main__":
    sys.exit(main())
