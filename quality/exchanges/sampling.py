"""sampled(here, there): some keys are taken there and looked up here. For upstreams outside the lake: what travels is the sample.

Which keys are taken is decided by their hash and the partition alone: a rerun looks for the same ones, so that a failure
ends only when they have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quality.domain.bloom_keys import key_parts
from quality.domain.expression.measures import Measure
from quality.domain.expression.values import Failed, no_data
from quality.exchanges.sides import MOST_NAMED, Side

USUAL = 1_000


def sampled(measure: Measure, here: Side, there: Side, *, salt: str) -> Mapping[str, Any] | Failed:
    """`measure.values` has the size of the sample. Raises CannotRead."""
    if not here.count():
        return no_data("there are no rows here")
    size = int(str(measure.values[0])) if measure.values else USUAL
    keys = there.sample(size, salt)
    if not keys:
        return no_data("there are no rows upstream")
    found = here.among(keys)
    missing = [key for key in keys if key not in found]
    return {
        "keys": len(keys),
        "matching": len(found),
        "missing": [dict(zip(there.columns, key_parts(key), strict=True)) for key in missing[:MOST_NAMED]],
        "report": {"asked_for": size, "sampled": len(keys), "bytes_moved": sum(map(len, keys))},
    }
