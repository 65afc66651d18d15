"""Which tables each test reads, stored so that the dependents of a table can be found by index."""

from __future__ import annotations

from quality.domain.evaluation.referenced_tables import referenced_tables
from quality.models import QualityTest, TableReference


def save_table_references(test: QualityTest) -> None:
    """Writes down what the current version reads. Call it with every new version, in its transaction."""
    assert test.version is not None
    test.reads.all().delete()
    TableReference.objects.bulk_create(
        TableReference(test=test, name=name) for name in sorted(referenced_tables(test.version.flattened))
    )
