"""What leaves make of an exchange between two places (quality.exchanges): a share, with the records that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from quality.domain.expression.measures import Answer
from quality.domain.expression.values import Known, Value, error, no_data


def share_of(answers: Sequence[Answer]) -> Value:
    """`matching` of `keys`; of no keys there is no share."""
    found, rows = answers
    if not rows:
        return no_data("there are no rows")
    if not isinstance(found, Mapping):
        return error(f"the exchange answered {found!r}")
    if not found["keys"]:
        return no_data("there are no keys to compare with")
    return Known(Fraction(found["matching"], found["keys"]))
