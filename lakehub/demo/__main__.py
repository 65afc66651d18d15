"""`lakehub demo [--no-serve]`: tell the story in a fresh instance in `.demo`, then serve it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from lakehub.demo.instance import Instance, free_address
from lakehub.instance import prepare_instance
from lakehub.setup.artifacts import SPARK_JARS, ArtifactNotFetched, artifact_path, fetch_artifact
from lakehub.setup.locations import demo_folder
from lakehub.setup.machine import slowness


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="lakehub demo", description=__doc__)
    parser.add_argument("--no-serve", action="store_true", help="end after the story")
    options = parser.parse_args(arguments)
    try:
        _fetch_the_jars()
    except ArtifactNotFetched as problem:
        print(problem, file=sys.stderr)
        return 1
    bind = os.environ.get("LAKEHUB_BIND") or (free_address() if options.no_serve else "127.0.0.1:8000")
    instance = Instance(demo_folder(), bind)
    instance.clear()
    environment = instance.environment()
    os.environ.clear()
    os.environ.update(environment)
    prepare_instance()
    import django

    django.setup()
    from lakehub.demo.story import tell_story

    print(f"Deadlines are those of a quiet machine x {slowness():.2f} (LAKEHUB_SLOWNESS)", flush=True)

    return tell_story(instance, serve=not options.no_serve)


def _fetch_the_jars() -> None:
    """The table format's jars, where neither `lakehub setup` nor the operator has put them in place."""
    if os.environ.get("LAKEHUB_HUDI_JAR"):
        return
    for jar in SPARK_JARS:
        try:
            artifact_path(jar)
        except ArtifactNotFetched:
            print(f"Fetching {jar}, once", flush=True)
            fetch_artifact(jar)


if __name__ == "__main__":
    sys.exit(main())
