"""The instance's own folder, `LAKEHUB_HOME`: what a process that works in it makes first.

Reading `lakehub.settings` makes nothing. Each entry point calls `prepare_instance` before it sets Django up: the command
line, `lakehub.wsgi`, `lakehub.celery` and the settings of the tests. What only looks (`lakehub help`, a type checker) does not.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from lakehub.setup.locations import home_folder

DEFAULT_BROKER = "filesystem://"
KEY_FILES = {"LAKEHUB_SECRET_KEY": "secret_key", "LAKEHUB_ENCRYPTION_KEY": "encryption_key"}
"""The file of each key that is not given as a variable."""


class UnusableInstance(RuntimeError):
    """The instance's folder cannot be made or read. The message names the path and says what to do."""


def prepare_instance(environ: Mapping[str, str] = os.environ) -> Path:
    """Make the folders and keys that are missing, and return the folder. Safe in several processes at once.

    What is there stays as it is. Raises UnusableInstance.
    """
    home = home_folder(environ)
    folders = [home, home / "static"]
    if environ.get("LAKEHUB_BROKER_URL", DEFAULT_BROKER).startswith("filesystem"):
        folders += [broker_folder(home) / "queue", broker_folder(home) / "control"]
    for folder in folders:
        _make_folder(folder)
    for variable in KEY_FILES:
        if not read_key(variable, home, environ):
            _make_key(variable, home)
    return home


def read_key(variable: str, home: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The value of `variable`, else what its file holds, else nothing: `prepare_instance` was not called for this folder yet.

    Whoever uses a key refuses an empty one: Django its SECRET_KEY, `lakehub.catalog.encrypted_fields` the other.
    Raises UnusableInstance for a file that cannot be read or is empty.
    """
    given, file = environ.get(variable), home / KEY_FILES[variable]
    if given:
        return given
    try:
        key = file.read_text().strip()
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise UnusableInstance(
            f"The key {file} cannot be read: {problem.strerror}. Let this user read it, or set {variable}."
        ) from problem
    if not key:
        raise UnusableInstance(
            f"The key {file} is empty. Restore it from a backup, or set {variable}; without a backup delete the file, "
            "and a new key is made, which cannot read what was encrypted with the old one."
        )
    return key


def broker_folder(home: Path) -> Path:
    """Of the embedded broker."""
    return home / "broker"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UnusableInstance(
            f"The folder {folder} cannot be made: {problem.strerror}. "
            "Set LAKEHUB_HOME to a folder that this user may write to."
        ) from problem


def _make_key(variable: str, home: Path) -> None:
    file = home / KEY_FILES[variable]
    try:
        _write_once(secrets.token_urlsafe(48), file)
    except OSError as problem:
        raise UnusableInstance(
            f"The key {file} cannot be made: {problem.strerror}. Let this user write to {home}, or set {variable}."
        ) from problem


def _write_once(key: str, file: Path) -> None:
    """The file appears whole, for its owner only, or not at all; of two processes that start at once, the first one's stays."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
        out.write(key + "\n")
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    finally:
        draft.unlink()
