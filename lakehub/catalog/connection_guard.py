"""What a connection may reach. A source is read with Lakehub's own rights, so it must not lead to what those guard.

Files and SQLite databases of this machine: only below the folders that the operator names in LAKEHUB_SOURCE_ROOTS. The
operator's own command may name any path. Lakehub's own database, keys and lakes are never a source.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import connection as own

from lakehub.catalog.storages import LocalPath, Location, ServerDatabase
from lakehub.kernel.errors import Refused

_GUARDED_FILES = ("secret_key", "encryption_key", "broker", "static")


def refuse_guarded_location(location: Location | None, *, by_operator: bool) -> None:
    """Raises Refused. `by_operator`: said by somebody who can read this machine's files anyway."""
    if isinstance(location, ServerDatabase) and _is_own_database(location):
        raise Refused.for_fields({"url": "This is Lakehub's own database: it is no source."})
    if not isinstance(location, LocalPath):
        return
    path = location.path.resolve()
    if _is_guarded_path(path, folder=location.is_folder):
        raise Refused.for_fields({"url": f"{path} holds Lakehub's own data: it is no source."})
    if not by_operator and not any(path.is_relative_to(root) for root in settings.LAKEHUB_SOURCE_ROOTS):
        raise Refused.for_fields(
            {
                "url": f"{path} is on this machine, and not below a folder that may be read. "
                "The operator names such folders in LAKEHUB_SOURCE_ROOTS, or makes the connection with `manage.py connect`."
            }
        )


def _is_guarded_path(path: Path, *, folder: bool) -> bool:
    home = settings.LAKEHUB_HOME
    guarded = [home / name for name in _GUARDED_FILES]
    if own.vendor == "sqlite":
        guarded.append(Path(str(own.settings_dict["NAME"])).resolve())
    if folder:
        return any(guarded_path.is_relative_to(path) for guarded_path in guarded)
    return any(
        path.is_relative_to(guarded_path)
        or (path.name.startswith(guarded_path.name) and path.parent == guarded_path.parent)
        for guarded_path in guarded
    )


def _is_own_database(database: ServerDatabase) -> bool:
    """The same database of the same server, whoever asks."""
    if own.vendor == "sqlite":
        return False
    own_settings = own.settings_dict
    return database == ServerDatabase(
        own_settings["HOST"] or "", str(own_settings["PORT"] or ""), str(own_settings["NAME"])
    )
