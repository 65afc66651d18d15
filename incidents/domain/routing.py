"""Who is told about an incident, over which channel, and why they and nobody else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipient:
    """One address on one channel. `why`: what made it one, such as `route of team flight-ops` or `subscribed: ana`."""

    channel: str
    address: str
    why: str
