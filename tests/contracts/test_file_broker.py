"""The embedded broker under what breaks kombu's own: a reader at the very moment that a message is written."""

from __future__ import annotations

import errno
import shutil
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty
from threading import Event

import pytest
from kombu import Consumer, Exchange, Message, Queue
from kombu.asynchronous import Hub
from kombu.connection import Connection
from kombu.simple import SimpleQueue

from lakehub.processes import file_broker
from tests.polling import scaled

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


def test_a_folder_that_was_removed_is_made_again_and_messages_arrive(connection: Connection, tmp_path: Path) -> None:
    """Whoever sends has bound the queue before, and does not bind it again: the table of who gets what is made again too."""
    with (
        connection.clone() as there,
        connection.SimpleQueue("default") as queue,
        there.SimpleQueue("default") as reader,
    ):
        queue.put({"number": 1})
        assert next_in(reader) == 1
        for folder in ("queue", "control"):
            shutil.rmtree(tmp_path / folder)
        with pytest.raises(Empty):
            reader.get(block=False)
        assert reader.qsize() == 0
        for folder in ("queue", "control"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
        queue.put({"number": 2})
        assert next_in(reader) == 2
        shutil.rmtree(tmp_path / "queue")
        assert reader.clear() == 0
        assert stat.S_IMODE((tmp_path / "queue").stat().st_mode) == 0o700


def test_a_message_that_does_not_fit_leaves_nothing_behind(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with connection.SimpleQueue("default") as queue:
        monkeypatch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            queue.put({"number": 1})
        monkeypatch.undo()
        assert list((tmp_path / "queue").iterdir()) == []
        queue.put({"number": 2})
        assert next_in(queue) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 512,
        b'{"body": "eyJudW1iZXIiOiAx',
        b"null",
        b'{"properties": {}}',
        b'{"body": "a", "properties": {"body_encoding": "base64", "delivery_tag": "1"}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=["empty", "zeros", "cut off", "null", "no tag", "no base64", "no text", "endless"],
)
def test_a_damaged_message_is_removed_with_a_line_of_the_log_and_the_next_one_is_taken(
    content: bytes, connection: Connection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a power cut or a full disk leaves it. A worker that reads one must not end."""
    with connection.SimpleQueue("default") as queue:
        queue.put({"number": 1})
        damaged = tmp_path / "queue" / f"{1:020}_damaged.default.msg"  # the oldest
        damaged.write_bytes(content)
        assert next_in(queue) == 1
        assert list((tmp_path / "queue").iterdir()) == []
        with pytest.raises(Empty):
            queue.get(block=False)
    assert [str(damaged) in record.getMessage() for record in caplog.records] == [True]


def test_a_message_that_another_user_wrote_is_removed(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By `sudo manage.py ...`: files are their owner's alone."""

    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    with connection.SimpleQueue("default") as queue:
        queue.put({"number": 1})
        monkeypatch.setattr(Path, "read_bytes", refuse)
        with pytest.raises(Empty):
            queue.get(block=False)
        monkeypatch.undo()
    assert list((tmp_path / "queue").iterdir()) == []
    assert "Permission denied" in caplog.text


@pytest.fixture
def not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files named so are another user's, in a folder whose files only their owners may rename."""
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if "not_ours" in path.name:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)


@pytest.mark.usefixtures("not_ours")
def test_a_message_that_may_not_be_taken_stays_is_logged_once_and_the_next_one_is_taken(
    connection: Connection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stays = tmp_path / "queue" / f"{1:020}_not_ours.default.msg"  # the oldest
    with connection.SimpleQueue("default") as queue:
        stays.write_bytes(b"{}")
        for number in range(3):
            queue.put({"number": number})
            assert next_in(queue) == number
    assert list((tmp_path / "queue").iterdir()) == [stays]
    assert len(caplog.messages) == 1
    assert f"{stays} cannot be taken" in caplog.text
    assert "removed" not in caplog.text


@pytest.mark.usefixtures("not_ours")
def test_so_many_messages_that_may_not_be_taken_are_logged_and_new_ones_once_those_are_gone(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(file_broker, "_not_taken", file_broker._NotTaken())
    monkeypatch.setattr(file_broker, "MAX_LOGGED", 2)
    stay = [tmp_path / "queue" / f"{number:020}_not_ours.default.msg" for number in range(4)]

    def logged() -> list[Path]:
        caplog.clear()
        with connection.SimpleQueue("default") as queue, pytest.raises(Empty):
            queue.get(block=False)
        return [file for message in caplog.messages for file in stay if str(file) in message]

    for file in stay:
        file.write_bytes(b"{}")
    assert logged() == stay[:2]
    assert logged() == []
    stay[0].unlink()
    assert logged() == stay[2:3]


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b'[["default", "", "def', b"[1]", b"\xff"])
@pytest.mark.parametrize("bound_before", [True, False])
def test_a_damaged_table_of_an_exchange_is_written_anew_and_messages_arrive(
    content: bytes,
    bound_before: bool,
    connection: Connection,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`bound_before`: by a process that is at work as the file is damaged; else by one that is started after that."""
    table = tmp_path / "control" / "default.exchange"
    with connection.clone() as there, there.SimpleQueue("default") as reader:
        sender = connection.SimpleQueue("default") if bound_before else None
        assert table.exists()
        table.write_bytes(content)
        queue = sender or connection.SimpleQueue("default")
        queue.put({"number": 1})
        assert next_in(reader) == 1
        queue.put({"number": 2})
        assert next_in(reader) == 2
        queue.close()
    assert [str(table) in record.getMessage() for record in caplog.records] == [True]


def test_a_queue_is_deleted_though_the_table_of_its_exchange_is_damaged(connection: Connection, tmp_path: Path) -> None:
    table = tmp_path / "control" / "default.exchange"
    with connection.channel() as channel:
        queue = Queue("default", Exchange("default"), channel=channel)
        queue.declare()
        assert "default" in table.read_text()
        table.write_bytes(b"")
        queue.delete()
    assert table.read_text() == "[]"


def test_a_reader_that_waits_is_woken_by_a_message_and_looks_at_nothing_meanwhile(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_broker, "MAX_WAIT_S", 60.0)
    looks: list[str] = []
    get = file_broker.Channel._get

    def counted(channel: file_broker.Channel, queue: str, timeout: float | None = None) -> object:
        looks.append(queue)
        return get(channel, queue, timeout)

    monkeypatch.setattr(file_broker.Channel, "_get", counted)
    received: list[int] = []
    begun = time.monotonic()
    with connection.clone() as reader, reader.channel() as channel, ThreadPoolExecutor(1) as pool:
        consumer = Consumer(channel, [Queue("default")], no_ack=True)
        consumer.register_callback(lambda body, _message: received.append(body["number"]))
        with consumer:
            waiting = pool.submit(reader.drain_events, timeout=60)
            with connection.clone() as writer, writer.SimpleQueue("default") as queue:
                queue.put({"number": 7})
            waiting.result(scaled(30))
    assert received == [7]
    assert time.monotonic() - begun < 30
    assert len(looks) <= 4


def test_an_event_loop_delivers_what_appears(connection: Connection) -> None:
    taken: list[int] = []

    def take(body: dict[str, int], message: Message) -> None:
        taken.append(body["number"])
        message.ack()

    loop = Hub()
    with connection, Consumer(connection.channel(), Queue("default"), callbacks=[take], accept=["json"]):
        connection.transport.register_with_event_loop(connection.connection, loop)
        with connection.clone() as sender, sender.SimpleQueue("default") as queue:
            for number in range(3):
                queue.put({"number": number})
                deadline = time.monotonic() + scaled(5)
                while len(taken) <= number and time.monotonic() < deadline:
                    loop.run_once()
    assert taken == [0, 1, 2]
    assert not loop.on_tick
