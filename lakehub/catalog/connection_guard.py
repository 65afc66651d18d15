"""What a connection may reach. A source is read with Lakehub's own rights, so it must not lead to what those guard.

Files and SQLite databases of this machine: only below the folders that the operator names in LAKEHUB_SOURCE_ROOTS. The
operator's own command may name any path. For both, Lakehub's own data is never a source, nor is a folder above or below it:
its database, all folders in its home, its staging, its changelog, and the lakes of the data centers. Two things are the operator's alone:

- another file that lies directly in LAKEHUB_HOME, where the demonstration keeps the database that it plays;
- a lake of Lakehub's own by a storage that reads lakes (`hudi`): tables there that others write are monitored so.

A path is judged as the system follows it and as text, `..` cut away: drivers differ in that. It is judged when the connection
is made; who may write below such a folder later may put a link there. Servers: only at hosts of LAKEHUB_SOURCE_HOSTS, where the operator
names any, judged as they are written. A server's database is judged by its address, and by
what the server itself says when it is reached: a proxy or another name leads to the same one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import ProgrammingError, transaction
from django.db import connection as own

from lakehub.catalog.metadata.table_locations import server_addresses
from lakehub.catalog.storages import DATABASE_IDENTITIES, LocalPath, Location, ServerDatabase, Storage
from lakehub.kernel.addresses import is_listed_host
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)

_OWN_FILES = ("secret_key", "encryption_key", "beat", "lakehub.db")
"""And what lies beside them under a longer name: a journal, a draft."""
_CERTIFICATE_FOLDERS = (
    Path("/etc/ssl/certs"),
    Path("/etc/pki/tls/certs"),
    Path("/etc/pki/ca-trust"),
    Path("/usr/share/ca-certificates"),
    Path("/usr/local/share/ca-certificates"),
)
"""What lies there is public: the system's own list of whom it trusts."""
_POSTGRESQL_PORT = "5432"


def refuse_guarded_location(
    location: Location, *, by_operator: bool, lake_uris: Iterable[str], may_read_lakes: bool = False
) -> None:
    """Raises Refused. Asks nobody: see `own_database_check` for servers.

    `by_operator`: said by somebody who can read this machine's files anyway. `lake_uris`: lakes of the data centers.
    """
    if isinstance(location, ServerDatabase):
        if not by_operator:
            refuse_unlisted_hosts(location.hosts)
        for certificate in location.certificates:
            _refuse_guarded_certificate(certificate, by_operator=by_operator)
    elif isinstance(location, LocalPath):
        lakes = _local_folders(lake_uris)
        for path in _both_readings(location.path):
            if _is_guarded(path, location.is_folder, by_operator, lakes, may_read_lakes=may_read_lakes):
                raise Refused.for_fields({"url": f"{path} holds Lakehub's own data: it is no source."})
            if not by_operator and not _is_below(path, settings.LAKEHUB_SOURCE_ROOTS):
                raise Refused.for_fields(
                    {
                        "url": f"{path} is on this machine, and not below a folder that may be read. The operator names such "
                        "folders in LAKEHUB_SOURCE_ROOTS, or makes the connection with `manage.py connect`."
                    }
                )
    elif not by_operator:
        raise Refused.for_fields(
            {"url": f"{location.reason} The operator makes other connections, with `manage.py connect`."}
        )


def refuse_unlisted_hosts(hosts: Iterable[str]) -> None:
    """Raises Refused. Asks nobody."""
    for host in hosts:
        _refuse_unlisted_host(host)


def _refuse_unlisted_host(host: str) -> None:
    if settings.LAKEHUB_SOURCE_HOSTS and not is_listed_host(host, settings.LAKEHUB_SOURCE_HOSTS):
        raise Refused.for_fields(
            {
                "url": f"{host or 'A server without a host'} is not a host that databases may be at. The operator names such hosts in "
                "LAKEHUB_SOURCE_HOSTS, or makes the connection with `manage.py connect`."
            }
        )


def own_database_check() -> Callable[[Storage, Location], None]:
    """A check that raises Refused where a storage leads to Lakehub's own database. Made here, it may run in any thread, and
    waits for the storage's server and for names to resolve."""
    if own.vendor != "postgresql":
        return lambda storage, location: None
    parameters = dict(own.get_connection_params())  # as the driver gets them: also what the URL says behind its `?`
    identities = _own_identities()

    def check(storage: Storage, location: Location) -> None:
        if not isinstance(location, ServerDatabase):
            return
        if _is_address_of(location, parameters) or (identities and identities & storage.database_identities()):
            raise Refused.for_fields({"url": "This is Lakehub's own database: it is no source."})

    return check


def _own_identities() -> frozenset[str]:
    identities = set[str]()
    for question in DATABASE_IDENTITIES:
        try:
            with transaction.atomic(), own.cursor() as cursor:
                cursor.execute(question)
                identities.add(str(cursor.fetchone()[0]))
        except ProgrammingError:
            logger.info("Lakehub's own database does not say which it is to its own account")
    return frozenset(identities)


def _is_address_of(database: ServerDatabase, parameters: dict[str, object]) -> bool:
    """The same database of the same server by what is written, whoever asks."""
    hosts = str(parameters.get("hostaddr") or parameters.get("host") or "").split(",")
    ports = str(parameters.get("port") or _POSTGRESQL_PORT).split(",")
    return (
        database.name == str(parameters.get("dbname") or parameters.get("user"))
        and (database.port or _POSTGRESQL_PORT) in ports
        and any(server_addresses(database.host) & server_addresses(host) for host in hosts)
    )


def _both_readings(path: Path) -> list[Path]:
    return [Path(os.path.realpath(text)) for text in (path, os.path.normpath(path))]


def _is_guarded(path: Path, is_folder: bool, by_operator: bool, lakes: Sequence[Path], *, may_read_lakes: bool) -> bool:
    own_folders = [settings.LAKEHUB_STAGING.resolve(), *_local_folders([settings.LAKEHUB_CHANGELOG_URL])]
    guarded = [*_own_files(), *own_folders, *([] if may_read_lakes else lakes)]
    if _is_beside_own_file(path) or any(_overlap(path, is_folder, place) for place in guarded):
        return True
    home = settings.LAKEHUB_HOME.resolve()
    if not _overlap(path, is_folder, home):
        return False
    is_file_of_home = not is_folder and path.parent == home
    is_lake = may_read_lakes and any(_overlap(path, is_folder, lake) for lake in lakes)
    return not by_operator or home.is_relative_to(path) or not (is_file_of_home or is_lake)


def _refuse_guarded_certificate(certificate: Path, *, by_operator: bool) -> None:
    for path in _both_readings(certificate):
        is_known = by_operator or _is_below(path, [*_CERTIFICATE_FOLDERS, *settings.LAKEHUB_SOURCE_ROOTS])
        if not is_known or _overlap(path, False, settings.LAKEHUB_HOME.resolve()):
            raise Refused.for_fields(
                {
                    "url": f"{path} is not a certificate that may be read: name one below {_CERTIFICATE_FOLDERS[0]}, or below a "
                    "folder of LAKEHUB_SOURCE_ROOTS."
                }
            )


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _overlap(path: Path, is_folder: bool, guarded: Path) -> bool:
    return path.is_relative_to(guarded) or (is_folder and guarded.is_relative_to(path))


def _own_files() -> list[Path]:
    files = [settings.LAKEHUB_HOME / name for name in _OWN_FILES]
    if own.vendor == "sqlite":
        files.append(Path(str(own.settings_dict["NAME"])))
    return [file.resolve() for file in files]


def _is_beside_own_file(path: Path) -> bool:
    """By its name, or as a second name of the same file."""
    return any(
        (path.parent == file.parent and path.name.lstrip(".").startswith(file.name)) or _is_same_file(path, file)
        for file in _own_files()
    )


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there
        return False


def _local_folders(uris: Iterable[str]) -> list[Path]:
    """Of those that lie on this machine."""
    return [Path(unquote(parts.path)).resolve() for parts in map(urlsplit, uris) if parts.scheme == "file"]
