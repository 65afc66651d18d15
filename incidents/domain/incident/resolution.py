"""How an incident was resolved, and what becomes of its units."""

from __future__ import annotations

from enum import StrEnum


class Resolution(StrEnum):
    AUTO = "auto"
    MANUAL_RERUN = "manual_rerun"
    FALSE_POSITIVE = "false_positive"
    ACCEPTED = "accepted"
    DECLARED_FIXED = "declared_fixed"
    REJECTED = "rejected"
    MERGED = "merged"
    OFFBOARDED = "offboarded"
    COPY_REMOVED = "copy_removed"


class FalsePositive(StrEnum):
    WRONG_TEST = "wrong_test"
    WRONG_SLA = "wrong_sla"
    PLANNED_CHANGE = "planned_change"


FORCED_RESOLUTIONS = frozenset({Resolution.FALSE_POSITIVE, Resolution.ACCEPTED})
"""A person resolved it while its units failed: they are waived."""

MANUAL_TRIGGER = "manual"


def resolution_of_pass(trigger: str) -> Resolution:
    """A PASS ended the last span: did a person ask for that run?"""
    return Resolution.MANUAL_RERUN if trigger == MANUAL_TRIGGER else Resolution.AUTO
