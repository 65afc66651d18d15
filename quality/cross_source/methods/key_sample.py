"""sampled(here, there): some keys are taken there and looked up here. For upstreams outside the lake: what travels is the sample.

Which keys are taken is decided by their hash and a seed: each run takes others, but for the rerun of a failure, which looks
for the same ones, so that it ends only when they have arrived. The seed is kept with the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quality.domain.bloom.keys import decode_key
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed, no_data
from quality.engines.scans.endpoint import MAX_NAMED_KEYS, Endpoint

DEFAULT_SAMPLE_SIZE = 1_000


def sampled(measure: Measure, here: Endpoint, there: Endpoint, *, salt: str) -> Mapping[str, Any] | Failed:
    """`measure.values` has the size of the sample, and its seed (without one `salt`). Raises CannotRead."""
    size = int(str(measure.values[0])) if measure.values else DEFAULT_SAMPLE_SIZE
    seed = str(measure.values[1]) if len(measure.values) > 1 else salt
    keys = there.sample(size, seed)
    if not keys:
        return no_data("there are no rows upstream")
    present = here.present_keys(keys)
    missing = [key for key in keys if key not in present]
    return {
        "keys": len(keys),
        "matching": len(present),
        "missing": [dict(zip(there.columns, decode_key(key), strict=True)) for key in missing[:MAX_NAMED_KEYS]],
        "report": {"seed": seed, "asked_for": size, "sampled": len(keys), "bytes_moved": sum(map(len, keys))},
    }
