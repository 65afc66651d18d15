"""What the checks are told of a dataset, and what they make of it: the definitions of its tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lakehub.kernel.partitions import Grain
from quality.domain.generation.business_metrics import BusinessMetric
from quality.domain.generation.rules import Rule
from quality.domain.language import THIS, Expression, Name, Scope
from quality.domain.language.tree.nodes import post_order
from quality.domain.slas import Slas
from quality.domain.timeliness.production_calendar import ProductionCalendar


@dataclass(frozen=True)
class DatasetFacts:
    """A dataset as its tests are generated from it. `scope` says which names its expressions may use."""

    name: str
    tier: int
    slas: Slas
    scope: Scope
    grain: Grain = Grain.NONE
    data_centers: tuple[str, ...] = ()
    one_to_one: bool = False
    """Each row upstream gives one row here, so that rows can be compared."""
    upstream_problem: str = ""
    """Why the rows of the upstream that lineage names are not compared: its partitions do not add up to these."""
    float_columns: frozenset[str] = frozenset()
    """Columns of floating-point numbers, which are no keys: engines write them differently."""
    partition_columns: tuple[str, ...] = ()
    """The columns of the dataset that say the partition."""
    unique_within_partition: bool = False
    """Its owners say that each partition is a snapshot: keys come again in the next."""
    nullable_keys: tuple[str, ...] = ()
    """Columns of the primary key in which a row of a copy may have a null."""
    upstream_is_external: bool = False
    """Upstream is no table of the lake: what it has is known by asking it."""
    rules: tuple[Rule, ...] = ()
    metrics: tuple[BusinessMetric, ...] = ()
    production_calendar: ProductionCalendar | None = None
    """When its partitions are produced, where not all are."""
    is_captured: bool = False
    """Its changes come from the log of its source."""
    not_compared: tuple[str, ...] = ()
    """Columns that each data center writes for itself: they differ between copies, and that is right."""

    @property
    def why_no_key(self) -> str:
        """Why records cannot be told apart by the primary key; empty where they can."""
        unfit = [name for name in self.scope.primary_key if name in self.float_columns]
        if unfit:
            return f"{', '.join(unfit)} of the primary key holds floating-point numbers"
        return "" if self.scope.primary_key else "no primary key"

    @property
    def cadence(self) -> timedelta | None:
        """Of tests that look at one partition or, without partitions, at the whole: None means when a partition is due."""
        return self.slas.cadence if self.grain is Grain.NONE else None


@dataclass(frozen=True)
class Definition:
    """One test of a dataset. `key` is stable, `expression` is what people read, `because` says which metadata made it."""

    key: str
    title: str
    category: str
    check: str
    expression: str
    sustain: timedelta
    cadence: timedelta | None
    because: str
    gating: bool = True
    least_rerun: timedelta = timedelta()
    """A failure is looked at again no sooner: of what takes long."""
    planned: bool = True
    """False: nobody plans its units; they come with what ingestion finds."""


@dataclass(frozen=True)
class InapplicableCheck:
    """A type of test that the dataset cannot have, and what is missing to have it."""

    check: str
    reason: str
    mendable: bool = True
    """Its owners could say or do what is missing. False: the dataset is just so, and nobody is asked."""


@dataclass(frozen=True)
class FailedCheck:
    """A check that could not say anything: what it made before stays."""

    check: str
    reason: str


def runs_in(expression: Expression, data_center: str) -> bool:
    """A test that compares with a data center has nothing to say about that one's own copy; `dc` names the only one."""
    if expression.parameters.dc not in (None, data_center):
        return False
    names = (node for node in post_order(expression.assertion) if isinstance(node, Name))
    return not any(name.dataset == THIS and name.data_center == data_center for name in names)
