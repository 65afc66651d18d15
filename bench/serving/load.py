"""A client that costs little: HTTP/1.1 over a few kept connections, one thread, no library.

The connections are opened one after another, each with a question that does not count, as those of many clients are. Opened all at
once they would fall to the one process of the server that wakes first, and stay with it.

`python -m bench.serving.load` reads a Load as JSON and prints a list of turns as JSON. Closed loop (`rate` 0): each
connection sends again as soon as it is answered. Open loop: sends at `rate` a second whatever comes back, and a latency
runs from the moment at which the request was meant to go, so that a slow answer is not hidden by the wait that it causes.

What is compared is asked in turns, over the same connections, a short while each: so that all meet the same machine.
"""

from __future__ import annotations

import gc
import json
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any


@dataclass(frozen=True)
class Load:
    address: tuple[str, int]
    requests: dict[str, list[str]]
    """Whole requests by what is compared, sent one after another."""
    turns: int
    """Of each."""
    turn_s: float
    connections: int
    rate: float = 0.0


@dataclass
class Turn:
    """What came back to one turn of requests."""

    of: str
    seconds: float = 0.0
    """From its first request to its last answer."""
    statuses: dict[str, int] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)


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
        self._requests = {of: [text.encode() for text in texts] for of, texts in load.requests.items()}
        self._selector = selectors.DefaultSelector()
        self._idle: deque[_Connection] = deque()
        uncounted = next(iter(self._requests.values()))
        for number in range(load.connections):
            connection = _Connection(socket.create_connection(load.address, timeout=30))
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.send(uncounted[-1 - number % len(uncounted)], 0.0)
            while not connection.take():
                pass
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            self._idle.append(connection)

    def run(self) -> list[Turn]:
        gc.disable()
        waiting = {of: cycle(texts) for of, texts in self._requests.items()}
        return [self._run_turn(of, waiting[of]) for _ in range(self._load.turns) for of in waiting]

    def _run_turn(self, of: str, requests: Iterator[bytes]) -> Turn:
        turn = Turn(of)
        begun = time.perf_counter()
        end = begun + self._load.turn_s
        sent = 0
        while (now := time.perf_counter()) < end:
            wait = self._load.turn_s
            while self._idle:
                meant_at = begun + sent / self._load.rate if self._load.rate else now
                if meant_at > now:
                    wait = meant_at - now
                    break
                self._idle.popleft().send(next(requests), meant_at)
                sent += 1
            self._collect(turn, min(wait, end - now))
        while len(self._idle) < self._load.connections:
            self._collect(turn, 1.0)
        turn.seconds = time.perf_counter() - begun
        return turn

    def _collect(self, turn: Turn, wait: float) -> None:
        for key, _ in self._selector.select(max(0.0, wait)):
            connection: _Connection = key.data
            status = connection.take()
            if status:
                turn.latencies.append(time.perf_counter() - connection.meant_at)
                turn.statuses[str(status)] = turn.statuses.get(str(status), 0) + 1
                self._idle.append(connection)


def main() -> int:
    arguments: dict[str, Any] = json.loads(sys.stdin.read())
    client = Client(Load(**{**arguments, "address": tuple(arguments["address"])}))
    print(json.dumps([vars(turn) for turn in client.run()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
