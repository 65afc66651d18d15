"""What leaves make of an exchange between two places (quality.cross_source.methods): a share, with the records that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from quality.domain.language.measures import Answer
from quality.domain.language.values import EvaluationContext, Known, Value, error, no_data


def matching_share(answers: Sequence[Answer], moment: EvaluationContext) -> Value:
    """`matching` of `keys`. Of no keys there none is missing here, if there are keys here: all match."""
    counts, rows = answers
    if not rows and not moment.expects_rows:
        return no_data("there are no rows")
    if not isinstance(counts, Mapping):
        return error(f"the exchange answered {counts!r}")
    if counts["keys"]:
        return Known(Fraction(counts["matching"], counts["keys"]))
    keys_here = counts.get("report", {}).get("keys_here", 0)
    return Known(Fraction(1)) if keys_here else no_data("there are no keys to compare with")
