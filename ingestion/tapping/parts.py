"""What the tap of a server is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from ingestion.changelog import Changelog


@dataclass(frozen=True)
class TapParts:
    """`instance_key`: see `replica_address`. `clock`: aware UTC; `monotonic`: seconds of a clock that only grows."""

    changelog: Changelog
    instance_key: str = field(repr=False)
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    pause: Callable[[float], None]
