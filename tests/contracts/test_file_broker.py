"""The embedded broker under what breaks kombu's own: a reader at the very moment that a message is written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty
from threading import Event

import pytest
from kombu.connection import Connection
from kombu.simple import SimpleQueue

from lakehub.processes import file_broker

SENT = 300


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    (tmp_path / "queue").mkdir()
    options: dict[str, str] = {"data_folder_in": str(tmp_path / "queue"), "data_folder_out": str(tmp_path / "queue")}
    options |= {"control_folder": str(tmp_path / "control")}
    return Connection(transport=file_broker.Transport, transport_options=options)


def next_in(queue: SimpleQueue) -> int:
    message = queue.get(block=False)
    message.ack()
    return int(message.payload["number"])


def take_until(done: Event, connection: Connection) -> list[int]:
    taken: list[int] = []
    with connection.clone() as own, own.SimpleQueue("default") as queue:
        while True:
            finished = done.is_set()
            try:
                taken.append(next_in(queue))
            except Empty:
                if finished:
                    return taken


def test_each_message_is_taken_once_and_whole_by_readers_that_race(connection: Connection) -> None:
    done = Event()
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(take_until, done, connection) for _ in range(3)]
        with connection.clone() as own, own.SimpleQueue("default") as queue:
            for number in range(SENT):
                queue.put({"number": number})
        done.set()
        taken = [number for reader in readers for number in reader.result()]
    assert sorted(taken) == list(range(SENT))


def test_messages_come_in_the_order_sent(connection: Connection) -> None:
    with connection.SimpleQueue("default") as queue:
        for number in range(20):
            queue.put({"number": number})
        assert [next_in(queue) for _ in range(20)] == list(range(20))


def test_queues_do_not_mix(connection: Connection) -> None:
    with connection.SimpleQueue("default") as default, connection.SimpleQueue("spark") as spark:
        spark.put({"number": 1})
        with pytest.raises(Empty):
            default.get(block=False)
        assert next_in(spark) == 1


def test_a_message_put_back_comes_again(connection: Connection) -> None:
    with connection.SimpleQueue("default") as queue:
        queue.put({"number": 1})
        queue.get(block=False).requeue()
        assert next_in(queue) == 1
