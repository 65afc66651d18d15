"""Where a Kafka is and how to log in, read from the URL of a changelog. It needs no client library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestion.changelog import ChangelogError
from lakehub.source_topics.kafka_url import KafkaUrlForm, UnusableKafkaUrl

THE_CLUSTERS_OWN = -1
"""Of replicas: as many as the brokers' `default.replication.factor` says."""
_PREFIX = re.compile(r"[A-Za-z0-9-]{0,100}")
_FORM = KafkaUrlForm(
    "The changelog's URL",
    "Write it as kafka://host:9092,host:9092/prefix?partitions=4, with user:password@ before the hosts to log in.",
    ("partitions", "replicas"),
)


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
    try:
        parts = _FORM.read(url)
        partitions = _FORM.number(parts.options, "partitions", 1, 10_000, otherwise=1)
        replicas = _FORM.number(parts.options, "replicas", 1, 100, otherwise=THE_CLUSTERS_OWN)
    except UnusableKafkaUrl as problem:
        raise ChangelogError(str(problem)) from None
    if not _PREFIX.fullmatch(parts.path):
        raise ChangelogError(
            f"The changelog's URL has the prefix {parts.path!r}. Use up to 100 letters, digits and hyphens: topics are named after it."
        )
    return KafkaAddress(parts.brokers, parts.path, partitions, replicas, parts.timeout_s, parts.login)
