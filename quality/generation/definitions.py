"""Saves the definition of a test; a definition that changed becomes a new version that says why."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakehub.catalog.models import Dataset
from quality.domain.generation.definitions import DatasetFacts, Definition
from quality.domain.language import Expression, flattened, understand
from quality.models import QualityTest, QualityTestVersion
from quality.planning import retired_units, units
from quality.planning.table_references import save_table_references
from quality.state import first_partition


class KeyTaken(Exception):
    """A person's test has the key of one that is to be generated."""


def save_definition(
    dataset: Dataset, facts: DatasetFacts, definition: Definition, *, now: datetime, generated: bool = True
) -> QualityTest:
    """The test with this definition, in a new version where anything changed, with its units. Call it in a transaction.

    Raises ExpressionError or KeyTaken, before anything is written.
    """
    if generated and dataset.tests.filter(key=definition.key, generated=False, retired_at=None).exists():
        raise KeyTaken("a person's test has this key; write that one under another key and retire it.")
    understood = understand(definition.expression, facts.scope)
    test, _ = QualityTest.objects.update_or_create(
        dataset=dataset,
        key=definition.key,
        defaults={
            **_gating_since(dataset, definition, now=now),
            "title": definition.title,
            "category": definition.category,
            "check_name": definition.check,
            "gating": definition.gating,
            "planned": definition.planned,
            "generated": generated,
            "retired_at": None,
        },
    )
    version, anew = _new_version(test, facts, definition, understood, now=now), False
    if test.version is None or _version_content(test.version) != _version_content(version):
        # Where the version before looked back, this one may have an answer for earlier partitions.
        anew = test.version is not None and first_partition.is_looking_back(test.version, dataset)
        is_moved = test.version is not None and test.version.due_after != version.due_after
        version.number = (test.version.number if test.version else 0) + 1
        version.save()
        QualityTest.objects.filter(pk=test.pk).update(version=version)
        test.version = version
        save_table_references(test)
        retired_units.reset_units_for_new_version(test, now=now)
        if is_moved:
            retired_units.move_planned_units(test, now=now)
    units.plan_units(test, now=now, anew=anew)
    return test


def _gating_since(dataset: Dataset, definition: Definition, *, now: datetime) -> dict[str, datetime]:
    """Set where the test begins to gate now, and the dataset was monitored before."""
    gated = dataset.tests.filter(key=definition.key, gating=True, retired_at=None).exists()
    is_added = definition.gating and not gated and dataset.copies.exclude(monitored_from=None).exists()
    return {"added_at": now} if is_added else {}


def _new_version(
    test: QualityTest, facts: DatasetFacts, definition: Definition, understood: Expression, *, now: datetime
) -> QualityTestVersion:
    return QualityTestVersion(
        test=test,
        expression=definition.expression,
        flattened=flattened(understood),
        sustain=definition.sustain,
        cadence=definition.cadence,
        due_after=facts.slas.freshness if definition.planned else timedelta(),
        rerun_base=max(facts.slas.rerun_base, definition.least_rerun),
        rerun_cap=max(facts.slas.rerun_cap, definition.least_rerun),
        created_at=now,
        because=definition.because,
        metadata_version=test.dataset.metadata_version,
    )


def _version_content(version: QualityTestVersion) -> tuple[object, ...]:
    """All but when and why: what makes it another version."""
    return (
        version.expression,
        version.flattened,
        version.sustain,
        version.cadence,
        version.due_after,
        version.rerun_base,
        version.rerun_cap,
    )
