"""What may stand in a consumer's policy: verdicts, and reasons of verdicts."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.exceptions import ValidationError

from incidents.domain import gate
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.suggest import did_you_mean
from quality.domain.verdicts import Reason

REASONS = sorted(
    {reason.value for reason in Reason}
    | {
        gate.UNMONITORED,
        gate.NOT_DUE,
        gate.NEVER_TESTED,
        gate.NO_TESTS,
        gate.NOT_EXPECTED,
        gate.IN_GRACE,
        gate.REPORTED,
        gate.REPORT_WAITS,
    }
)
"""The words after the colon in `unknown:not_due`."""


def check_blocks(blocks: object) -> None:
    """Raises ValidationError that names what is wrong, with the nearest word that is known."""
    if not isinstance(blocks, list) or not all(isinstance(word, str) for word in blocks):
        raise ValidationError('Write a list of words, as in ["fail", "unknown:never_tested"].')
    problems = list(_problems(blocks))
    if problems:
        raise ValidationError(problems)


def _problems(blocks: Iterable[str]) -> Iterable[str]:
    verdicts = [verdict.value for verdict in Verdict]
    for word in blocks:
        verdict, colon, reason = word.partition(":")
        if verdict not in verdicts:
            yield f"There is no verdict `{verdict}`.{did_you_mean(verdict, verdicts)}"
        if colon and reason not in REASONS:
            yield f"There is no reason `{reason}`.{did_you_mean(reason, REASONS)}"
