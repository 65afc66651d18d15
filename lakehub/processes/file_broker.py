"""The embedded broker: Celery's queues as files in the instance's folder, safe for several processes at once.

Kombu's file system transport opens a message's file before it has written it, so a worker that is quick reads an empty
one and dies. Here a message appears under its name when it is whole, and is taken by one rename. The same for the table
that says which queues an exchange feeds.
"""

from __future__ import annotations

import time
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import TRANSPORT_ALIASES, filesystem, virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads


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
                continue  # another worker was faster
            payload = taken.read_bytes()
            taken.unlink()
            return loads(bytes_to_str(payload))
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        file = self._exchange_file(exchange)
        bound = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.with_suffix(".lock").open("w") as guard:
            filesystem.lock(guard, filesystem.LOCK_EX)
            table = self.get_table(exchange)
            if bound not in table:
                _write_atomically(file, dumps([bound, *table]))


class Transport(filesystem.Transport):
    Channel = Channel

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)  # type: ignore[no-untyped-call]  # kombu's has no types
        # Kombu remembers for the whole process what it has bound, before it is: another thread's message went nowhere.
        self.state = virtual.BrokerState()


def register_transport() -> None:
    """Make `filesystem://` mean this transport, in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"


def _file_names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def _write_atomically(file: Path, text: str) -> None:
    unfinished = file.with_name(f".{uuid4()}.part")
    unfinished.write_text(text)
    unfinished.replace(file)
