"""How much a client takes of an answer, and whether it is too little."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SEND_TIMEOUT_S = 10
"""A thread waits so long for a client that takes nothing of its answer."""
LEAST_RATE = 10_000
"""Bytes per second: a sixth of half a megabit, as a browser loads six files at once. Who takes less uses up its SEND_TIMEOUT_S."""
CROWDED_TIMEOUT_S, CROWDED_RATE = 3.0, 50_000
"""The same while all threads wait for clients and somebody waits for a thread; the slowest is let go, one with each look."""


class Progress(NamedTuple):
    """Of a connection, since it was opened."""

    taken: int
    """Bytes that the other side has confirmed."""
    waited_s: float
    """The time in which there was something that it had not confirmed: what the server needs to make an answer is not in it."""
    is_waiting: bool
    """There is more than the other side may be sent now."""


_TCP_INFO = struct.Struct("120xQ16xI20xQ")
"""Linux: tcpi_bytes_acked, tcpi_notsent_bytes, tcpi_busy_time."""


def progress(sock: socket.socket) -> Progress:
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    except OSError:  # closed already, or a socket of this machine without TCP
        return Progress(0, 0.0, False)
    taken, unsent, busy_us = _TCP_INFO.unpack(info)
    return Progress(taken, busy_us / 1e6, unsent > 0)


@dataclass
class Patience:
    """Waiting uses it up, what is taken gives it back, and there is never more than at first: a fast start earns no slow end."""

    most_s: float
    rate: int
    left_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.left_s = self.most_s

    def spend(self, waited_s: float, taken: int) -> None:
        self.left_s = min(self.most_s, self.left_s - waited_s + taken / self.rate)


@dataclass
class Answer:
    """One that a thread makes or sends."""

    seen: Progress
    usual: Patience = field(default_factory=lambda: Patience(SEND_TIMEOUT_S, LEAST_RATE))
    crowded: Patience = field(default_factory=lambda: Patience(CROWDED_TIMEOUT_S, CROWDED_RATE))

    def look(self, now: Progress) -> None:
        for patience in (self.usual, self.crowded):
            patience.spend(now.waited_s - self.seen.waited_s, now.taken - self.seen.taken)
        self.seen = now


def too_slow(answers: dict[Any, Answer], most_of_one: int, *, somebody_waits: bool) -> list[Any]:
    """Of the connections, those that are let go. `most_of_one`: the threads that one caller may have."""
    slow = [conn for conn, answer in answers.items() if answer.usual.left_s < 0]
    waiting = [conn for conn, answer in answers.items() if answer.seen.is_waiting]
    if slow or not somebody_waits or len(waiting) < most_of_one:
        return slow
    slowest = min(waiting, key=lambda conn: answers[conn].crowded.left_s)
    return [slowest] if answers[slowest].crowded.left_s < 0 else []
