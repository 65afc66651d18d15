"""What may stand in a consumer's policy: verdicts, and reasons of verdicts."""

from __future__ import annotations

from collections.abc import Iterable

from incidents.domain.gate import causes
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.suggest import did_you_mean
from quality.domain.verdicts.unit_verdict import VerdictReason

KNOWN_REASONS = sorted(
    {reason.value for reason in VerdictReason}
    | {
        causes.UNMONITORED,
        causes.NOT_DUE,
        causes.NEVER_TESTED,
        causes.NO_TESTS,
        causes.NOT_EXPECTED,
        causes.IN_GRACE,
        causes.CHANGED,
        causes.REPORTED,
        causes.REPORT_WAITS,
    }
)
"""The words after the colon in `unknown:not_due`."""


def blocks_problems(blocks: Iterable[str]) -> Iterable[str]:
    verdicts = [verdict.value for verdict in Verdict]
    for word in blocks:
        verdict, colon, reason = word.partition(":")
        if verdict not in verdicts:
            yield f"There is no verdict `{verdict}`.{did_you_mean(verdict, verdicts)}"
        if colon and reason not in KNOWN_REASONS:
            yield f"There is no reason `{reason}`.{did_you_mean(reason, KNOWN_REASONS)}"
