"""Where messages go. To add a channel: one file here with a class that has the two methods below, one line in CHANNELS,
one row in tests/contracts/test_channels.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from lakehub.kernel.registry import Registry


@dataclass(frozen=True)
class Note:
    """What is told, ready to send. `id` is the same when a note comes twice; `facts` is plain JSON for programs."""

    id: int
    occasion: str
    subject: str
    body: str
    facts: dict[str, Any]
    kind: str = "message"
    """Numbers are counted by kind."""


class CannotSend(Exception):
    """It did not arrive. `for_good`: trying again will not help."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        super().__init__(why)
        self.for_good = for_good


class Channel(Protocol):
    def check(self, address: str) -> None:
        """Raises Refused where nothing can ever be sent to `address`."""
        ...

    def send(self, note: Note, address: str, *, now: datetime) -> None:
        """Hands the note over, or raises CannotSend. Waits ten seconds at most."""
        ...


CHANNELS: Registry[type[Channel]] = Registry(
    "channel",
    {
        "email": "incidents.channels.email:Email",
        "webhook": "incidents.channels.webhook:Webhook",
        "log": "incidents.channels.log:Log",
    },
)


def channel(name: str) -> Channel:
    """Raises UnknownPlugin with the nearest name."""
    return CHANNELS.get(name)()
