"""Where messages go. To add a channel: one file here with a class that fits `Channel`, one line in CHANNELS, one row in
tests/contracts/test_channels.py. From outside the tree: an entry point of the group `lakehub.channels`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from lakehub.http.outgoing.client import DeliveryError as DeliveryError
from lakehub.kernel.registry import Registry, UnknownPlugin


@dataclass(frozen=True)
class Notification:
    """What is told, ready to send. `id` is the same when a note comes twice; `facts` is plain JSON for programs."""

    id: int
    occasion: str
    subject: str
    body: str
    facts: dict[str, Any]
    kind: str = "message"
    """Numbers are counted by kind."""
    written_at: datetime | None = None
    """When it was written; None: as it is sent."""
    thread: str = ""
    """What it goes on with, such as `incident-214`; empty: it stands alone."""
    previous_ids: tuple[int, ...] = ()
    """The notes of this thread that went to this address before, oldest first."""


class Channel(ABC):
    takes_digests: ClassVar[bool] = True
    """False: a message opens or closes something there, so a list of several would do neither."""
    reaches_people: ClassVar[bool] = True
    """False: nobody is told by it."""

    @abstractmethod
    def check(self, address: str) -> None:
        """Raises Refused where nothing can ever be sent to `address`. Looks nothing up."""

    @abstractmethod
    def shown(self, address: str) -> str:
        """`address` as everybody may read it: without what is secret in it."""

    @abstractmethod
    def send(self, note: Notification, address: str, *, now: datetime) -> str:
        """Hands the note over, or raises DeliveryError. Waits twenty seconds at most. What the other side answered, in a word."""


HIDDEN_ADDRESS = "…"
"""Of a channel that is gone: nobody knows what in it is secret."""
CHANNELS: Registry[type[Channel]] = Registry(
    "channel",
    {
        "email": "incidents.channels.email:Email",
        "webhook": "incidents.channels.webhook:Webhook",
        "slack": "incidents.channels.slack:Slack",
        "pagerduty": "incidents.channels.pagerduty:PagerDuty",
        "apprise": "incidents.channels.apprise:Apprise",
        "log": "incidents.channels.log:Log",
    },
    group="lakehub.channels",
)


def redacted_address(name: str, address: str) -> str:
    """An address as it may be shown; nothing of it where its channel is gone."""
    try:
        return CHANNELS.get(name)().shown(address)
    except UnknownPlugin:
        return HIDDEN_ADDRESS
