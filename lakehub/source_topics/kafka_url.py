"""The URL of a Kafka: its brokers, how to log in, and what else it says. It needs no client library."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote

from lakehub.kernel.suggest import did_you_mean

_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
"""RFC 3986, appendix B. Python's own reader takes one host only where it has brackets, in its later versions."""
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?")
_LOGIN_OPTIONS = ("timeout", "security", "mechanism", "ca")
_SECURITY = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_ESCAPES = "In a user or a password write %40 for @, %2F for /, %3A for :, %3F for ?, %23 for # and %5B for [."


class UnusableKafkaUrl(ValueError):
    """The message holds nothing of the URL that may be a password."""


@dataclass(frozen=True)
class KafkaUrl:
    """`login`: the client's settings for encryption and log-in, with the password. `path`: without its slashes. `options`: those of the owner."""

    brokers: str
    path: str
    timeout_s: int
    options: Mapping[str, str] = field(repr=False)
    login: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class KafkaUrlForm:
    """`owner`: whose URL it is, as errors name it: `The changelog's URL`. `options`: which it takes besides those of the log-in."""

    owner: str
    example: str
    options: tuple[str, ...] = ()

    def read(self, url: str) -> KafkaUrl:
        """Raises UnusableKafkaUrl."""
        parts = self._parse(url)
        brokers = self._brokers(parts)  # first: where a host was forgotten, what follows may be of the password
        options = self._options(parts)
        timeout_s = self.number(options, "timeout", 1, 300, otherwise=30)
        return KafkaUrl(brokers, parts.path.strip("/"), timeout_s, options, self._login(parts, options))

    def number(self, options: Mapping[str, str], name: str, least: int, most: int, *, otherwise: int) -> int:
        """Raises UnusableKafkaUrl."""
        text = options.get(name, str(otherwise))
        if name in options and not (text.isdecimal() and least <= int(text) <= most):
            raise self._unusable(f"has {name}={text!r}. Write a whole number from {least} to {most:,}.")
        return int(text)

    def _parse(self, url: str) -> SplitResult:
        parts = SplitResult(*_PARTS.fullmatch(url).groups(""))  # type: ignore[union-attr]  # whatever it is, it matches
        if set("[]") & set(parts.netloc.rpartition("@")[0]):
            raise self._unusable(f"does not parse. {self.example} {_ESCAPES}")
        if parts.scheme.lower() != "kafka":
            raise self._unusable(f"does not begin with kafka://. {self.example}")
        if parts.fragment or "@" in parts.path + parts.query:
            raise self._unusable(f"has a # or an @ behind the hosts. {_ESCAPES}")
        return parts

    def _brokers(self, parts: SplitResult) -> str:
        brokers = parts.netloc.rpartition("@")[2].split(",")
        for number, broker in enumerate(brokers, 1):
            if not _BROKER.fullmatch(broker):  # it is not shown: it may be the password
                raise UnusableKafkaUrl(
                    f"Broker {number} in {self.owner[0].lower()}{self.owner[1:]} is not a host with a port. {self.example}"
                )
        return ",".join(brokers)

    def _options(self, parts: SplitResult) -> dict[str, str]:
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        options = dict(pairs)
        if repeated := next((name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1), None):
            raise self._unusable(f"has the option {repeated!r} twice. Write it once.")
        known = (*self.options, *_LOGIN_OPTIONS)
        for name in options:
            if name not in known:
                raise self._unusable(f"has the option {name!r}.{did_you_mean(name, known)}")
        return options

    def _choice(self, options: Mapping[str, str], name: str, choices: Collection[str], *, otherwise: str) -> str:
        value = options.get(name, otherwise)
        if value not in choices:
            raise self._unusable(f"has {name}={value!r}.{did_you_mean(value, choices)}")
        return value

    def _login(self, parts: SplitResult, options: Mapping[str, str]) -> dict[str, str]:
        """A password never goes over an open connection unless the URL asks for it."""
        has_user = "@" in parts.netloc
        security = self._choice(options, "security", _SECURITY, otherwise="sasl_ssl" if has_user else "plaintext")
        if has_user != security.startswith("sasl_"):
            raise self._unusable(
                f"has security={security}, {'which does not log in, and a user' if has_user else 'which logs in, and no user'}. "
                "Write security=sasl_ssl with a user and a password, or security=ssl without."
            )
        settings = {"security.protocol": security}
        if has_user:
            mechanism = self._choice(options, "mechanism", _MECHANISMS, otherwise="SCRAM-SHA-512")
            settings |= self._credentials(parts) | {"sasl.mechanism": mechanism}
        if ca := options.get("ca"):
            if not security.endswith("ssl") or not Path(ca).is_file():
                raise self._unusable(
                    f"has ca={ca!r}. Name a file of certificates, together with security=ssl or sasl_ssl."
                )
            settings["ssl.ca.location"] = ca
        return settings

    def _credentials(self, parts: SplitResult) -> dict[str, str]:
        if not parts.username or not parts.password:
            raise self._unusable(f"has a user without a password, or the reverse. {self.example}")
        return {"sasl.username": unquote(parts.username), "sasl.password": unquote(parts.password)}

    def _unusable(self, why: str) -> UnusableKafkaUrl:
        return UnusableKafkaUrl(f"{self.owner} {why}")
