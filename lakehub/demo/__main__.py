"""`python -m lakehub.demo [--no-serve]`: tell the story in a fresh instance in `.demo`, then serve it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser

from lakehub.demo.instance import Instance, free_address
from lakehub.setup.artifacts import PROJECT


def main() -> int:
    parser = ArgumentParser(prog="manage.py demo", description=__doc__)
    parser.add_argument("--no-serve", action="store_true", help="end after the story")
    asked = parser.parse_args()
    bind = os.environ.get("LAKEHUB_BIND") or (free_address() if asked.no_serve else "127.0.0.1:8000")
    instance = Instance(PROJECT / ".demo", bind)
    instance.clear()
    environment = instance.environment()
    os.environ.clear()
    os.environ.update(environment)
    import django

    django.setup()
    from lakehub.demo.story import tell

    return tell(instance, serve=not asked.no_serve)


if __name__ == "__main__":
    sys.exit(main())
