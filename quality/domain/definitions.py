"""What the checks are told of a dataset, and what they make of it: the definitions of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta

from lakehub.kernel.calendar import Grain
from quality.domain.expression import THIS, Call, Expression, Literal, Name, Node, Scope, formula, parse
from quality.domain.expression.amounts import duration_text
from quality.domain.expression.nodes import post_order
from quality.domain.expression.operators import COMPARISONS, OPERATORS
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
    floats: frozenset[str] = frozenset()
    """Columns of floating-point numbers, which are no keys: engines write them differently."""
    upstream_outside: bool = False
    """Upstream is no table of the lake: what it has is known by asking it."""
    rules: tuple[Rule, ...] = ()
    metrics: tuple[BusinessMetric, ...] = ()
    produced: Production | None = None
    """When its partitions are produced, where not all are."""

    @property
    def no_key(self) -> str:
        """Why records cannot be told apart by the primary key; empty where they can."""
        unfit = [name for name in self.scope.primary_key if name in self.floats]
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


@dataclass(frozen=True)
class Skipped:
    """A type of test that the dataset cannot have, and what is missing to have it."""

    check: str
    reason: str
    mendable: bool = True
    """Its owners could say or do what is missing. False: the dataset is just so, and nobody is asked."""


def runs_in(expression: Expression, data_center: str) -> bool:
    """A test that compares with a data center has nothing to say about that one's own copy; `dc` names the only one."""
    if expression.parameters.dc not in (None, data_center):
        return False
    names = (node for node in post_order(expression.assertion) if isinstance(node, Name))
    return not any(name.dataset == THIS and name.data_center == data_center for name in names)


@dataclass(frozen=True)
class Asked:
    """What a version of a test asks: its stored expression and how it is run."""

    flattened: str
    sustain: timedelta
    cadence: timedelta | None
    due_after: timedelta
    rerun_base: timedelta
    rerun_cap: timedelta
    because: str = ""


_HOW = {
    "sustain": "sustain period",
    "cadence": "cadence",
    "due_after": "due after the end of a partition",
    "rerun_base": "first rerun of a failure",
    "rerun_cap": "reruns at most apart",
}


def difference(old: Asked, new: Asked) -> tuple[str, ...]:
    """What changed from one version of a test to the next, in words, one line a change. Empty: nothing did.

    `threshold: 0.1% becomes 0.5%` where only that changed in the assertion; otherwise the whole assertion.
    """
    lines = [*_asserted(old.flattened, new.flattened)]
    for name, words in _HOW.items():
        was, becomes = getattr(old, name), getattr(new, name)
        if was != becomes:
            lines.append(f"{words}: {_length(was)} becomes {_length(becomes)}")
    if lines and old.because != new.because:
        lines.append(f"because: {old.because} becomes {new.because}")
    return tuple(lines)


def _asserted(old: str, new: str) -> Iterator[str]:
    was, becomes = parse(old), parse(new)
    if was.assertion != becomes.assertion:
        yield _threshold(was.assertion, becomes.assertion) or _change(
            "expression", formula(was.assertion), formula(becomes.assertion)
        )
    given, wanted = asdict(was.parameters), asdict(becomes.parameters)
    for name in given:
        if given[name] != wanted[name]:
            yield _change(f"parameter {name}", _length(given[name]), _length(wanted[name]))


def _threshold(was: Node, becomes: Node) -> str:
    """Empty where more than the value that is compared with changed."""
    if not (
        isinstance(was, Call) and isinstance(becomes, Call) and {was.function, becomes.function} <= set(COMPARISONS)
    ):
        return ""
    (left, limit), (same, other) = was.args, becomes.args
    if left != same or not (isinstance(limit, Literal) and isinstance(other, Literal)):
        return ""
    signs = [OPERATORS[call.function].symbol for call in (was, becomes)]
    return _change("threshold", f"{signs[0]} {formula(limit)}", f"{signs[1]} {formula(other)}")


def _change(what: str, was: str, becomes: str) -> str:
    return f"{what}: {was} becomes {becomes}"


def _length(value: object) -> str:
    if value is None:
        return "none"
    return duration_text(value) if isinstance(value, timedelta) else str(value)
