"""`python -m tests.soak.index.broken`: does the soak fail where a line of the product is broken? Ends with 1 where it holds."""

from __future__ import annotations

import argparse
import re
import sys

from tests.soak.breaking import Break, play_broken

_FEW = ("--seed", "100", "--keys", "5000", "--batches", "5")
_WRITES_INDEX = """
        from ingestion.index.entries import Entry
        from ingestion.spark.indexes.hbase import client_of
        new = {status.getPartitionPath(): status.getFileId() for status in written if status.getStat().getNumInserts()}
        entries = {each.key: Entry(each.partition, new[each.partition], instant) for each in placed if each.partition in new and not each.file_id}
        client_of(table).put(entries, at_ms=int(__import__("time").time() * 1000))
"""
_DIES = "        failpoint.reach(FAILPOINT)"
BREAKS = (
    Break(
        "followed: a job asks the index without following what was committed",
        "ingestion/spark/global_index/following.py",
        "    if known == completions and not begun:",
        "    if known:",
        (*_FEW, "--faults", "incremental dies at ingestion.before_write"),
        r"only in the lake: |the index has [\d,]+ entries of",
    ),
    Break(
        "order: the index is written before the commit",
        "ingestion/spark/file_groups/direct_write.py",
        _DIES,
        f"{_WRITES_INDEX.strip(chr(10))}\n{_DIES}",
        (*_FEW, "--faults", "incremental dies at ingestion.inside_commit"),
        r"only in the lake: |named files without them",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.index.broken", description=__doc__)
    parser.add_argument("--only", default="", help="a pattern: only lines whose names match it")
    parser.add_argument("--port", default="29860", help="the first of those that HBase listens on")
    options = parser.parse_args()
    chosen = [each for each in BREAKS if re.search(options.only, each.name)]
    return play_broken(chosen, ("tests.soak.index", "--port", options.port))


if __name__ == "__main__":
    sys.exit(main())
