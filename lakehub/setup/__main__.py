"""`lakehub setup`: fetch what is missing, and say what there is. With `--hbase` also what a Global Index needs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from lakehub.setup.artifacts import HBASE_JARS, SPARK_JARS, ArtifactNotFetched, fetch_artifact
from lakehub.setup.java import JavaNotFound, java_home


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="lakehub setup", description=__doc__)
    parser.add_argument("--hbase", action="store_true", help="also the client of HBase, for the index `hbase`")
    wanted = {"Hudi": SPARK_JARS, "HBase": HBASE_JARS if parser.parse_args(arguments).hbase else ()}
    began = time.monotonic()
    try:
        home, jars = java_home(), [(name, fetch_artifact(jar)) for name, those in wanted.items() for jar in those]
    except (JavaNotFound, ArtifactNotFetched) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"Java   {home}")
    for name, jar in jars:
        print(f"{name:6} {jar} ({jar.stat().st_size / 1e6:.1f} MB, checksum right)")
    print(f"       {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
