"""Where the topics of a connection are: brokers, log-in, which topics are listed, and the registry of their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import SplitResult, urlsplit

from lakehub.source_topics.kafka_url import KafkaUrlForm, UnusableKafkaUrl

_PORT = "9092"
_MOST_LETTERS = 250
_FORM = KafkaUrlForm(
    "The connection's URL",
    "Write it as kafka://user:password@host:9092,host:9092/orders-*?registry=https://registry.example.org.",
    ("registry",),
)


@dataclass(frozen=True)
class TopicsAddress:
    """`brokers`: each `host:port`. `listed`: names and patterns of topics (`orders-*`), with commas; empty: all. `registry`: its URL, with a log-in
    where it has one; empty: there is none."""

    brokers: tuple[str, ...]
    listed: str = ""
    timeout_s: int = 30
    login: Mapping[str, str] = field(default_factory=dict, repr=False)
    registry: str = field(default="", repr=False)

    @property
    def server(self) -> str:
        """The cluster, as the process that taps it names it."""
        return f"kafka:{','.join(sorted(self.brokers))}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those that are connected to first; brokers advertise others."""
        of_brokers = [host_of_broker(broker) for broker in self.brokers]
        return tuple(dict.fromkeys([*of_brokers, *filter(None, [urlsplit(self.registry).hostname])]))

    def lists(self, topic: str) -> bool:
        patterns = [pattern for pattern in self.listed.split(",") if pattern]
        return not patterns or any(fnmatchcase(topic, pattern) for pattern in patterns)


def read_topics_url(url: str) -> TopicsAddress:
    """Raises UnusableKafkaUrl, which holds nothing of the URL that may be a password."""
    parts = _FORM.read(url)
    registry = parts.options.get("registry", "")
    if registry:
        _registry_parts(registry)
    brokers = tuple(dict.fromkeys(map(with_port, parts.brokers.lower().split(","))))
    if len(",".join(brokers)) > _MOST_LETTERS:
        raise UnusableKafkaUrl(
            f"The connection's URL names {len(brokers)} brokers. Name two or three: they tell of all others."
        )
    return TopicsAddress(brokers, parts.path, parts.timeout_s, parts.login, registry)


def host_of_broker(broker: str) -> str:
    return broker.rpartition(":")[0].strip("[]")


def with_port(broker: str) -> str:
    """As clients connect where none is named."""
    has_port = ":" in broker.rpartition("]")[2]
    return broker if has_port else f"{broker}:{_PORT}"


def _registry_parts(registry: str) -> SplitResult:
    try:
        parts = urlsplit(registry)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UnusableKafkaUrl(
            "The connection's URL has a registry that is not a URL. Write registry=https://registry.example.org:8081; for one that logs in "
            "registry=https%3A%2F%2Fuser:password%40registry.example.org."
        )
    return parts
