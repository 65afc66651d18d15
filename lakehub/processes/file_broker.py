"""The embedded broker: Celery's queues as files in the instance's folder, safe for several processes at once.

Kombu's file system transport opens a message's file before it has written it, so a worker that is quick reads an empty
one and dies. Here a message appears under its name when it is whole, and is taken by one rename. The same for the table
that says which queues an exchange feeds.

A power cut or a full disk may still leave a file empty or cut off. Such a message is removed, as it only wakes a worker for what is
found in the database anyway; such a table is written anew. A message that may not be taken stays, and those behind it are taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import TRANSPORT_ALIASES, filesystem, virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads

from lakehub.processes.folder_watch import POLLING_S, FolderWatch

logger = logging.getLogger(__name__)

_DAMAGED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading raises of a file that is not what was written."""
MAX_WAIT_S = 5.0
"""Then the folder is looked into, whatever the kernel has told."""
MAX_LOGGED = 1000
"""Messages that a process remembers to have logged because it may not take them."""


class Channel(filesystem.Channel):
    # Kombu's two base classes call the second parameter `message` and `payload`.
    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        name = f"{time.time_ns():020}_{uuid4()}.{queue}.msg"
        _write_atomically(folder / name, dumps(payload))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = Path(self.data_folder_in)
        waiting = (name for name in _file_names(folder) if name.partition(".")[2] == f"{queue}.msg")
        for name in sorted(waiting):
            taken = folder / f".{uuid4()}.taken"
            try:
                (folder / name).rename(taken)
            except FileNotFoundError:
                continue  # another worker was faster, or the folder was removed
            except PermissionError as problem:
                _not_taken.note(folder / name, problem)
                continue
            try:
                payload = taken.read_bytes()
                taken.unlink()
            except FileNotFoundError:
                continue  # the folder was removed
            except PermissionError as problem:
                _remove_damaged(folder / name, taken, problem)
                continue
            try:
                message = loads(bytes_to_str(payload))
                self.Message(message, channel=self)  # has all that whoever takes it will ask of it
            except _DAMAGED as problem:
                _remove_damaged(folder / name, taken, problem)
                continue
            return message
        raise Empty

    def _size(self, queue: str) -> int:
        return sum(name.partition(".")[2] == f"{queue}.msg" for name in _file_names(Path(self.data_folder_in)))

    def _purge(self, queue: str) -> int:
        _make_folder(Path(self.data_folder_in))
        return int(super()._purge(queue))  # type: ignore[no-untyped-call]  # kombu's has no types

    def get_table(self, exchange: str) -> Any:
        """Where somebody has removed the folder, or damaged the file, with what this process has bound: its messages would go
        nowhere for ever."""
        try:
            table = super().get_table(exchange)  # type: ignore[no-untyped-call]  # kombu's has no types
        except _DAMAGED:
            with self._locked(exchange):
                table = self._sound_table(exchange)
        if table:
            return table
        bound = self._bound_here(exchange)
        for binding in bound:
            self._queue_bind(exchange, *binding)
        return super().get_table(exchange) if bound else table  # type: ignore[no-untyped-call]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        bound = _binding(routing_key, pattern, queue)
        with self._locked(exchange) as file:
            table = self._sound_table(exchange)
            if bound not in table:
                _write_atomically(file, dumps([bound, *table]))

    def _delete(self, queue: str, exchange: str, *arguments: Any, **keywords: Any) -> None:
        self.get_table(exchange)  # kombu's own reading of it does not get over damage
        super()._delete(queue, exchange, *arguments, **keywords)  # type: ignore[no-untyped-call]  # kombu's has no types

    @contextmanager
    def _locked(self, exchange: str) -> Iterator[Path]:
        """The file of the exchange, which nobody else writes meanwhile."""
        file: Path = self._exchange_file(exchange)
        _make_folder(file.parent)
        with file.with_suffix(".lock").open("w") as guard:
            filesystem.lock(guard, filesystem.LOCK_EX)
            yield file

    def _sound_table(self, exchange: str) -> Any:
        """For whoever has the lock. A file that is damaged is written anew, with what this process has bound."""
        try:
            return super().get_table(exchange)  # type: ignore[no-untyped-call]  # kombu's has no types
        except _DAMAGED as problem:
            file = self._exchange_file(exchange)
            logger.warning("%s is damaged (%s): it is written anew", file, problem)
            table = [_binding(*binding) for binding in self._bound_here(exchange)]
            _write_atomically(file, dumps(table))
            return table

    def _bound_here(self, exchange: str) -> Any:
        return self.state.exchanges.get(exchange, {}).get("table", ())


class Transport(filesystem.Transport):
    Channel = Channel
    # With an event loop each child of Celery's pool has a pipe of its own. Without one they share a queue, and one that is
    # killed while it waits for a task keeps the queue's lock: no task would run any more.
    implements = filesystem.Transport.implements.extend(asynchronous=True)

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)  # type: ignore[no-untyped-call]  # kombu's has no types
        # Kombu remembers for the whole process what it has bound, before it is: another thread's message went nowhere.
        self.state = virtual.BrokerState()
        self._watch: FolderWatch | None = None
        self._on_tick: tuple[set[Any], Any] | None = None

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """As kombu's, but it sleeps until a file appears. Raises TimeoutError after `timeout` seconds without a message."""
        deadline = None if timeout is None else time.monotonic() + timeout
        watch = self._folder_watch(connection)
        while not self._deliver_one():
            left = MAX_WAIT_S if deadline is None else min(MAX_WAIT_S, deadline - time.monotonic())
            if left <= 0:
                raise TimeoutError
            watch.wait(left)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Celery's loop turns when a file appears, when a task has ended, and every second."""
        watch = self._folder_watch(connection)
        if watch.fileno() >= 0:
            loop.add_reader(watch.fileno(), watch.clear)
        else:
            loop.call_repeatedly(POLLING_S, self._deliver_all, watch)
        self._on_tick = (loop.on_tick, partial(self._deliver_all, watch))
        loop.on_tick.add(self._on_tick[1])

    def _deliver_all(self, watch: FolderWatch) -> None:
        """As many as the consumer takes now."""
        watch.clear()
        while self._deliver_one():
            pass

    def _deliver_one(self) -> bool:
        """Whether there was one."""
        try:
            self.cycle.get(self._deliver)  # type: ignore[union-attr]  # set by its __init__
        except Empty:
            return False
        return True

    def _folder_watch(self, connection: Any) -> FolderWatch:
        if self._watch is None:
            self._watch = FolderWatch(Path(connection.client.transport_options["data_folder_in"]))
        return self._watch

    def close_connection(self, connection: Any) -> None:
        if self._on_tick is not None:
            ticks, tick = self._on_tick
            ticks.discard(tick)
            self._on_tick = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        super().close_connection(connection)  # type: ignore[no-untyped-call]


def register_transport() -> None:
    """Make `filesystem://` mean this transport, in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"


def _binding(routing_key: str, pattern: str, queue: str) -> Any:
    return filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")


def _remove_damaged(file: Path, taken: Path, problem: Exception) -> None:
    """`file`: its name in the queue."""
    logger.warning(
        "The message %s cannot be read (%s): it is removed. What it was sent for is asked for again", file, problem
    )
    taken.unlink(missing_ok=True)


class _NotTaken:
    """Messages that may not be taken out of the folder. They stay, and each look comes upon them: each is logged once a process."""

    def __init__(self) -> None:
        self._logged: set[Path] = set()

    def note(self, file: Path, problem: Exception) -> None:
        """`file`: its name in the queue."""
        if file in self._logged:
            return
        if len(self._logged) >= MAX_LOGGED:
            self._logged = {logged for logged in self._logged if logged.exists()}
        # Of more than so many at a time the rest are not named: whoever mends the folder's rights mends theirs too.
        if len(self._logged) < MAX_LOGGED:
            self._logged.add(file)
            logger.warning(
                "The message %s cannot be taken (%s) and stays where it is. Give the folder and what is in it to the user of the workers, "
                "or remove the file: what it was sent for is asked for again",
                file,
                problem,
            )


_not_taken = _NotTaken()


def _file_names(folder: Path) -> list[str]:
    """None where the folder was removed; it is made again."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except FileNotFoundError:
        _make_folder(folder)
        return []


def _write_atomically(file: Path, text: str) -> None:
    """Also into a folder that was removed. Of what cannot be written, as on a full disk, nothing is left."""
    unfinished = file.with_name(f".{uuid4()}.part")
    for is_last in (False, True):
        try:
            unfinished.write_text(text)
            unfinished.replace(file)
            return
        except FileNotFoundError:
            if is_last:
                raise
            _make_folder(file.parent)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise


def _make_folder(folder: Path) -> None:
    """For this user alone, whatever made it before."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
