"""matching(here, there): of the keys there, the share that is here too. The filter travels, not the data.

With no row on the other side none of its keys can be missing here. Both ways, in three passes: here builds its filter; there probes it with its own keys and builds its own; here probes that one.
The verdict is about what is missing here. A filter never denies a key that it holds, so whatever it calls missing is missing;
of what is missing, the false positives stay unseen: as many as `fpr_measured` says, and `unseen` estimates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from quality.domain.bloom.filters import BadFilter, FilterShape, measure_false_positive_rate
from quality.domain.bloom.keys import decode_key
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed, no_data
from quality.engines.scans.endpoint import Endpoint, ProbeCounts
from quality.engines.scans.parts import CannotRead

TARGET_FALSE_POSITIVE_RATE = 0.001
"""False positives that are asked for: 14.4 bits a key, and of a thousand missing keys one stays unseen."""


MIN_SAMPLED_KEYS = 1_000
"""A sample has at least so many keys: tables smaller than that are compared whole."""


def matching(measure: Measure, here: Endpoint, there: Endpoint, *, salt: str = "") -> Mapping[str, Any] | Failed:
    """`measure.values` has the share of the keys that are looked at. Raises CannotRead."""
    rows_here, rows_there = here.count(), there.count()
    if not rows_here and not rows_there:
        return no_data("there are no rows on either side")
    share = _sample_share(measure, max(rows_here, rows_there))
    sent = here.build(_filter_shape(max(1, rows_here), share), share)
    returned, counts_there = there.build_and_probe(_filter_shape(max(1, rows_there), share), sent, share)
    counts_here = here.probe(returned, share)
    return {
        "keys": counts_there.keys,
        "matching": counts_there.matching,
        "missing": [dict(zip(there.columns, decode_key(key), strict=True)) for key in counts_there.missing],
        "report": _report(sent, returned, counts_there, counts_here, share)
        | _without_key(rows_here, rows_there, counts_here, counts_there, share),
    }


def _without_key(
    here: int, there: int, counts_here: ProbeCounts, counts_there: ProbeCounts, share: float
) -> dict[str, int]:
    """How many rows of each side have a null in the key, where there are any; of a sample it is not known."""
    lacking = {"without_key_here": here - counts_here.keys, "without_key_there": there - counts_there.keys}
    return {side: rows for side, rows in lacking.items() if share == 1 and rows > 0}


def _sample_share(measure: Measure, rows: int) -> float:
    requested_share = float(Fraction(str(measure.values[0]))) if measure.values else 1
    return min(1, max(requested_share, MIN_SAMPLED_KEYS / rows))


def _filter_shape(rows: int, share: float) -> FilterShape:
    """For as many keys as the sample will have, and some: its size is a matter of chance."""
    expected = rows * share
    try:
        return FilterShape.for_keys(
            rows if share == 1 else int(expected + 4 * expected**0.5 + 16), TARGET_FALSE_POSITIVE_RATE
        )
    except BadFilter as too_large:
        raise CannotRead(str(too_large)) from too_large


def _report(
    sent: str, returned: str, counts_there: ProbeCounts, counts_here: ProbeCounts, share: float
) -> dict[str, Any]:
    fpr = measure_false_positive_rate(sent)
    absent = counts_there.keys - counts_there.matching
    return {
        "share": share,
        "keys_there": counts_there.keys,
        "keys_here": counts_here.keys,
        "missing_here": absent,
        "missing_there": counts_here.keys - counts_here.matching,
        "unseen": round(absent * fpr / (1 - fpr), 2),
        "bytes_moved": len(sent) + len(returned) + sum(map(len, counts_there.missing)),
        "fpr_asked": TARGET_FALSE_POSITIVE_RATE,
        "fpr_measured": fpr,
    }
