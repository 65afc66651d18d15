"""`python -m tests.soak.index --keys 1000000 --batches 30 --seed 7`: the soak of the Global Index; ends with 1 where a batch failed."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from random import Random

from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.session import close_session, open_session
from tests import brief_jvms
from tests.services.own_hbase import own_hbase
from tests.soak.index.batches import Played, bootstrap, play, verify
from tests.soak.index.faults import all_faults, deck
from tests.soak.index.jobs import Stage
from tests.soak.index.source import Source

_PORT = 29_860
"""The first of sixteen that the HBase of the soak takes."""
_REQUESTS_PER_S = 5_000.0
"""About as fast as this HBase answers on a small machine: jobs and their tasks keep to a rate, and are hardly slower for it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.index", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--faults", default="", help="a pattern: only faults whose names match it")
    parser.add_argument("--port", type=int, default=_PORT, help="the first of those that HBase listens on")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="lakehub-index-"))
    print(f"Seed {seed}, {options.keys:,} keys, {options.batches} batches", flush=True)
    random, played = Random(seed), list[Played]()
    faults = deck(random, options.faults, options.batches)
    with _stage(folder, options.port, options.keys, random) as stage:
        for each in chain([bootstrap(stage, options.keys)], play(stage, faults), verify(stage)):
            print(each, flush=True)
            played.append(each)
            if each.finding:
                break
    print(_summary(seed, played), flush=True)
    if any(each.finding for each in played):
        print(f"The table, its source and the logs are kept: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


@contextmanager
def _stage(folder: Path, port: int, keys: int, random: Random) -> Iterator[Stage]:
    brief_jvms.configure(os.environ)
    index = GlobalIndexSpec(
        f"127.0.0.1:{port}",
        f"127.0.0.1:{port + 1}",
        (folder / "staging").as_uri(),
        "lakehub_soak",
        requests_per_s=_REQUESTS_PER_S,
    )
    with own_hbase(folder, port, servers=2) as hbase:
        spark = open_session("soak")
        try:
            yield Stage(spark, hbase, Source(folder / "shop", index, keys, random), random)
        finally:
            close_session(spark)


def _summary(seed: int, played: list[Played]) -> str:
    faults = {each.fault for each in played}
    left_out = [str(each) for each in chain(*all_faults()) if str(each) not in faults]
    times = [each.took_s for each in played]
    lines = [
        f"\nSeed {seed}: {len(played)} lines, {sum(bool(each.finding) for each in played)} failed, {sum(times):.0f} s, at most {max(times):.0f} s",
        f"Faults that were not played: {', '.join(left_out) or 'none'}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
