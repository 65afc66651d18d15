"""`python -m tests.soak.pipelines.broken`: does the soak fail where a line of the product is broken? Ends with 1 where it holds."""

from __future__ import annotations

import argparse
import re
import sys

from tests.soak.breaking import Break, play_broken

_FEW = ("--seed", "100", "--rounds", "12")
_DIFFERENCE = r"only in the table \["
BREAKS = (
    Break(
        "joins: the changes of one input are ignored",
        "ingestion/spark/etl/reach.py",
        "        if each.affected_keys and not changes[each.name].is_empty",
        '        if each.affected_keys and not changes[each.name].is_empty and each.name != "planes"',
        _FEW,
        _DIFFERENCE,
    ),
    Break(
        "judged: rows are written though another job has written the table since they were made",
        "ingestion/spark/etl/committing.py",
        "    if others := [commit for commit in recent if commit.operation not in TABLE_SERVICES]:",
        "    if others := [commit for commit in recent if not recent]:",
        ("--seed", "100", "--rounds", "8", "--faults", "backfill overtaken"),
        _DIFFERENCE,
    ),
    Break(
        "before: rows as they were before they changed are not looked at",
        "ingestion/spark/etl/views.py",
        '            before.unionByName(now).createOrReplaceTempView(f"{CHANGED}{each.name}")',
        '            now.createOrReplaceTempView(f"{CHANGED}{each.name}")',
        _FEW,
        _DIFFERENCE,
    ),
    Break(
        "between: rows of an input that only a backfill has read are not looked at",
        "ingestion/spark/etl/runs.py",
        "            also_read_at=position.get(READ_AT, {}).get(each.name, ()),",
        "        also_read_at=(),",
        ("--seed", "100", "--rounds", "2", "--faults", "change backfilled"),
        _DIFFERENCE,
    ),
    Break(
        "noted: a run reads later commits of an input than it notes",
        "ingestion/spark/etl/views.py",
        "        if timeline.latest_completion() == completion:",
        "        if completion:",
        ("--seed", "100", "--rounds", "2", "--faults", "read early"),
        _DIFFERENCE,
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.pipelines.broken", description=__doc__)
    parser.add_argument("--only", default="", help="a pattern: only lines whose names match it")
    options = parser.parse_args()
    chosen = [each for each in BREAKS if re.search(options.only, each.name)]
    return play_broken(chosen, ("tests.soak.pipelines",))


if __name__ == "__main__":
    sys.exit(main())
