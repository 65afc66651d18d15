"""A client that costs little: HTTP/1.1 over a few kept connections, one thread, no library.

The connections are opened one after another, each with a question that does not count, as those of many clients are. Opened all at
once they would fall to the one process of the server that wakes first, and stay with it.

`python -m bench.serving.load '{"address": ["127.0.0.1", 8000], ...}'` prints one JSON object. Closed loop (`rate` 0): each
connection sends again as soon as it is answered. Open loop: sends at `rate` a second whatever comes back, and a latency
runs from the moment at which the request was meant to go, so that a slow answer is not hidden by the wait that it causes.
"""

from __future__ import annotations

import gc
import json
import selectors
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Load:
    address: tuple[str, int]
    requests: list[str]
    """Whole requests, sent in turn."""
    seconds: float
    connections: int
    rate: float = 0.0


@dataclass
class _Connection:
    socket: socket.socket
    meant_at: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes, meant_at: float) -> None:
        self.meant_at = meant_at
        self.socket.sendall(request)

    def take(self) -> int:
        """The status, once the whole answer is here; else 0."""
        more = self.socket.recv(65536)
        if not more:
            raise ConnectionError("The server hung up.")
        self.received += more
        head, blank, body = bytes(self.received).partition(b"\r\n\r\n")
        if not blank:
            return 0
        _, _, length = head.lower().partition(b"content-length: ")
        if len(body) < int(length.partition(b"\r\n")[0]):
            return 0
        self.received.clear()
        return int(head[9:12])


class Client:
    """Sends a load and counts what comes back."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._requests = [text.encode() for text in load.requests]
        self._selector = selectors.DefaultSelector()
        self._idle: deque[_Connection] = deque()
        self.latencies: list[float] = []
        self.statuses: dict[int, int] = {}
        self.sent = 0
        for number in range(load.connections):
            connection = _Connection(socket.create_connection(load.address, timeout=30))
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.send(self._requests[-1 - number % len(self._requests)], 0.0)
            while not connection.take():
                pass
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            self._idle.append(connection)

    def run(self) -> float:
        """The seconds from the first request to the last answer."""
        gc.disable()
        begun = time.perf_counter()
        end = begun + self._load.seconds
        while (now := time.perf_counter()) < end:
            self._collect(self._send_due(begun, now, end))
        while len(self._idle) < self._load.connections:
            self._collect(1.0)
        return time.perf_counter() - begun

    def _send_due(self, begun: float, now: float, end: float) -> float:
        """Sends what is due, where a connection is free; how long there is nothing to send."""
        rate = self._load.rate
        while self._idle:
            meant_at = begun + self.sent / rate if rate else now
            if meant_at >= end:
                return max(0.0, end - now)
            if meant_at > now:
                return meant_at - now
            self._idle.popleft().send(self._requests[self.sent % len(self._requests)], meant_at)
            self.sent += 1
        return 1.0

    def _collect(self, wait: float) -> None:
        for key, _ in self._selector.select(wait):
            connection: _Connection = key.data
            status = connection.take()
            if status:
                self.latencies.append(time.perf_counter() - connection.meant_at)
                self.statuses[status] = self.statuses.get(status, 0) + 1
                self._idle.append(connection)


def main() -> int:
    arguments: dict[str, Any] = json.loads(sys.stdin.read())
    client = Client(Load(**{**arguments, "address": tuple(arguments["address"])}))
    seconds = client.run()
    latencies = sorted(client.latencies)
    print(json.dumps({"seconds": seconds, "statuses": client.statuses, "latencies": latencies}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
