"""What a connection may reach. A source is read with Lakehub's own rights, so it must not lead to what those guard.

Files and SQLite databases of this machine: only below the folders that the operator names in LAKEHUB_SOURCE_ROOTS. The
operator's own command may name any path. For both, Lakehub's own data is never a source, nor is a folder above or below it:
its database, keys, broker, jobs, static files and staging, and the lakes of the data centers. Two things are the operator's alone:

- another file in LAKEHUB_HOME, where the demonstration keeps the database that it plays;
- a lake of Lakehub's own by a storage that reads lakes (`hudi`): tables there that others write are monitored so.

A path is judged as the system follows it and as text, `..` cut away: drivers differ in that. It is judged when the connection
is made; who may write below such a folder later may put a link there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import connection as own

from lakehub.catalog.metadata.table_locations import server_addresses
from lakehub.catalog.storages import LocalPath, Location, ServerDatabase
from lakehub.kernel.errors import Refused

_OWN_FOLDERS = ("broker", "gate-rate", "jobs", "static", "staging")
_OWN_FILES = ("secret_key", "encryption_key", "beat", "lakehub.db")
"""And what lies beside them under a longer name: a journal, a draft."""
_POSTGRESQL_PORT = "5432"


def refuse_guarded_location(location: Location, *, by_operator: bool, lake_uris: Iterable[str]) -> None:
    """Raises Refused. `by_operator`: said by somebody who can read this machine's files anyway. `lake_uris`: lakes to guard."""
    if isinstance(location, ServerDatabase):
        if _is_own_database(location):
            raise Refused.for_fields({"url": "This is Lakehub's own database: it is no source."})
    elif isinstance(location, LocalPath):
        lakes = _lake_folders(lake_uris)
        for path in (location.path, os.path.normpath(location.path)):
            _refuse_guarded_path(Path(os.path.realpath(path)), location.is_folder, by_operator=by_operator, lakes=lakes)
    elif not by_operator:
        raise Refused.for_fields(
            {"url": f"{location.reason} The operator makes other connections, with `manage.py connect`."}
        )


def _refuse_guarded_path(path: Path, is_folder: bool, *, by_operator: bool, lakes: Sequence[Path]) -> None:
    guarded = [*_own_paths(), *lakes]
    if not by_operator:
        guarded.append(settings.LAKEHUB_HOME.resolve())
    if _is_beside_own_file(path) or any(_overlap(path, is_folder, place) for place in guarded):
        raise Refused.for_fields({"url": f"{path} holds Lakehub's own data: it is no source."})
    if not by_operator and not any(path.is_relative_to(root) for root in settings.LAKEHUB_SOURCE_ROOTS):
        raise Refused.for_fields(
            {
                "url": f"{path} is on this machine, and not below a folder that may be read. "
                "The operator names such folders in LAKEHUB_SOURCE_ROOTS, or makes the connection with `manage.py connect`."
            }
        )


def _overlap(path: Path, is_folder: bool, guarded: Path) -> bool:
    return path.is_relative_to(guarded) or (is_folder and guarded.is_relative_to(path))


def _own_files() -> list[Path]:
    files = [settings.LAKEHUB_HOME / name for name in _OWN_FILES]
    if own.vendor == "sqlite":
        files.append(Path(str(own.settings_dict["NAME"])))
    return [file.resolve() for file in files]


def _own_paths() -> list[Path]:
    folders = [settings.LAKEHUB_HOME / name for name in _OWN_FOLDERS]
    return [*_own_files(), *(folder.resolve() for folder in (*folders, settings.LAKEHUB_STAGING))]


def _is_beside_own_file(path: Path) -> bool:
    return any(path.parent == file.parent and path.name.lstrip(".").startswith(file.name) for file in _own_files())


def _lake_folders(uris: Iterable[str]) -> list[Path]:
    """Of the lakes that lie on this machine."""
    return [Path(unquote(parts.path)).resolve() for parts in map(urlsplit, uris) if parts.scheme == "file"]


def _is_own_database(database: ServerDatabase) -> bool:
    """The same database of the same server, whoever asks."""
    if own.vendor == "sqlite":
        return False
    parameters = own.get_connection_params()  # as the driver gets them: also what the URL says behind its `?`
    hosts = str(parameters.get("hostaddr") or parameters.get("host") or "").split(",")
    ports = str(parameters.get("port") or _POSTGRESQL_PORT).split(",")
    return (
        database.name == str(parameters.get("dbname") or parameters.get("user"))
        and (database.port or _POSTGRESQL_PORT) in ports
        and any(server_addresses(database.host) & server_addresses(host) for host in hosts)
    )
