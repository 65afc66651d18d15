"""What to do about a test that cried wolf: retire it, tune it, give it another SLA, or announce what was planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from incidents.domain.incident.resolution import FalsePositive

RETIRE_AFTER_FALSE_ALARMS = 2
"""So many false alarms, and not one that was real: the test tells nothing."""


class Advice(StrEnum):
    RETIRE = "retire"
    TUNE = "tune"
    CHANGE_SLA = "change_sla"
    ANNOUNCE = "announce"


@dataclass(frozen=True)
class FalseAlarmCounts:
    """The false positives of a test by kind, and how many of its incidents were real."""

    kinds: Mapping[FalsePositive, int]
    real: int

    @property
    def false(self) -> int:
        return sum(self.kinds.values())

    @property
    def most(self) -> FalsePositive:
        """The kind there is most of; of two that are level the one that blames the test more."""
        return max(FalsePositive, key=lambda kind: self.kinds.get(kind, 0))


_REMEDY = {
    FalsePositive.WRONG_TEST: Advice.TUNE,
    FalsePositive.WRONG_SLA: Advice.CHANGE_SLA,
    FalsePositive.PLANNED_CHANGE: Advice.ANNOUNCE,
}
_KIND_LABELS = {
    FalsePositive.WRONG_TEST: "wrong test",
    FalsePositive.WRONG_SLA: "wrong SLA",
    FalsePositive.PLANNED_CHANGE: "planned change",
}


def advice(noise: FalseAlarmCounts) -> Advice | None:
    """None: it was never wrong. Only a wrong test is retired: another SLA or a notice mends the other kinds."""
    if not noise.false:
        return None
    wrong = noise.kinds.get(FalsePositive.WRONG_TEST, 0)
    if wrong >= RETIRE_AFTER_FALSE_ALARMS and wrong == noise.false and not noise.real:
        return Advice.RETIRE
    return _REMEDY[noise.most]


def advice_reason(noise: FalseAlarmCounts) -> str:
    """`3 of its 4 incidents were false: 2 wrong test, 1 planned change`"""
    total = noise.false + noise.real
    kinds = [f"{n} {_KIND_LABELS[kind]}" for kind in FalsePositive if (n := noise.kinds.get(kind, 0))]
    which = "Its only incident was" if total == 1 else f"{noise.false} of its {total} incidents were"
    which = which.replace(" were", " was") if noise.false == 1 else which
    return f"{which} false: {', '.join(kinds)}"
