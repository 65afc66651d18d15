"""The tests of a dataset, made from its metadata; a definition that changed gets a new version that says why."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from lakehub.catalog.models import Dataset
from lakehub.kernel.apart import apart
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.errors import Refused
from quality import units
from quality.checks import definitions_of, is_reserved
from quality.checks.custom import CUSTOM
from quality.described import Surroundings, described, surroundings
from quality.domain.definitions import DatasetFacts, Definition, Skipped
from quality.domain.expression import Expression, ExpressionError, Parameters, flattened, parse, understand
from quality.domain.tiers import BadOverride
from quality.lookers import keep_reads
from quality.models import Coverage, SkippedCheck, Test, TestVersion, Unit

RETRIES = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=30))
SWEPT_EVERY = timedelta(hours=6)
"""So often tests are made anew though nothing said that they must be: a change that told nobody, a newer Lakehub."""
SWEPT_AT_ONCE = 5


def generate_missing(*, now: datetime, limit: int = 20) -> int:
    """Generates for the live datasets whose metadata is newer than their tests, and retires the tests of those that left.

    Who waits longest goes first, so that datasets that fail each time starve nobody. The number of datasets tried.
    """
    waiting = list(_behind(now)[:limit])
    waiting += _unlooked_at(now)[: min(SWEPT_AT_ONCE, limit - len(waiting))]
    among = surroundings(waiting)
    for dataset in waiting:
        with apart(f"Making the tests of {dataset}"):
            _try(dataset, among, now=now)
    _retire_of_those_that_left(now=now, limit=limit)
    return len(waiting)


def _behind(now: datetime) -> QuerySet[Dataset]:
    news = Q(coverage=None) | Q(coverage__tried_version__lt=F("metadata_version")) | Q(coverage__retry_at__lte=now)
    longest_first = F("coverage__tried_at").asc(nulls_first=True)
    return Dataset.objects.filter(news, offboarded_at=None).order_by(longest_first, "tier", "pk")


def _unlooked_at(now: datetime) -> QuerySet[Dataset]:
    """The pull behind the push."""
    old = Dataset.objects.filter(offboarded_at=None, coverage__retry_at=None)
    current = old.filter(coverage__tried_at__lte=now - SWEPT_EVERY, coverage__tried_version=F("metadata_version"))
    return current.order_by("coverage__tried_at")


def _try(dataset: Dataset, among: Surroundings, *, now: datetime) -> None:
    """Notes a failure and when to try again, and raises it; a new version of the metadata is tried at once."""
    try:
        generate(dataset, among, now=now)
    except Exception as problem:
        attempts = Coverage.objects.get_or_create(dataset=dataset)[0].attempts + 1
        Coverage.objects.filter(dataset=dataset).update(
            tried_version=dataset.metadata_version,
            tried_at=now,
            attempts=attempts,
            retry_at=now + RETRIES.delay(attempts - 1, 0.0),
            problem=f"{type(problem).__name__}: {problem}",
        )
        raise


def _retire_of_those_that_left(*, now: datetime, limit: int) -> None:
    left = Dataset.objects.filter(offboarded_at__isnull=False, tests__retired_at=None, tests__isnull=False).distinct()[
        :limit
    ]
    for dataset in left:
        # Incidents closes what is open there as off-boarded; nothing is waived.
        Unit.objects.filter(test__dataset=dataset).update(due_at=None, judge_at=None)
        dataset.tests.filter(retired_at=None).update(retired_at=now)


def generate(dataset: Dataset, among: Surroundings | None = None, *, now: datetime) -> list[Test]:
    """Makes, changes and retires tests so that they are what the metadata asks for. Running it again changes nothing."""
    try:
        facts = described(dataset, among)
    except BadOverride as problem:
        _covered(dataset, now=now, problem=str(problem))
        return []
    asked = list(definitions_of(facts))
    with transaction.atomic():
        # Of two workers at once, one makes the new versions.
        Dataset.objects.select_for_update(of=("self",)).get(pk=dataset.pk)
        was = _calendar(dataset)
        tests, problems = _made(dataset, facts, [one for one in asked if isinstance(one, Definition)], now=now)
        if was != _calendar(dataset):
            units.replan(dataset, now=now)
        kept = [*problems, *(test.key for test in tests)]
        gone = dataset.tests.filter(generated=True, retired_at=None).exclude(key__in=kept)
        _retire(gone.exclude(check_name="finding"), now=now)
        _list_skipped(dataset, [one for one in asked if isinstance(one, Skipped)])
        _covered(dataset, now=now, problem="\n".join(f"{key}: {why}" for key, why in problems.items()))
    return tests


def _calendar(dataset: Dataset) -> tuple[str | None, str | None]:
    """When the dataset is produced, as its test of freshness says."""
    fresh = dataset.tests.filter(key="freshness", retired_at=None, version__isnull=False)
    stored = fresh.values_list("version__flattened", flat=True).first()
    said = parse(stored).parameters if stored else Parameters()
    return said.calendar, said.holidays


def _made(
    dataset: Dataset, facts: DatasetFacts, definitions: Iterable[Definition], *, now: datetime
) -> tuple[list[Test], dict[str, str]]:
    """The tests, and by key why one could not be made: it costs no other, and what was there before stays."""
    tests, problems = [], {}
    for definition in definitions:
        try:
            tests.append(put(dataset, facts, definition, now=now))
        except (ExpressionError, KeyTaken) as problem:
            problems[definition.key] = str(problem)
    return tests, problems


def write_test(
    dataset: Dataset, *, key: str, title: str, expression: str, actor: str, gating: bool = True, now: datetime
) -> Test:
    """A test that a person wrote, or a new version of it. Raises Refused with the place of what is wrong."""
    _check_key(dataset, key)
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


def _check_key(dataset: Dataset, key: str) -> None:
    """What is a person's test already may be written anew, whatever it is called. Raises Refused."""
    known = dataset.tests.filter(key=key).first()
    if known is not None and known.generated:
        raise Refused.because({"key": f"`{key}` is a generated test of {dataset.name}: choose another key."})
    if is_reserved(key) and (known is None or known.retired_at is not None):
        raise Refused.because({"key": f"`{key}` is kept for tests that are generated: choose another key."})


def retire_test(test: Test, *, now: datetime) -> None:
    """Ends a test; its results stay."""
    _retire([test], now=now)


class KeyTaken(Exception):
    """A person's test has the key of one that is to be generated."""


def put(
    dataset: Dataset, facts: DatasetFacts, definition: Definition, *, now: datetime, generated: bool = True
) -> Test:
    """The test with this definition, in a new version where anything changed, with its units. Call it in a transaction.

    Raises ExpressionError or KeyTaken, before anything is written.
    """
    if generated and dataset.tests.filter(key=definition.key, generated=False, retired_at=None).exists():
        raise KeyTaken("a person's test has this key; write that one under another key and retire it.")
    understood = understand(definition.expression, facts.scope)
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
    version, anew = _version(test, facts, definition, understood, now=now), False
    if test.version is None or _asks(test.version) != _asks(version):
        # Where the version before looked back, this one may have an answer for earlier partitions.
        anew = test.version is not None and units.looked_back(test.version, dataset)
        version.number = (test.version.number if test.version else 0) + 1
        version.save()
        Test.objects.filter(pk=test.pk).update(version=version)
        test.version = version
        keep_reads(test)
        units.take_new_version(test, now=now)
    units.plan(test, now=now, anew=anew)
    return test


def _version(
    test: Test, facts: DatasetFacts, definition: Definition, understood: Expression, *, now: datetime
) -> TestVersion:
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
        metadata_version=test.dataset.metadata_version,
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


def _list_skipped(dataset: Dataset, skipped: Iterable[Skipped]) -> None:
    told: dict[str, tuple[str, bool]] = {}
    for one in skipped:
        reason, mendable = told.get(one.check, ("", False))
        told[one.check] = ("; ".join(filter(None, [reason, one.reason])), mendable or one.mendable)
    known = dataset.skipped_checks.values_list("check_name", "reason", "mendable")
    if {check: (reason, mendable) for check, reason, mendable in known} == told:
        return
    dataset.skipped_checks.all().delete()
    SkippedCheck.objects.bulk_create(
        SkippedCheck(dataset=dataset, check_name=check, reason=reason, mendable=mendable)
        for check, (reason, mendable) in told.items()
    )


def _covered(dataset: Dataset, *, now: datetime, problem: str = "") -> None:
    version = dataset.metadata_version
    Coverage.objects.update_or_create(
        dataset=dataset,
        defaults={
            "metadata_version": version,
            "generated_at": now,
            "problem": problem,
            "tried_version": version,
            "tried_at": now,
            "attempts": 0,
            "retry_at": None,
        },
    )
