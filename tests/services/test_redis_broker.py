"""Redis as the broker: what a worker has taken when its connection is lost does not end it."""

from __future__ import annotations

from uuid import uuid4

import pytest
from kombu import Connection, Queue
from kombu.transport import redis

import lakehub.processes.celery_app  # noqa: F401  registers the transport
from lakehub.processes import redis_broker


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
