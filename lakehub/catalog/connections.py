"""Connections: where data is read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog import ports
from lakehub.catalog.connection_guard import own_database_check, refuse_guarded_location, refuse_unlisted_hosts
from lakehub.catalog.connection_trials import run_trial
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.roles import DatabaseRole, role_warning
from lakehub.catalog.models import Connection, DataCenter
from lakehub.catalog.storages import STORAGES, LocalPath, ServerDatabase, Storage
from lakehub.catalog.validation import Problems, find_by_name, save_validated
from lakehub.kernel.errors import Refused
from lakehub.kernel.registry import UnknownPlugin

T = TypeVar("T")

MAX_TEST_TABLES = 1000
"""A test counts no more; it names the first few."""

_PLAIN_WORDS = (
    ("connection refused", "Nothing answers at this host and port: check both, and that the server is up."),
    ("resolve host", "There is no host of this name: check its spelling, and that this machine's network knows it."),
    ("name or service not known", "There is no host of this name: check its spelling."),
    ("timed out", "The host does not answer: check its address, and that no firewall is between."),
    ("timeout expired", "The host does not answer: check its address, and that no firewall is between."),
    ("password authentication failed", "The server was reached, but it refuses this name or password."),
    ("access denied", "The server was reached, but it refuses this name or password."),
    ("no password supplied", "The server was reached, and it wants a password: write it into the URL."),
    ("no pg_hba.conf entry", "The server was reached, but it lets nobody in from this machine: its administrator can."),
    ("unable to open database file", "There is no such database file here."),
    ("file is not a database", "The file is there, but it is not a database."),
)
"""What drivers say (in small letters) -> the same for people."""


@dataclass(frozen=True)
class ConnectionTest:
    """A source that was reached, and the tables that it lists: at most MAX_TEST_TABLES."""

    tables: Sequence[str]
    empty_hint: str = Storage.empty_hint
    role: DatabaseRole | None = None
    warnings: tuple[str, ...] = ()
    """Of what may become a problem of the server whose log is read."""

    @property
    def role_warning(self) -> str:
        """For people; empty where the role of the URL only reads, or is not known."""
        return role_warning(self.role) if self.role is not None else ""

    @property
    def sentence(self) -> str:
        if not self.tables:
            return " ".join((f"Reached. It lists no table. {self.empty_hint}", *self.warnings))
        more = "more than " if len(self.tables) == MAX_TEST_TABLES else ""
        names = ", ".join(f"`{name}`" for name in self.tables[:3])
        tables = f"{len(self.tables):,} table{'s' if len(self.tables) > 1 else ''}"
        return " ".join((f"Reached. It lists {more}{tables}, such as {names}.", *self.warnings))


def add_connection(
    *, name: str, plugin: str, url: str, team: str, actor: str, now: datetime, by_operator: bool = False
) -> Connection:
    """A source. It is tried before it is kept. Raises Refused, which never holds the password, or Busy.

    `by_operator`: the operator of this machine says so, who may name any of its paths.
    """
    owner, test = _try_source(plugin, url, team, actor=actor, now=now, by_operator=by_operator)
    connection = Connection(name=name, plugin=plugin, url=url, team=owner, role_facts=role_facts(test.role))
    with transaction.atomic():
        save_validated(connection)
        audit_log.record(actor, "connect", f"connection:{name}", now=now, plugin=plugin)
    return connection


def check_connection(
    *, plugin: str, url: str, team: str, actor: str, now: datetime, by_operator: bool = False
) -> ConnectionTest:
    """Reads the source's list of tables, behind the guard of `add_connection`, and keeps nothing of it. Raises Refused, Busy."""
    _, test = _try_source(plugin, url, team, actor=actor, now=now, by_operator=by_operator)
    return test


def place_of(plugin: str, url: str) -> str:
    """Where a URL leads, for people: without user, password or parameters."""
    try:
        place = STORAGES.get(plugin)(url).location()
    except (MetadataUnavailable, UnknownPlugin):
        return "a place that is not known"
    if isinstance(place, ServerDatabase):
        return f"{place.host}{f':{place.port}' if place.port else ''}/{place.name}"
    return str(place.path) if isinstance(place, LocalPath) else "a place that is not certain"


def _try_source(
    plugin: str, url: str, team: str, *, actor: str, now: datetime, by_operator: bool
) -> tuple[Team, ConnectionTest]:
    """The owner, and what was reached. Raises Refused, by field; never with the password."""
    problems = Problems()
    owner = find_by_name(problems, "team", Team, team)
    try:
        STORAGES.get(plugin)
    except UnknownPlugin as unknown:
        problems.add("plugin", str(unknown))
    problems.raise_if_any()
    assert owner is not None  # a missing one is a problem
    return owner, check_url(plugin, url, subject=f"team:{team}", actor=actor, now=now, by_operator=by_operator)


def check_url(plugin: str, url: str, *, subject: str, actor: str, now: datetime, by_operator: bool) -> ConnectionTest:
    """It may be read, and answers. Raises Refused, never with the password; or Busy.

    Who tried which place is kept before it is tried, whatever comes of it, so that nobody searches a network unseen; but not who was
    told to come again later. `subject`: for whom or for which connection, as the audit log names it.
    """

    def note() -> None:
        audit_log.record(actor, "test connection", subject, now=now, plugin=plugin, place=place_of(plugin, url))

    try:
        reach = _checked_reach(plugin, url, by_operator=by_operator)
    except Exception:
        note()
        raise
    return reach_source(url, reach, person="" if by_operator else actor, note=note)


def _checked_reach(plugin: str, url: str, *, by_operator: bool) -> Callable[[], ConnectionTest]:
    """What reaches the source, once it was looked at whether it may. Raises Refused."""
    try:
        storage = STORAGES.get(plugin)(url)
        location = storage.location()
    except MetadataUnavailable as error:
        raise _unreachable(url, error) from error
    except UnknownPlugin as unknown:
        raise Refused.for_fields({"plugin": str(unknown)}) from unknown
    lake_uris = list(DataCenter.objects.values_list("lake_uri", flat=True))
    may_read_lakes = by_operator and storage.is_lake
    refuse_guarded_location(location, by_operator=by_operator, lake_uris=lake_uris, may_read_lakes=may_read_lakes)
    refuse_own_database = own_database_check()

    def reach() -> ConnectionTest:
        refuse_own_database(storage, location)
        if not by_operator:
            refuse_unlisted_hosts(storage.advertised_hosts())
        log = ports.capture_findings(url) if storage.is_captured else ports.CaptureFindings()
        if log.of_server:
            raise Refused.for_fields({"url": " ".join(log.of_server)})
        return ConnectionTest(storage.tables(MAX_TEST_TABLES), storage.empty_hint, storage.role(), log.warnings)

    return reach


def reach_source(url: str, work: Callable[[], T], *, person: str, note: Callable[[], None]) -> T:
    """What asks a source while somebody waits, as `run_trial` does. Raises Refused in plain words, and Busy."""
    try:
        return run_trial(work, person=person, note=note)
    except MetadataUnavailable as error:
        raise _unreachable(url, error) from error


def role_facts(role: DatabaseRole | None) -> dict[str, Any] | None:
    """As a connection keeps it."""
    return None if role is None else {"name": role.name, "powers": list(role.powers), "writes": list(role.writes)}


def _unreachable(url: str, error: MetadataUnavailable) -> Refused:
    """In plain words first, where the driver's are known; then its own, without the password whatever it says."""
    message = str(error)
    for secret in _secrets_of(url):
        message = message.replace(secret, "***")
    plain = next((words for sign, words in _PLAIN_WORDS if sign in message.lower()), "")
    return Refused.for_fields({"url": f"{plain} {message}".strip()})


def _secrets_of(url: str) -> set[str]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return set()
    return {password, unquote(password)} if password else set()
