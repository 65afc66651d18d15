"""How a client of Kafka is set up, why its connection failed last, and what an administrator's client is asked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

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


@dataclass
class KafkaClient:
    """The settings of a client, and why its connection failed last: a call that was not answered says only that.

    `brokers`: `host:port` with commas. `login`: settings for encryption and log-in, with the password.
    """

    brokers: str
    login: Mapping[str, str] = field(repr=False)
    timeout_s: int
    reason: str = ""

    def settings(self, **own: object) -> dict[str, Any]:
        """`own`: those of one client, with `_` for `.`. The library logs each of twenty attempts a second: what counts is in the error instead."""
        return {
            **self.login,
            "bootstrap.servers": self.brokers,
            "client.id": "lakehub",
            "error_cb": self._note,
            "logger": _LOGGER,
            "log_level": _CRITICAL,
            **{name.replace("_", "."): value for name, value in own.items()},
        }

    def failure(self, attempt: str, problem: BaseException) -> Exception:
        """`attempt`: what was tried, as a noun."""
        raise NotImplementedError

    def silence(self, attempt: str, problem: BaseException) -> str:
        """In words, with the reason; empty: the brokers have answered."""
        error = problem.args[0] if problem.args else None
        if not isinstance(problem, TimeoutError) and not (
            isinstance(error, KafkaError) and error.code() in _UNANSWERED
        ):
            return ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"Kafka at {self.brokers} did not answer {attempt} within {self.timeout_s} s{reason}."

    def refusal(self, attempt: str, problem: BaseException) -> tuple[str, int]:
        """In words, and its code."""
        error = problem.args[0] if problem.args else None
        text, code = (
            (error.str(), error.code()) if isinstance(error, KafkaError) else (str(problem), KafkaError.UNKNOWN)
        )
        return f"Kafka at {self.brokers} refused {attempt}: {text.rstrip('.')}.", int(code)

    def _note(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # which follows the reason
            self.reason = error.str()


@dataclass
class KafkaAdmin:
    """Raises what `client` makes of a failure. `timeout_s`: of one request, after which the client gives up."""

    client: KafkaClient
    timeout_s: int

    @cached_property
    def api(self) -> AdminClient:
        return AdminClient(self.client.settings())

    def renew(self) -> None:
        """Another client asks from now on."""
        self.__dict__.pop("api", None)

    @contextmanager
    def answering(self, attempt: str) -> Iterator[None]:
        try:
            yield
        except (KafkaException, TimeoutError) as problem:
            self.api.poll(0)  # for the reason
            raise self.client.failure(attempt, problem) from problem

    def result(self, future: Future[Any]) -> Any:
        """The client gives up first, unless it hangs."""
        return future.result(self.timeout_s + 5)
