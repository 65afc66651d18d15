"""The tests of a dataset, made from its metadata; a definition that changed gets a new version that says why."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from lakehub.catalog.models import Dataset
from lakehub.kernel.apart import apart
from lakehub.kernel.errors import Refused
from quality import units
from quality.checks import definitions_of
from quality.checks.custom import CUSTOM
from quality.described import described
from quality.domain.definitions import DatasetFacts, Definition, Skipped
from quality.domain.expression import ExpressionError, flattened, understand
from quality.domain.tiers import BadOverride
from quality.models import Coverage, SkippedCheck, Test, TestVersion, Unit


def generate_missing(*, now: datetime, limit: int = 20) -> None:
    """Generates for the live datasets whose metadata is newer than their tests, and retires the tests of those that left."""
    behind = Q(coverage=None) | Q(coverage__metadata_version__lt=F("metadata_version"))
    for dataset in Dataset.objects.filter(behind, offboarded_at=None).order_by("tier", "pk")[:limit]:
        with apart(f"Making the tests of {dataset}"):
            generate(dataset, now=now)
    left = Dataset.objects.filter(offboarded_at__isnull=False, tests__retired_at=None, tests__isnull=False).distinct()[
        :limit
    ]
    for dataset in left:
        # Incidents closes what is open there as off-boarded; nothing is waived.
        Unit.objects.filter(test__dataset=dataset).update(due_at=None, judge_at=None)
        dataset.tests.filter(retired_at=None).update(retired_at=now)


def generate(dataset: Dataset, *, now: datetime) -> list[Test]:
    """Makes, changes and retires tests so that they are what the metadata asks for. Running it again changes nothing."""
    try:
        facts = described(dataset)
    except BadOverride as problem:
        _covered(dataset, now=now, problem=str(problem))
        return []
    made = [one for one in definitions_of(facts) if isinstance(one, Definition)]
    skipped = [one for one in definitions_of(facts) if isinstance(one, Skipped)]
    with transaction.atomic():
        tests = [put(dataset, facts, definition, now=now) for definition in made]
        gone = (
            dataset.tests.filter(generated=True, retired_at=None)
            .exclude(pk__in=[test.pk for test in tests])
            .exclude(check_name="finding")
        )
        _retire(gone, now=now)
        _list_skipped(dataset, skipped)
        _covered(dataset, now=now)
    return tests


def write_test(
    dataset: Dataset, *, key: str, title: str, expression: str, actor: str, gating: bool = True, now: datetime
) -> Test:
    """A test that a person wrote, or a new version of it. Raises Refused with the place of what is wrong."""
    taken = dataset.tests.filter(key=key, generated=True).exists()
    if taken:
        raise Refused.because({"key": f"`{key}` is a generated test of {dataset.name}: choose another key."})
    try:
        facts = described(dataset)
        definition = CUSTOM.of(
            facts, key=key, title=title, expression=expression, because=f"written by {actor}", gating=gating
        )
    except BadOverride as problem:
        raise Refused.because({"overrides": str(problem)}) from problem
    except ExpressionError as problem:
        raise Refused.because({"expression": str(problem)}) from problem
    with transaction.atomic():
        return put(dataset, facts, definition, now=now, generated=False)


def retire_test(test: Test, *, now: datetime) -> None:
    """Ends a test; its results stay."""
    _retire([test], now=now)


def put(
    dataset: Dataset, facts: DatasetFacts, definition: Definition, *, now: datetime, generated: bool = True
) -> Test:
    """The test with this definition, in a new version where anything changed, with its units. Call it in a transaction."""
    test, _ = Test.objects.update_or_create(
        dataset=dataset,
        key=definition.key,
        defaults={
            "title": definition.title,
            "category": definition.category,
            "check_name": definition.check,
            "gating": definition.gating,
            "generated": generated,
            "retired_at": None,
        },
    )
    version = _version(test, facts, definition, now=now)
    if test.version is None or _asks(test.version) != _asks(version):
        version.number = (test.version.number if test.version else 0) + 1
        version.save()
        Test.objects.filter(pk=test.pk).update(version=version)
        test.version = version
        units.take_new_version(test, now=now)
    units.plan(test, now=now)
    return test


def _version(test: Test, facts: DatasetFacts, definition: Definition, *, now: datetime) -> TestVersion:
    understood = understand(definition.expression, facts.scope)
    return TestVersion(
        test=test,
        expression=definition.expression,
        flattened=flattened(understood),
        sustain=definition.sustain,
        cadence=definition.cadence,
        due_after=timedelta() if definition.check == "finding" else facts.slas.freshness,
        rerun_base=facts.slas.rerun_base,
        rerun_cap=facts.slas.rerun_cap,
        created_at=now,
        because=definition.because,
    )


def _asks(version: TestVersion) -> tuple[object, ...]:
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


def _retire(tests: Iterable[Test], *, now: datetime) -> None:
    for test in tests:
        with transaction.atomic():
            Test.objects.filter(pk=test.pk, retired_at=None).update(retired_at=now)
            units.stop(test, now=now)


def _list_skipped(dataset: Dataset, skipped: list[Skipped]) -> None:
    dataset.skipped_checks.all().delete()
    SkippedCheck.objects.bulk_create(
        SkippedCheck(dataset=dataset, check_name=one.check, reason=one.reason) for one in skipped
    )


def _covered(dataset: Dataset, *, now: datetime, problem: str = "") -> None:
    Coverage.objects.update_or_create(
        dataset=dataset,
        defaults={"metadata_version": dataset.metadata_version, "generated_at": now, "problem": problem},
    )
