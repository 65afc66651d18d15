"""What leaves make of an exchange between two places (quality.cross_source.methods): a share, with the records that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from quality.domain.language.measures import Answer
from quality.domain.language.values import Known, Value, error, no_data


def matching_share(answers: Sequence[Answer]) -> Value:
    """`matching` of `keys`; of no keys there is no share."""
    counts, rows = answers
    if not rows:
        return no_data("there are no rows")
    if not isinstance(counts, Mapping):
        return error(f"the exchange answered {counts!r}")
    if not counts["keys"]:
        return no_data("there are no keys to compare with")
    return Known(Fraction(counts["matching"], counts["keys"]))
