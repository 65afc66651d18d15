"""How long a loop of examples is: short at every change, longer in CI by as much as a property has more examples there."""

from __future__ import annotations

from hypothesis import settings

EVERYDAY_EXAMPLES = 10
"""Of a property, at every change (LAKEHUB_HYPOTHESIS=repeatable)."""


def is_everyday() -> bool:
    return settings().max_examples <= EVERYDAY_EXAMPLES


def rounds(everyday: int) -> int:
    return everyday * settings().max_examples // EVERYDAY_EXAMPLES
