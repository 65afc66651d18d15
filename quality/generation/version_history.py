"""What a test asked over time: each version with what changed, and because of which metadata."""

from __future__ import annotations

from dataclasses import dataclass

from quality.domain.generation.version_difference import VersionDefinition, version_difference
from quality.models import QualityTest, QualityTestVersion


@dataclass(frozen=True)
class VersionChange:
    """A version, and in words what it asks otherwise than the one before. The first one changes nothing."""

    version: QualityTestVersion
    differences: tuple[str, ...]


def version_history(test: QualityTest) -> list[VersionChange]:
    """Newest first."""
    versions = list(test.versions.order_by("number"))
    before = [None, *versions]
    changes = [
        VersionChange(version, version_difference(definition_of(was), definition_of(version)) if was else ())
        for was, version in zip(before, versions, strict=False)
    ]
    return changes[::-1]


def definition_of(version: QualityTestVersion) -> VersionDefinition:
    return VersionDefinition(
        flattened=version.flattened,
        sustain=version.sustain,
        cadence=version.cadence,
        due_after=version.due_after,
        rerun_base=version.rerun_base,
        rerun_cap=version.rerun_cap,
        because=version.because,
    )
