"""Reading a database URL. By SQLAlchemy's own parser, which opens the connection too: two parsers would disagree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from lakehub.kernel.registry import UnknownPlugin
from lakehub.kernel.suggest import did_you_mean
from lakehub.source_databases.drivers import DRIVERS, Driver

MAX_URL_LENGTH = 2000
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_ESCAPES = "In a name or a password write %40 for @, %2F for /, %3A for :, %3F for ? and %23 for #."
_OTHER_DRIVERS = "A package brings others by an entry point of the group lakehub.sql_drivers."

MARIADB_BACKENDS = ("mysql", "mariadb")
_MARIADB_DRIVER = "mariadb+pymysql"


class UnusableUrl(ValueError):
    """The URL is not opened. The message holds nothing of it that may be a password."""


@dataclass(frozen=True)
class DatabaseUrl:
    """A URL of which every part was checked. `address` has nothing behind its `?`: that is in `options`, as typed values."""

    address: sa.URL
    driver: Driver
    options: Mapping[str, object]
    certificates: tuple[Path, ...] = ()
    """Files of this machine that the driver reads to know the server by."""

    @property
    def port(self) -> int | None:
        return self.address.port or self.driver.port

    @property
    def file(self) -> Path:
        """Of a driver that opens one; nothing else is opened."""
        assert self.driver.has_file
        return Path(self.address.database or "")


def read_url(text: str) -> DatabaseUrl:
    """Raises UnusableUrl, which says what is wrong and what to write instead."""
    parsed = _parse(text)
    try:
        driver = DRIVERS.get(parsed.drivername)
    except UnknownPlugin:
        raise UnusableUrl(
            f"The URL begins with a database driver that Lakehub does not open.{did_you_mean(parsed.drivername, DRIVERS)} "
            f"{_OTHER_DRIVERS}"
        ) from None
    if driver.has_file:
        _check_file(parsed)
    else:
        _check_server(text, parsed, driver)
    options, certificates = _options(text, parsed, driver)
    return DatabaseUrl(parsed.set(query={}), driver, options, certificates)


def with_mariadb_driver(text: str) -> str:
    """`mysql://...` and `mariadb://...` by the driver that is installed; SQLAlchemy would take another one. Others stay as they are."""
    scheme, colon, rest = text.partition("://")
    return f"{_MARIADB_DRIVER}{colon}{rest}" if scheme in MARIADB_BACKENDS else text


def _parse(text: str) -> sa.URL:
    if len(text) > MAX_URL_LENGTH:
        raise UnusableUrl(f"The URL has {len(text):,} characters: at most {MAX_URL_LENGTH:,} are read.")
    try:
        parsed = sa.make_url(text)
    except (ArgumentError, ValueError):
        raise UnusableUrl(
            "The URL does not parse. Write one such as postgresql+psycopg://user:password@host:5432/name or "
            f"sqlite:////path/file.db. {_ESCAPES}"
        ) from None
    parts = (text, parsed.username, parsed.password, parsed.host, parsed.database)
    if not all(str(part).isprintable() for part in parts if part is not None):
        raise UnusableUrl("The URL has a character that cannot be printed, as it is or written with %: leave it out.")
    return parsed


def _check_file(parsed: sa.URL) -> None:
    if parsed.host or parsed.port is not None or parsed.username is not None or parsed.password is not None:
        raise UnusableUrl("Of SQLite the URL is sqlite:////path/file.db: no host, user or password.")
    if not Path(parsed.database or "").is_absolute():
        raise UnusableUrl("The path is not absolute: it has four slashes, sqlite:////path/file.db.")


def _check_server(text: str, parsed: sa.URL, driver: Driver) -> None:
    if text.count("@") > 1:
        raise UnusableUrl(f"The URL has more than one @. {_ESCAPES}")
    host, name = parsed.host or "", parsed.database or ""
    if not (_HOST.fullmatch(host) and len(host) < 254) and not _is_ipv6(host):
        raise UnusableUrl(f"The URL does not name one host, such as postgresql://user@db.example.org/name. {_ESCAPES}")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise UnusableUrl("The URL's port is not valid: write 1 to 65535.")
    if driver.backend == "postgresql" and (not name or re.search(r"=|://", name)):
        raise UnusableUrl("The URL does not name a database, such as postgresql://user@db.example.org/name.")


def _options(text: str, parsed: sa.URL, driver: Driver) -> tuple[dict[str, object], tuple[Path, ...]]:
    options, certificates = dict[str, object](), list[Path]()
    for name, value in parsed.query.items():
        option = driver.options.get(name)
        if option is None or not isinstance(value, str):
            raise UnusableUrl(
                f"{_shown_option(text, name)} Behind `?` a URL of {parsed.drivername} may say "
                f"{', '.join(sorted(driver.options)) or 'nothing'}, each once."
            )
        try:
            options[name] = option.parse(value)
        except ValueError:
            raise UnusableUrl(
                f"The option `{name}` behind `?` has another value than it may: write {option.form}."
            ) from None
        if option.is_file:
            certificates.append(Path(value))
    if options.get("ssl_disabled") and "ssl_ca" in options:
        # The driver would take the first alone, and verify nobody.
        raise UnusableUrl("The URL says both `ssl_ca` and `ssl_disabled=true`: leave one of them out.")
    return options, tuple(certificates)


def _shown_option(text: str, name: str) -> str:
    """By its name only where no password can have been cut in two by the `?`."""
    before, _, behind = text.partition("?")
    if "@" in before and "@" not in behind and re.fullmatch(r"[A-Za-z_]{1,40}", name):
        return f"The option `{name}` is not accepted, or said twice."
    return "An option is not accepted, or said twice."


def _is_ipv6(host: str) -> bool:
    try:
        return IPv6Address(host).scope_id is None
    except ValueError:
        return False
