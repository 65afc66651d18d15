"""The instance's own folder, `LAKEHUB_HOME`: what a process that works in it makes first.

Reading `lakehub.settings` makes nothing. Each entry point calls `prepare_instance` before it sets Django up: the command
line, `lakehub.wsgi`, `lakehub.celery` and the settings of the tests. What only looks (`lakehub help`, a type checker) does not.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from lakehub.environment import InvalidSetting, database
from lakehub.setup.locations import home_folder

DEFAULT_BROKER = "filesystem://"
ENCRYPTION_KEY = "LAKEHUB_ENCRYPTION_KEY"
KEY_FILES = {"LAKEHUB_SECRET_KEY": "secret_key", ENCRYPTION_KEY: "encryption_key"}
"""The file of each key that is not given as a variable."""
_SQLITE_HEADER = b"SQLite format 3\0"


class UnusableInstance(RuntimeError):
    """The instance's folder cannot be made or read. The message names the path and says what to do."""


def prepare_instance(environ: Mapping[str, str] = os.environ, *, will_migrate: bool = False) -> Path:
    """Make the folders and keys that are missing, and return the folder. Safe in several processes at once.

    What is there stays as it is, but others can no longer read it. From here on this process and its children make files
    by LAKEHUB_UMASK. The encryption key is made for a new database only: an SQLite file that is not there yet, or a
    database of a server without Lakehub's tables, and there only by who makes these next (`will_migrate`).
    Raises UnusableInstance, also for an SQLite file that cannot be one, and InvalidSetting for a LAKEHUB_DATABASE_URL or LAKEHUB_UMASK that cannot be used.
    """
    os.umask(_umask(environ))
    home = home_folder(environ)
    folders = [home, home / "static"]
    if environ.get("LAKEHUB_BROKER_URL", DEFAULT_BROKER).startswith("filesystem"):
        folders += [broker_folder(home) / "queue", broker_folder(home) / "control"]
    for folder in folders:
        _make_folder(folder)
    _close_to_others(home)
    _check_database_file(home, environ)
    for variable in KEY_FILES:
        if not read_key(variable, home, environ):
            if variable == ENCRYPTION_KEY:
                _refuse_used_database(home, environ, will_migrate)
            _make_key(variable, home)
    return home


def read_key(variable: str, home: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The value of `variable`, else what its file holds, else nothing: `prepare_instance` was not called for this folder yet.

    Whoever uses a key refuses an empty one: Django its SECRET_KEY, `lakehub.db.encrypted_fields` the other.
    Raises UnusableInstance for a file that cannot be read, is empty or holds no text.
    """
    given, file = environ.get(variable), home / KEY_FILES[variable]
    if given:
        return given
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise UnusableInstance(
            f"The key {file} cannot be read: {problem.strerror}. Let this user read it, or set {variable}."
        ) from problem
    key = content.decode(errors="replace").strip()
    # A disk that lost what was written gives zeros, which would be a key that everybody knows.
    if not key or not (key.isascii() and key.isprintable()):
        raise UnusableInstance(
            f"The key {file} is {'damaged: it holds no text' if key else 'empty'}. Restore it from a backup, or set {variable}; "
            "a new one cannot read what was encrypted with the old one."
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


def _umask(environ: Mapping[str, str]) -> int:
    value = environ.get("LAKEHUB_UMASK") or "077"
    try:
        umask = int(value, 8)
    except ValueError:
        umask = -1
    if not 0 <= umask <= 0o077:
        raise InvalidSetting(f"LAKEHUB_UMASK={value!r} is not a mask of the owner's files: set 077, 027 or 022.")
    return umask


def _close_to_others(home: Path) -> None:
    """The folder is its owner's alone, also one that was made before; so are the files directly in it: keys, the database."""
    with os.scandir(home) as entries:
        files = [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
    for path in (home, *files):
        with suppress(FileNotFoundError):  # SQLite removes its own files while another process ends
            status = path.stat()
            is_shared = bool(status.st_mode & stat.S_ISVTX)  # such as /tmp
            if status.st_mode & 0o077 and status.st_uid == os.geteuid() and not is_shared:
                path.chmod(stat.S_IMODE(status.st_mode) & ~0o077)


def _check_database_file(home: Path, environ: Mapping[str, str]) -> None:
    """What SQLite would say of it later names no file. Its first bytes only: to look at all of it takes long.

    For a process that has not opened the database yet: closing the file gives up the locks that SQLite has on it.
    """
    url = _database_url(home, environ)
    if not url.startswith("sqlite"):
        return
    file, why = Path(str(database(url)["NAME"])), ""
    try:
        if file.exists() and not file.is_file():
            why = "is not a file"
        elif file.is_file():
            with file.open("rb") as opened:
                is_sqlite = opened.read(len(_SQLITE_HEADER)) in (_SQLITE_HEADER, b"")
            if not is_sqlite:
                why = "is not an SQLite database, or is damaged"
            elif not os.access(file, os.W_OK):
                why = "cannot be written to by this user"
        elif not file.parent.is_dir():
            why = "cannot be made, as its folder is missing"
    except OSError as problem:
        why = f"cannot be read: {problem.strerror}"
    if why:
        raise UnusableInstance(
            f"The database {file} {why}. Restore it from a backup, let this user read and write it, or name another one in "
            "LAKEHUB_DATABASE_URL."
        )


def _database_url(home: Path, environ: Mapping[str, str]) -> str:
    return environ.get("LAKEHUB_DATABASE_URL", f"sqlite:///{home / 'lakehub.db'}")


def _refuse_used_database(home: Path, environ: Mapping[str, str], will_migrate: bool) -> None:
    """Raises UnusableInstance where the database was, or may have been, encrypted with a key that is not here."""
    url = _database_url(home, environ)
    file, why = Path(str(database(url)["NAME"])), ""
    if not url.startswith("sqlite"):
        why = _why_server_is_used(url) if will_migrate else "where `lakehub migrate` of a new database makes it"
        why = why and f"LAKEHUB_DATABASE_URL names a server, {why}"
    # Another process may have made both since the key was looked for.
    elif file.is_file() and not read_key(ENCRYPTION_KEY, home, environ):
        why = f"The database {file} may have been encrypted with it"
    if why:
        raise UnusableInstance(
            f"The key {home / KEY_FILES[ENCRYPTION_KEY]} is missing. {why}. Restore the file from a backup or from another host, "
            f"or set {ENCRYPTION_KEY}; another key cannot read what is encrypted."
        )


def _why_server_is_used(url: str) -> str:
    """Empty where the server's database has none of Lakehub's tables."""
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            row = connection.execute("SELECT to_regclass('django_migrations')").fetchone()
    except psycopg.OperationalError as problem:
        return f"which does not say whether its database is new: {str(problem).splitlines()[0]}"
    return "and its database has tables of Lakehub, which may have been encrypted with it" if row and row[0] else ""


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
