"""Where files live by default: below the checkout when Lakehub runs from one, else where an installed program keeps them.

Environment variables come first (docs/configuration.md). No Django: jobs on a cluster and the first set-up need this too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]
"""The folder that holds Lakehub's packages: the checkout, or an environment's `site-packages`."""


def checkout(packages: Path = PACKAGES) -> Path | None:
    """The checkout that this code runs from; None where it is installed."""
    return packages if (packages / "manage.py").is_file() and (packages / "pyproject.toml").is_file() else None


def working_folder() -> Path:
    """Where the processes run: the checkout, or the current directory."""
    return checkout() or Path.cwd()


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The instance's own folder: `LAKEHUB_HOME`, else `.lakehub`."""
    return Path(environ.get("LAKEHUB_HOME") or working_folder() / ".lakehub").resolve()


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`LAKEHUB_CACHE`; else `.cache` of the checkout; else `lakehub` in the user's own cache folder."""
    named = environ.get("LAKEHUB_CACHE")
    if named:
        return Path(named).resolve()
    source = checkout()
    return (source / ".cache" if source else _user_cache(environ) / "lakehub").resolve()


def demo_folder() -> Path:
    """The demo's instance, which is removed and made again each time."""
    return working_folder() / ".demo"


def _user_cache(environ: Mapping[str, str]) -> Path:
    """As the XDG Base Directory Specification says: a relative path is ignored."""
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"
