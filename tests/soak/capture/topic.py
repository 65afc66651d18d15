"""A topic of somebody else's Kafka beside the tables: messages with whole rows as JSON, of each key of which the last one counts, and none deletes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from random import Random
from threading import Event, Thread
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.polling import scaled
from tests.soak.capture.accounting.binlog import Change, Changes
from tests.soak.capture.tables import comparable

TOPIC, TOPIC_KEY = "stock", "message_key"
_PARTITIONS, _KEYS = 2, 150
_VALUES: dict[str, tuple[Any, ...]] = {
    "name": ("Köln", "", "😀", None),
    "pieces": (0, 7, 2**40, None),
    "price": (0.5, -1e300, None),
    "is_sold": (True, False, None),
}


class ForeignTopic:
    """Its writer pauses with those of the tables."""

    def __init__(self, brokers: str, random: Random) -> None:
        self._brokers, self._random = brokers, Random(random.random())
        # A server that is killed is no news.
        self._settings: dict[str, Any] = {"bootstrap.servers": brokers, "log_level": 0}
        self._is_over, self._is_writing, self._idle = Event(), Event(), Event()

    @property
    def url(self) -> str:
        return f"kafka://{self._brokers}/{TOPIC}*"

    @cached_property
    def _producer(self) -> Producer:
        """What the server has not confirmed when it is killed is sent again, once and in order."""
        return Producer(self._settings | {"enable.idempotence": True, "linger.ms": 5})

    def create(self) -> None:
        admin = AdminClient(self._settings)
        (future,) = admin.create_topics([NewTopic(TOPIC, _PARTITIONS, 1)]).values()
        future.result(scaled(30))
        self._producer.produce(TOPIC, json.dumps({name: values[0] for name, values in _VALUES.items()}), "k0")
        self._flush()

    @contextmanager
    def writer(self) -> Iterator[None]:
        thread = Thread(target=self._write, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def resume(self) -> None:
        self._idle.clear()
        self._is_writing.set()

    def pause(self) -> None:
        """All is there when it returns."""
        self._is_writing.clear()
        assert self._idle.wait(scaled(60)), f"the writer of {TOPIC} goes on"
        self._flush()

    def rows(self) -> dict[tuple[str], dict[str, Any]]:
        """By key, as they must be in the lake."""
        rows: dict[tuple[str], dict[str, Any]] = {}
        for message in self._messages():
            key, value = _key(message), message.value()
            rows.pop((key,), None)
            if value is not None:
                fields = json.loads(value)
                rows[(key,)] = {TOPIC_KEY: key} | {name: comparable(fields.get(name)) for name in _VALUES}
        return rows

    def changes(self) -> Changes:
        """As they must be in the changelog, from its first message on: the offset is the number, as nobody adds partitions."""
        return Changes(
            Change(message.offset() or 0, (_key(message),), message.value() is None) for message in self._messages()
        )

    def _messages(self) -> Iterator[Message]:
        consumer = Consumer(self._settings | {"group.id": "soak", "enable.partition.eof": True})
        try:
            consumer.assign([TopicPartition(TOPIC, each, OFFSET_BEGINNING) for each in range(_PARTITIONS)])
            left, deadline = _PARTITIONS, time.monotonic() + scaled(30)
            while left:
                assert time.monotonic() < deadline, f"{TOPIC} is not read to its end"
                message = consumer.poll(1.0)
                if message is None:
                    continue
                problem = message.error()
                if problem is None:
                    yield message
                elif problem.name() == "_PARTITION_EOF":
                    left -= 1
        finally:
            consumer.close()

    def _write(self) -> None:
        random = self._random
        while not self._is_over.is_set():
            if not self._is_writing.is_set():
                self._idle.set()
                time.sleep(0.05)
                continue
            for _ in range(random.choice((1, 5, 20))):
                fields = {name: random.choice(values) for name, values in _VALUES.items() if random.random() < 0.9}
                value = None if random.random() < 0.15 else json.dumps(fields)
                self._producer.produce(TOPIC, value, f"k{random.randrange(_KEYS)}")
            self._producer.poll(0)
            time.sleep(random.random() * 0.2)

    def _flush(self) -> None:
        left = self._producer.flush(scaled(60))
        assert not left, f"{left} messages of {TOPIC} are not sent"


def _key(message: Message) -> str:
    return (message.key() or b"").decode()
