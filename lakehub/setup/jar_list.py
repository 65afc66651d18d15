"""`python -m lakehub.setup.jar_list FILE`: fetch the jars of a locked list, and print the class path that they make.

A line of the list is `organisation:module:revision sha256`.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from lakehub.setup.artifacts import Artifact, ArtifactNotFetched, fetch_artifacts
from lakehub.setup.java import JavaNotFound

_SHA256 = re.compile("[0-9a-f]{64}")


def read_jar_list(file: Path) -> list[Artifact]:
    """Lines that are empty or begin with # are left out. Raises ValueError."""
    lines = (line.strip() for line in file.read_text().splitlines())
    artifacts = [_artifact(line, file) for line in lines if line and not line.startswith("#")]
    names = [artifact.file_name for artifact in artifacts]
    for artifact in artifacts:
        if names.count(artifact.file_name) > 1:  # in the cache, each would replace the other
            raise ValueError(f"{file} lists {artifact.file_name} twice. Remove a line.")
    return artifacts


def _artifact(line: str, file: Path) -> Artifact:
    coordinates, _, sha256 = line.partition(" ")
    match coordinates.split(":"):
        case [organisation, module, revision] if _SHA256.fullmatch(sha256):
            return Artifact(organisation, module, revision, sha256)
    raise ValueError(
        f"{file} has the line {line!r}: expected `organisation:module:revision sha256`, the latter in 64 small hexadecimal digits."
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m lakehub.setup.jar_list FILE", file=sys.stderr)
        return 2
    try:
        paths = fetch_artifacts(read_jar_list(Path(arguments[0])))
    except (JavaNotFound, ArtifactNotFetched, OSError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(os.pathsep.join(map(str, paths)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
