"""Reading the environment: every value is typed, and a bad one is refused by name."""

from __future__ import annotations

import os
from urllib.parse import parse_qsl, unquote, urlsplit

from lakehub.kernel.addresses import host_pattern
from lakehub.kernel.sizes import memory as sizes
from lakehub.kernel.suggest import did_you_mean


class InvalidSetting(ValueError):
    """A setting has a value that cannot be used."""


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


def flag(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("0", "false", "no", "off", ""):
        return False
    raise InvalidSetting(f"{name}={value!r} is neither true nor false: set 1 or 0.")


def number(name: str, default: int, *, least: int | None = None) -> int:
    value = os.environ.get(name)
    try:
        parsed = default if value is None else int(value)
    except ValueError:
        raise InvalidSetting(f"{name}={value!r} is not a whole number.") from None
    if least is not None and parsed < least:
        raise InvalidSetting(f"{name}={value!r} is too few: {least} is the least.")
    return parsed


def memory_mib(name: str, default: int) -> int:
    """MiB, written as Spark writes memory: `4g`."""
    value = os.environ.get(name)
    parsed = default if value is None else sizes.memory_mib(value)
    if parsed is None or parsed < 1:
        raise InvalidSetting(f"{name}={value!r} is not a memory size: write 512m or 4g.")
    return parsed


def limits(name: str, default: str) -> dict[str, int]:
    """`spark=1,sqlalchemy=4` as a mapping; what is not named has no limit."""
    limits_by_name = {}
    for word in words(name, default):
        limit_name, _, count = word.partition("=")
        if not count.isdecimal() or not int(count):
            raise InvalidSetting(f"{name} says {word!r}: write {limit_name}=1 or more, or leave it out for no limit.")
        limits_by_name[limit_name] = int(count)
    return limits_by_name


def choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    value = os.environ.get(name, default)
    if value not in choices:
        raise InvalidSetting(f"{name}={value!r} is not known.{did_you_mean(value, choices)}")
    return value


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def hosts(name: str) -> list[str]:
    """Names, `*.` and a name, addresses and networks, as `is_listed_host` compares them."""
    patterns = []
    for word in words(name):
        try:
            patterns.append(host_pattern(word))
        except ValueError:
            raise InvalidSetting(
                f"{name} says {word!r}: write a host without a port, such as db.example.com, *.example.com or 10.1.0.0/16."
            ) from None
    return patterns


def issuer(name: str) -> str:
    """An address that tokens are signed for: https, or plain http on loopback. Empty where nothing is set."""
    value = os.environ.get(name, "")
    parts = urlsplit(value)
    is_local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    if value and not (
        parts.hostname and (parts.scheme == "https" or is_local) and not parts.query and not parts.fragment
    ):
        raise InvalidSetting(f"{name}={value!r} is not an issuer: write https://login.example.com, without ? and #.")
    return value


def receiver(name: str) -> str:
    """An address that is posted to, which holds no user and password. Empty where nothing is set."""
    value = os.environ.get(name, "")
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("https", "http") and bool(parts.hostname) and (parts.port or 443) > 0
    except ValueError:
        is_address = False
    has_password = "@" in urlsplit(value).netloc if is_address else False
    if value and (not is_address or has_password or not value.isascii() or not value.isprintable() or " " in value):
        shown = "an address with a user and password" if has_password else repr(value)
        raise InvalidSetting(f"{name} is {shown}: write https://host/path, and a key in a setting of its own.")
    return value


def bearer(name: str) -> str:
    """A key as a header has it; it is not repeated where it cannot be one."""
    value = os.environ.get(name, "")
    if value and not (value.isascii() and value.isprintable() and " " not in value):
        raise InvalidSetting(f"{name} is not a valid key: use ASCII letters, digits and symbols without spaces.")
    return value


def require_with(name: str, *needed: str) -> None:
    """Where `name` is set, so must the others be."""
    missing = [other for other in needed if not os.environ.get(other)]
    if os.environ.get(name) and missing:
        raise InvalidSetting(f"{name} is set, but {' and '.join(missing)} is not: set it, or unset {name}.")


def roles_by_group(name: str, roles: tuple[str, ...]) -> dict[str, list[tuple[str, str]]]:
    """`admins=flight-ops:admin,all=flight-ops:viewer`: from the group to pairs of a team and a role in it."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for word in words(name):
        group, _, place = word.rpartition("=")
        team, _, role = place.partition(":")
        if not group or not team or role not in roles:
            raise InvalidSetting(
                f"{name} says {word!r}: write group=team:role with one of the roles {', '.join(roles)}."
            )
        pairs.setdefault(group, []).append((team, role))
    return pairs


PREPARE_THRESHOLD = 5
"""After so many times on one connection a statement is prepared, where it has its values beside the text."""
_TIMEOUTS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 30_000,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""Of PostgreSQL, in libpq's words: seconds until a server has let us in, milliseconds until it has confirmed what was sent, and
seconds after which one that says nothing is asked whether it is still there. Without them nobody leaves a server that is silent for
minutes, and one whose machine is gone ever."""
_DATABASE_ENGINES = {"sqlite": "django.db.backends.sqlite3", "postgresql": "django.db.backends.postgresql"}


def database(url: str) -> dict[str, object]:
    """A Django database from `sqlite:///path` or `postgresql://user:password@host:port/name?sslmode=...`.

    With `prepare_threshold=none` PostgreSQL keeps no plan of what Lakehub asks it again and again, for a pooler that cannot do that.
    A PostgreSQL that is silent is left after a few seconds; libpq's own words in the URL, such as `connect_timeout`, come before these.
    """
    parts = urlsplit(url)
    if parts.scheme not in _DATABASE_ENGINES:
        raise InvalidSetting(
            f"LAKEHUB_DATABASE_URL starts with {parts.scheme!r}.{did_you_mean(parts.scheme, _DATABASE_ENGINES)}"
        )
    if parts.scheme == "sqlite":
        return {
            "ENGINE": _DATABASE_ENGINES["sqlite"],
            "NAME": unquote(parts.path[1:]),
            "CONN_MAX_AGE": 60,
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000;",
            },
        }
    return {
        "ENGINE": _DATABASE_ENGINES[parts.scheme],
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "OPTIONS": {**_TIMEOUTS, **_with_prepare_threshold(dict(parse_qsl(parts.query)))},
    }


def _with_prepare_threshold(options: dict[str, str]) -> dict[str, str | int | None]:
    threshold = options.get("prepare_threshold", str(PREPARE_THRESHOLD))
    if threshold != "none" and not threshold.isdecimal():
        raise InvalidSetting(
            f"LAKEHUB_DATABASE_URL has prepare_threshold={threshold!r}: write `none` or after how many times a statement is prepared."
        )
    return {**options, "prepare_threshold": None if threshold == "none" else int(threshold)}
