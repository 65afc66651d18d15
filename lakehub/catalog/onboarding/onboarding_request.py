"""What a person or a program says of the dataset to onboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lakehub.catalog.models import (
    DatasetKind,
)
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import split_columns


@dataclass(frozen=True)
class UpstreamRequest:
    dataset: str
    one_to_one: bool = False


@dataclass(frozen=True)
class CopyRequest:
    """Where the copy in one data center lies, of a dataset that is only monitored."""

    data_center: str
    connection: str
    table: str


@dataclass(frozen=True)
class OnboardingRequest:
    """What a person or a program says of the dataset to onboard; names, not objects."""

    name: str
    team: str
    tier: int
    connection: str
    table: str
    """A table of the connection; for files, a glob."""
    data_centers: Sequence[str]
    copies: Sequence[CopyRequest] = ()
    """Of what is only monitored, the copies that lie elsewhere than `connection` and `table`; at most one data center has none."""
    kind: str = DatasetKind.APPEND_PLUS_UPDATE
    primary_key: Sequence[str] = ()
    record_key: Sequence[str] = ()
    """Empty: the primary key."""
    reference_key: str = ""
    cursor_column: str = ""
    partition_column: str = ""
    """Several with commas between, where it takes more than one to say the time."""
    grain: str = Grain.NONE
    partition_form: str = ""
    """How the partition column says a time (lakehub.kernel.partitions.form). Empty: as its type says, or names of partitions."""
    partition_tz: str = "UTC"
    event_time: str = ""
    upstream: Sequence[UpstreamRequest] = ()
    ingested: bool = True
    every: timedelta = timedelta(minutes=5)
    freshness_sla: timedelta | None = None
    grace: timedelta = timedelta()
    description: str = ""
    overrides: dict[str, object] = field(default_factory=dict)
    feed_options: dict[str, Any] = field(default_factory=dict)
    """How its jobs read and write (lakehub.catalog.datasets.feed_options); what is left out has its default."""
    columns_left_out: Sequence[str] = ()
    """Of a captured table, what does not come into the lake."""
    columns_hashed: Sequence[str] = ()
    columns_masked: Sequence[str] = ()

    @property
    def hidden(self) -> dict[str, Sequence[str]]:
        """By field, as lakehub.catalog.datasets.hidden_columns takes them."""
        return {
            "columns_left_out": self.columns_left_out,
            "columns_hashed": self.columns_hashed,
            "columns_masked": self.columns_masked,
        }

    @property
    def hides_partition(self) -> bool:
        """Which is refused."""
        return any({*split_columns(self.partition_column)} & {*names} for names in self.hidden.values())

    @property
    def connections(self) -> tuple[str, ...]:
        """All that are named, each once."""
        return tuple(dict.fromkeys((self.connection, *(copy.connection for copy in self.copies))))
