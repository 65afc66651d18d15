"""`lakehub setup`: fetch what is missing, and say what there is."""

from __future__ import annotations

import sys
import time

from lakehub.setup.artifacts import SPARK_JARS, ArtifactNotFetched, fetch_artifact
from lakehub.setup.java import JavaNotFound, java_home


def main() -> int:
    began = time.monotonic()
    try:
        home, jars = java_home(), [fetch_artifact(jar) for jar in SPARK_JARS]
    except (JavaNotFound, ArtifactNotFetched) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"Java   {home}")
    for jar in jars:
        print(f"Hudi   {jar} ({jar.stat().st_size / 1e6:.1f} MB, checksum right)")
    print(f"       {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
