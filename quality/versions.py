"""What a test asked over time: each version with what changed, and because of which metadata."""

from __future__ import annotations

from dataclasses import dataclass

from quality.domain.definitions import Asked, difference
from quality.models import Test, TestVersion


@dataclass(frozen=True)
class Change:
    """A version, and in words what it asks otherwise than the one before. The first one changes nothing."""

    version: TestVersion
    differences: tuple[str, ...]


def history(test: Test) -> list[Change]:
    """Newest first."""
    versions = list(test.versions.order_by("number"))
    before = [None, *versions]
    changes = [
        Change(version, difference(asked(was), asked(version)) if was else ())
        for was, version in zip(before, versions, strict=False)
    ]
    return changes[::-1]


def asked(version: TestVersion) -> Asked:
    return Asked(
        flattened=version.flattened,
        sustain=version.sustain,
        cadence=version.cadence,
        due_after=version.due_after,
        rerun_base=version.rerun_base,
        rerun_cap=version.rerun_cap,
        because=version.because,
    )
