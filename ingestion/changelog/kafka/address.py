"""Where a Kafka is and how to log in, read from the URL of a changelog. It needs no client library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ingestion.changelog import ChangelogError
from lakehub.kernel.suggest import did_you_mean

THE_CLUSTERS_OWN = -1
"""Of replicas: as many as the brokers' `default.replication.factor` says."""
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?")
_PREFIX = re.compile(r"[A-Za-z0-9-]{0,100}")
_OPTIONS = ("partitions", "replicas", "timeout", "security", "mechanism", "ca")
_SECURITY = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_EXAMPLE = (
    "Write it as kafka://host:9092,host:9092/prefix?partitions=4, with user:password@ before the hosts to log in."
)
_ESCAPES = "In a user or a password write %40 for @, %2F for /, %3A for :, %3F for ? and %23 for #."


@dataclass(frozen=True)
class KafkaAddress:
    """`partitions` and `replicas`: of topics that are created. `login`: the client's settings for encryption and log-in, with the password."""

    brokers: str
    prefix: str = ""
    partitions: int = 1
    replicas: int = THE_CLUSTERS_OWN
    timeout_s: int = 30
    login: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_address(url: str) -> KafkaAddress:
    """Raises ChangelogError, which holds nothing of the URL that may be a password."""
    parts = _parse(url)
    brokers = _brokers(parts)  # first: where a host was forgotten, what follows may be of the password
    options = _options(parts)
    prefix = parts.path.strip("/")
    if not _PREFIX.fullmatch(prefix):
        raise ChangelogError(
            f"The changelog's URL has the prefix {prefix!r}. Use up to 100 letters, digits and hyphens: topics are named after it."
        )
    return KafkaAddress(
        brokers,
        prefix,
        partitions=_number(options, "partitions", 1, 10_000, otherwise=1),
        replicas=_number(options, "replicas", 1, 100, otherwise=THE_CLUSTERS_OWN),
        timeout_s=_number(options, "timeout", 1, 300, otherwise=30),
        login=_login(parts, options),
    )


def _parse(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ChangelogError(f"The changelog's URL does not parse. {_EXAMPLE} {_ESCAPES}") from None
    if parts.scheme != "kafka":
        raise ChangelogError(f"The changelog's URL does not begin with kafka://. {_EXAMPLE}")
    if parts.fragment or "@" in parts.path + parts.query:
        raise ChangelogError(f"The changelog's URL has a # or an @ behind the hosts. {_ESCAPES}")
    return parts


def _brokers(parts: SplitResult) -> str:
    brokers = parts.netloc.rpartition("@")[2].split(",")
    for number, broker in enumerate(brokers, 1):
        if not _BROKER.fullmatch(broker):  # it is not shown: it may be the password
            raise ChangelogError(f"Broker {number} in the changelog's URL is not a host with a port. {_EXAMPLE}")
    return ",".join(brokers)


def _options(parts: SplitResult) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise ChangelogError(f"The changelog's URL has the option {name!r}.{did_you_mean(name, _OPTIONS)}")
    return options


def _number(options: Mapping[str, str], name: str, least: int, most: int, *, otherwise: int) -> int:
    text = options.get(name, str(otherwise))
    if name in options and not (text.isdecimal() and least <= int(text) <= most):
        raise ChangelogError(f"The changelog's URL has {name}={text!r}. Write a whole number from {least} to {most:,}.")
    return int(text)


def _choice(options: Mapping[str, str], name: str, choices: tuple[str, ...], *, otherwise: str) -> str:
    value = options.get(name, otherwise)
    if value not in choices:
        raise ChangelogError(f"The changelog's URL has {name}={value!r}.{did_you_mean(value, choices)}")
    return value


def _login(parts: SplitResult, options: Mapping[str, str]) -> dict[str, str]:
    """A password never goes over an open connection unless the URL asks for it."""
    has_user = "@" in parts.netloc
    security = _choice(options, "security", _SECURITY, otherwise="sasl_ssl" if has_user else "plaintext")
    if has_user != security.startswith("sasl_"):
        raise ChangelogError(
            f"The changelog's URL has security={security}, {'which does not log in, and a user' if has_user else 'which logs in, and no user'}. "
            "Write security=sasl_ssl with a user and a password, or security=ssl without."
        )
    settings = {"security.protocol": security}
    if has_user:
        settings |= _credentials(parts) | {
            "sasl.mechanism": _choice(options, "mechanism", _MECHANISMS, otherwise="SCRAM-SHA-512")
        }
    if ca := options.get("ca"):
        if not security.endswith("ssl") or not Path(ca).is_file():
            raise ChangelogError(
                f"The changelog's URL has ca={ca!r}. Name a file of certificates, together with security=ssl or sasl_ssl."
            )
        settings["ssl.ca.location"] = ca
    return settings


def _credentials(parts: SplitResult) -> dict[str, str]:
    if not parts.username or not parts.password:
        raise ChangelogError(f"The changelog's URL has a user without a password, or the reverse. {_EXAMPLE}")
    return {"sasl.username": unquote(parts.username), "sasl.password": unquote(parts.password)}
