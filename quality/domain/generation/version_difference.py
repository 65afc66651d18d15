"""What changed from one version of a test to the next, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta

from quality.domain.language import Call, Literal, Node, formula, parse
from quality.domain.language.operators import COMPARISONS, OPERATORS
from quality.domain.language.tree.literals import format_duration


@dataclass(frozen=True)
class VersionDefinition:
    """What a version of a test asks: its stored expression and how it is run."""

    flattened: str
    sustain: timedelta
    cadence: timedelta | None
    due_after: timedelta
    rerun_base: timedelta
    rerun_cap: timedelta
    because: str = ""


_FIELD_LABELS = {
    "sustain": "sustain period",
    "cadence": "cadence",
    "due_after": "due after the end of a partition",
    "rerun_base": "first rerun of a failure",
    "rerun_cap": "reruns at most apart",
}


def version_difference(old: VersionDefinition, new: VersionDefinition) -> tuple[str, ...]:
    """What changed from one version of a test to the next, in words, one line a change. Empty: nothing did.

    `threshold: 0.1% becomes 0.5%` where only that changed in the assertion; otherwise the whole assertion.
    """
    lines = [*_assertion_changes(old.flattened, new.flattened)]
    for name, words in _FIELD_LABELS.items():
        was, becomes = getattr(old, name), getattr(new, name)
        if was != becomes:
            lines.append(f"{words}: {_format_value(was)} becomes {_format_value(becomes)}")
    if lines and old.because != new.because:
        lines.append(f"because: {old.because} becomes {new.because}")
    return tuple(lines)


def _assertion_changes(old: str, new: str) -> Iterator[str]:
    was, becomes = parse(old), parse(new)
    if was.assertion != becomes.assertion:
        yield _threshold_change(was.assertion, becomes.assertion) or _change(
            "expression", formula(was.assertion), formula(becomes.assertion)
        )
    old_parameters, new_parameters = asdict(was.parameters), asdict(becomes.parameters)
    for name in old_parameters:
        if old_parameters[name] != new_parameters[name]:
            yield _change(f"parameter {name}", _format_value(old_parameters[name]), _format_value(new_parameters[name]))


def _threshold_change(was: Node, becomes: Node) -> str:
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


def _change(label: str, was: str, becomes: str) -> str:
    return f"{label}: {was} becomes {becomes}"


def _format_value(value: object) -> str:
    if value is None:
        return "none"
    return format_duration(value) if isinstance(value, timedelta) else str(value)
