"""The network to the source: silent, slow, refusing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from random import Random

from tests.soak.faults import Fault
from tests.soak.stand.forwarder import Line
from tests.soak.stand.stage import Stage

_LASTS_S = (5.0, 30.0)


def _disturb(line: Line, stage: Stage, rng: Random) -> Sequence[str]:
    stage.forwarder.set_line(line)
    try:
        time.sleep(rng.uniform(*_LASTS_S))
    finally:
        stage.forwarder.set_line(Line.PASSES)
    return ()


FAULTS = tuple(
    Fault(
        f"source {line}",
        partial(_disturb, line),
        may_double=False,
        explains="OperationalError|SourceError|MetadataUnavailable",
    )
    for line in (Line.SILENT, Line.SLOW, Line.REFUSES)
)
