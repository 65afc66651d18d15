"""Redis as the broker: a lost connection does not end a worker that has taken a task, and nobody waits for a server that is silent."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from celery import current_app
from kombu import Connection, Message, Queue
from kombu.exceptions import OperationalError
from kombu.transport import redis

import lakehub.processes.celery_app  # noqa: F401  registers the transport
from lakehub.processes import redis_broker
from lakehub.processes.broker_options import SILENCE_S, transport_options
from lakehub.processes.task_wakeup import send_task
from tests.tcp_forwarder import TcpForwarder


def test_a_lost_connection_is_closed_twice_as_celery_does(redis_url: str) -> None:
    channel = _channel_that_took(redis_url)
    assert isinstance(channel, redis_broker.Channel)
    _lose(channel)
    channel.close()


def test_kombus_own_fails_there(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_broker.Transport, "Channel", redis.Channel)
    channel = _channel_that_took(redis_url)
    _lose(channel)
    with pytest.raises(AttributeError, match="hostname"):
        channel.close()


def test_an_orderly_end_hands_back(redis_url: str) -> None:
    name = f"test-{uuid4()}"
    channel = _channel_that_took(redis_url, name)
    channel.close()
    with Connection(redis_url) as later:
        queue = Queue(name, channel=later.channel(), auto_delete=True)
        message = queue.get()
        assert message is not None
        message.ack()
        queue.delete()


@pytest.fixture
def forwarder(redis_url: str) -> Iterator[TcpForwarder]:
    server = urlsplit(redis_url)
    with TcpForwarder((server.hostname or "", server.port or 0)) as opened:
        yield opened


def _through(forwarder: TcpForwarder, **options: object) -> Connection:
    url = f"redis://127.0.0.1:{forwarder.port}/0"
    return Connection(url, transport_options=transport_options(url, Path()) | options)


def test_nobody_waits_for_a_server_that_is_silent_from_the_start(
    forwarder: TcpForwarder, monkeypatch: pytest.MonkeyPatch
) -> None:
    forwarder.be_silent()
    monkeypatch.setattr(current_app, "connection_for_write", lambda: _through(forwarder))
    began = time.monotonic()
    with pytest.raises(OperationalError):
        send_task("tests.nothing", timedelta(seconds=5))
    assert time.monotonic() - began < 3 * SILENCE_S


def test_nobody_waits_for_a_server_that_falls_silent(forwarder: TcpForwarder) -> None:
    with _through(forwarder) as connection:
        producer = connection.Producer(connection.channel())
        producer.publish({}, routing_key="test-nobody")
        forwarder.be_silent()
        began = time.monotonic()
        with pytest.raises(connection.connection_errors):
            producer.publish({}, routing_key="test-nobody")
    assert time.monotonic() - began < 3 * SILENCE_S


def test_a_worker_waits_for_longer_than_a_silent_server_is_given(forwarder: TcpForwarder) -> None:
    came: list[Message] = []
    with _through(forwarder) as connection:
        queue = Queue(f"test-{uuid4()}", channel=connection.channel(), auto_delete=True)
        with connection.Consumer(queue, callbacks=[lambda _, message: came.append(message)], no_ack=True):
            _wait(connection, seconds=1)
            producer, connected = connection.Producer(connection.channel()), forwarder.accepted
            _wait(connection, seconds=SILENCE_S + 2)
            producer.publish({}, routing_key=queue.name)
            _wait(connection, seconds=2)
            # The producer's channel has two, made as it is first used.
            assert (len(came), forwarder.accepted <= connected + 2) == (1, True)


def test_a_worker_leaves_a_server_that_fell_silent(forwarder: TcpForwarder) -> None:
    with _through(forwarder, health_check_interval=1) as connection:
        queue = Queue(f"test-{uuid4()}", channel=connection.channel(), auto_delete=True)
        with connection.Consumer(queue, callbacks=[lambda *_: None]), suppress(*connection.connection_errors):
            with suppress(socket.timeout):
                connection.drain_events(timeout=1)
            before = forwarder.accepted
            forwarder.be_silent()
            until = time.monotonic() + 5 * SILENCE_S
            while forwarder.accepted == before and time.monotonic() < until:
                with suppress(socket.timeout):
                    connection.drain_events(timeout=1)
        assert forwarder.accepted > before or time.monotonic() < until


def _wait(connection: Connection, *, seconds: float) -> None:
    """As a worker waits for tasks."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(socket.timeout):
            connection.drain_events(timeout=0.5)


def _channel_that_took(url: str, name: str = "") -> redis.Channel:
    """It has a message that is not acknowledged."""
    channel = Connection(url).channel()
    queue = Queue(name or f"test-{uuid4()}", channel=channel)
    queue.declare()
    with channel.connection.client.Producer(channel) as producer:
        producer.publish({}, routing_key=queue.name)
    assert queue.get() is not None
    return channel


def _lose(channel: redis.Channel) -> None:
    """As `Connection.collect` leaves it where it could not close it."""
    channel.connection.client = None
