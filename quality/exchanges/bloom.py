"""matching(here, there): of the keys there, the share that is here too. The filter travels, not the data.

Both ways, in three passes: here builds its filter; there probes it with its own keys and builds its own; here probes that one.
The verdict is about what is missing here. A filter never denies a key that it holds, so whatever it calls missing is missing;
of what is missing, the false positives stay unseen: as many as `fpr_measured` says, and `unseen` estimates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from quality.domain.bloom import BadFilter, Shape, false_positives
from quality.domain.bloom_keys import key_parts
from quality.domain.expression.measures import Measure
from quality.domain.expression.values import Failed, no_data
from quality.engines.scan import CannotRead
from quality.exchanges.sides import Probed, Side

FPR = 0.001
"""False positives that are asked for: 14.4 bits a key, and of a thousand missing keys one stays unseen."""


LEAST_KEYS = 1_000
"""A sample has at least so many keys: tables smaller than that are compared whole."""


def matching(measure: Measure, here: Side, there: Side, *, salt: str = "") -> Mapping[str, Any] | Failed:
    """`measure.values` has the share of the keys that are looked at. Raises CannotRead."""
    rows_here, rows_there = here.count(), there.count()
    if not rows_here or not rows_there:
        return no_data("there are no rows here" if not rows_here else "there are no rows on the other side")
    share = _share(measure, max(rows_here, rows_there))
    sent = here.build(_shape(rows_here, share), share)
    returned, theirs = there.build_and_probe(_shape(rows_there, share), sent, share)
    ours = here.probe(returned, share)
    return {
        "keys": theirs.keys,
        "matching": theirs.matching,
        "missing": [dict(zip(there.columns, key_parts(key), strict=True)) for key in theirs.missing],
        "report": _report(sent, returned, theirs, ours, share),
    }


def _share(measure: Measure, rows: int) -> float:
    asked = float(Fraction(str(measure.values[0]))) if measure.values else 1
    return min(1, max(asked, LEAST_KEYS / rows))


def _shape(rows: int, share: float) -> Shape:
    """For as many keys as the sample will have, and some: its size is a matter of chance."""
    expected = rows * share
    try:
        return Shape.for_keys(rows if share == 1 else int(expected + 4 * expected**0.5 + 16), FPR)
    except BadFilter as too_large:
        raise CannotRead(str(too_large)) from too_large


def _report(sent: str, returned: str, theirs: Probed, ours: Probed, share: float) -> dict[str, Any]:
    fpr = false_positives(sent)
    absent = theirs.keys - theirs.matching
    return {
        "share": share,
        "keys_there": theirs.keys,
        "keys_here": ours.keys,
        "missing_here": absent,
        "missing_there": ours.keys - ours.matching,
        "unseen": round(absent * fpr / (1 - fpr), 2),
        "bytes_moved": len(sent) + len(returned) + sum(map(len, theirs.missing)),
        "fpr_asked": FPR,
        "fpr_measured": fpr,
    }
