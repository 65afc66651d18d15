"""What one execution of a test can end as, and what a unit, category or dataset can be."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """The stored outcome of one execution."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NO_DATA = "no_data"
    ERROR = "error"
    SKIPPED = "skipped"


class Verdict(StrEnum):
    """What is believed now. Worst first: FAIL > UNKNOWN > WARN > PASS."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    UNKNOWN = "unknown"
    FAIL = "fail"

    @property
    def severity(self) -> int:
        return _SEVERITY[self]


_SEVERITY = {verdict: rank for rank, verdict in enumerate(Verdict)}


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; of none: UNKNOWN, because nothing that was checked is not the same as good."""
    return max(verdicts, key=lambda verdict: verdict.severity, default=Verdict.UNKNOWN)
