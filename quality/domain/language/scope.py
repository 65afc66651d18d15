"""What the names of an expression may mean: the tables, their columns, and what is known about `this`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehub.kernel.partitions import Grain

THIS = "this"
UPSTREAM = "upstream"


@dataclass(frozen=True)
class Scope:
    """`tables` maps `this`, `upstream` (where there is one) and each dataset to its columns; None: not known, anything goes.

    `grains` says how tables are cut into partitions, where that is known; `metrics` maps a business metric to its query.
    """

    tables: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    data_centers: frozenset[str] = frozenset()
    primary_key: tuple[str, ...] = ()
    event_time: str = ""
    grains: Mapping[str, Grain] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    engines: frozenset[str] = frozenset()
    """Those that `engine=` may name; empty: not known, anything goes."""

    @property
    def has_upstream(self) -> bool:
        return UPSTREAM in self.tables
