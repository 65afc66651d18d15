"""How a client of Kafka is set up, and what its errors say."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from ingestion.changelog import ChangelogError
from ingestion.changelog.kafka.address import KafkaAddress

_LOGGER = logging.getLogger(__name__)
_CRITICAL = 2
_UNANSWERED = (
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._AUTHENTICATION,
    KafkaError.REQUEST_TIMED_OUT,
)
_RIGHTS = " Give the user of the changelog's URL that right (docs/change-capture.md)."
_REMEDIES = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.INVALID_REPLICATION_FACTOR: " Write replicas= in the changelog's URL, with as many as there are brokers at most.",
    KafkaError.INVALID_TIMESTAMP: " Set the clock of this machine.",
    KafkaError.MSG_SIZE_TOO_LARGE: " Let the topic's max.message.bytes be.",
}


@dataclass
class Connection:
    """The settings of a client, and why its connection failed last: a call that was not answered only says so."""

    address: KafkaAddress
    reason: str = ""

    def settings(self, **own: object) -> dict[str, Any]:
        """`own`: those of one client, with `_` for `.`. The library logs each of twenty attempts a second: what counts is in the error instead."""
        return {
            **self.address.login,
            "bootstrap.servers": self.address.brokers,
            "client.id": "lakehub",
            "error_cb": self._note,
            "logger": _LOGGER,
            "log_level": _CRITICAL,
            **{name.replace("_", "."): value for name, value in own.items()},
        }

    def _note(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # which follows the reason
            self.reason = error.str()

    def failure(self, attempt: str, problem: BaseException) -> ChangelogError:
        """`attempt`: what was tried, as a noun."""
        error = problem.args[0] if problem.args else None
        if isinstance(problem, TimeoutError) or (isinstance(error, KafkaError) and error.code() in _UNANSWERED):
            reason = f" ({self.reason})" if self.reason else ""
            return ChangelogError(
                f"Kafka at {self.address.brokers} did not answer {attempt} within {self.address.timeout_s} s{reason}. "
                "Check that it runs, that this machine reaches it, and the user and the password in the changelog's URL."
            )
        reason, code = (
            (error.str(), error.code()) if isinstance(error, KafkaError) else (str(problem), KafkaError.UNKNOWN)
        )
        return ChangelogError(
            f"Kafka at {self.address.brokers} refused {attempt}: {reason.rstrip('.')}.{_REMEDIES.get(code, '')}"
        )
