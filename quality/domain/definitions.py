"""What the checks are told of a dataset, and what they make of it: the definitions of its tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lakehub.kernel.calendar import Grain
from quality.domain.expression import THIS, Expression, Name, Scope
from quality.domain.expression.nodes import post_order
from quality.domain.metrics import BusinessMetric
from quality.domain.production import Production
from quality.domain.rules import Rule
from quality.domain.tiers import Slas


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
    rules: tuple[Rule, ...] = ()
    metrics: tuple[BusinessMetric, ...] = ()
    produced: Production | None = None
    """When its partitions are produced, where not all are."""

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


@dataclass(frozen=True)
class Skipped:
    """A type of test that the dataset cannot have, and what is missing to have it."""

    check: str
    reason: str


def runs_in(expression: Expression, data_center: str) -> bool:
    """A test that compares with a data center has nothing to say about that one's own copy; `dc` names the only one."""
    if expression.parameters.dc not in (None, data_center):
        return False
    names = (node for node in post_order(expression.assertion) if isinstance(node, Name))
    return not any(name.dataset == THIS and name.data_center == data_center for name in names)
