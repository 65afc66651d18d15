"""The tests of a dataset, made from its metadata; a definition that changed gets a new version that says why."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from lakehub.catalog.models import Dataset
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.error_isolation import log_and_continue
from quality.checks import all_definitions
from quality.domain.generation.definitions import DatasetFacts, Definition, FailedCheck, InapplicableCheck
from quality.domain.language import ExpressionError, Parameters, parse
from quality.domain.slas import BadOverride
from quality.generation.custom_tests import follow_slas, retire_tests
from quality.generation.definitions import KeyTaken, save_definition
from quality.models import GenerationStatus, QualityTest, SkippedCheck, Unit
from quality.planning import units
from quality.planning.retired_units import stop_units_of_removed_copies
from quality.state.dataset_facts import CatalogContext, catalog_context, dataset_facts

RETRY_BACKOFF = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=30))
REFRESH_INTERVAL = timedelta(hours=6)
"""So often tests are made anew though nothing said that they must be: a change that told nobody, a newer Lakehub."""
REFRESH_BATCH = 5


def generate_outdated(*, now: datetime, limit: int = 20) -> int:
    """Generates for the live datasets whose metadata is newer than their tests, and retires the tests of those that left.

    Who waits longest goes first, so that datasets that fail each time starve nobody. The number of datasets tried.
    """
    waiting = list(_datasets_out_of_date(now)[:limit])
    waiting += _datasets_to_refresh(now)[: min(REFRESH_BATCH, limit - len(waiting))]
    among = catalog_context(waiting)
    for dataset in waiting:
        with log_and_continue(f"Making the tests of {dataset}"):
            _generate_or_note_failure(dataset, among, now=now)
    _retire_tests_of_offboarded(now=now, limit=limit)
    return len(waiting)


def _datasets_out_of_date(now: datetime) -> QuerySet[Dataset]:
    news = Q(coverage=None) | Q(coverage__attempted_version__lt=F("metadata_version")) | Q(coverage__retry_at__lte=now)
    longest_first = F("coverage__attempted_at").asc(nulls_first=True)
    waiting = Dataset.objects.filter(news, offboarded_at=None).select_related("feed")
    return waiting.order_by(longest_first, "tier", "pk")


def _datasets_to_refresh(now: datetime) -> QuerySet[Dataset]:
    """The pull behind the push."""
    old = Dataset.objects.filter(offboarded_at=None, coverage__retry_at=None)
    current = old.filter(
        coverage__attempted_at__lte=now - REFRESH_INTERVAL, coverage__attempted_version=F("metadata_version")
    )
    return current.select_related("feed").order_by("coverage__attempted_at")


def _generate_or_note_failure(dataset: Dataset, among: CatalogContext, *, now: datetime) -> None:
    """Notes a failure and when to try again, and raises it; a new version of the metadata is tried at once."""
    try:
        generate_tests(dataset, among, now=now)
    except Exception as problem:
        attempts = GenerationStatus.objects.get_or_create(dataset=dataset)[0].attempts + 1
        GenerationStatus.objects.filter(dataset=dataset).update(
            attempted_version=dataset.metadata_version,
            attempted_at=now,
            attempts=attempts,
            retry_at=now + RETRY_BACKOFF.delay(attempts - 1, 0.0),
            problem=f"{type(problem).__name__}: {problem}",
        )
        raise


def _retire_tests_of_offboarded(*, now: datetime, limit: int) -> None:
    left = Dataset.objects.filter(offboarded_at__isnull=False, tests__retired_at=None, tests__isnull=False).distinct()[
        :limit
    ]
    for dataset in left:
        # Incidents closes what is open there as off-boarded; nothing is waived.
        Unit.objects.filter(test__dataset=dataset).update(due_at=None, reevaluate_at=None)
        dataset.tests.filter(retired_at=None).update(retired_at=now)


def generate_tests(dataset: Dataset, among: CatalogContext | None = None, *, now: datetime) -> list[QualityTest]:
    """Makes, changes and retires tests so that they are what the metadata asks for. Running it again changes nothing."""
    try:
        facts = dataset_facts(dataset, among)
    except BadOverride as problem:
        _save_generation_status(dataset, now=now, problem=str(problem))
        return []
    definitions = list(all_definitions(facts))
    with transaction.atomic():
        # Of two workers at once, one makes the new versions.
        Dataset.objects.select_for_update(of=("self",)).get(pk=dataset.pk)
        was = _stored_calendar(dataset)
        tests, problems = _save_definitions(
            dataset, facts, [definition for definition in definitions if isinstance(definition, Definition)], now=now
        )
        follow_slas(dataset, facts, now=now)
        stop_units_of_removed_copies(dataset)
        if was != _stored_calendar(dataset):
            units.replan_dataset(dataset, now=now)
        failed = {failed.check: failed.reason for failed in definitions if isinstance(failed, FailedCheck)}
        kept_keys = [*problems, *(test.key for test in tests)]
        gone = dataset.tests.filter(generated=True, planned=True, retired_at=None).exclude(key__in=kept_keys)
        retire_tests(gone.exclude(check_name__in=failed), now=now)
        problems |= failed
        _save_skipped_checks(
            dataset, [definition for definition in definitions if isinstance(definition, InapplicableCheck)]
        )
        _save_generation_status(dataset, now=now, problem="\n".join(f"{key}: {why}" for key, why in problems.items()))
    return tests


def _stored_calendar(dataset: Dataset) -> tuple[str | None, str | None]:
    """When the dataset is produced, as its test of freshness says."""
    fresh = dataset.tests.filter(key="freshness", retired_at=None, version__isnull=False)
    stored = fresh.values_list("version__flattened", flat=True).first()
    parameters = parse(stored).parameters if stored else Parameters()
    return parameters.calendar, parameters.holidays


def _save_definitions(
    dataset: Dataset, facts: DatasetFacts, definitions: Iterable[Definition], *, now: datetime
) -> tuple[list[QualityTest], dict[str, str]]:
    """The tests, and by key why one could not be made: it costs no other, and what was there before stays."""
    tests, problems = [], {}
    for definition in definitions:
        try:
            tests.append(save_definition(dataset, facts, definition, now=now))
        except (ExpressionError, KeyTaken) as problem:
            problems[definition.key] = str(problem)
    return tests, problems


def _save_skipped_checks(dataset: Dataset, skipped: Iterable[InapplicableCheck]) -> None:
    reasons: dict[str, tuple[str, bool]] = {}
    for skipped_check in skipped:
        reason, mendable = reasons.get(skipped_check.check, ("", False))
        reasons[skipped_check.check] = (
            "; ".join(filter(None, [reason, skipped_check.reason])),
            mendable or skipped_check.mendable,
        )
    stored_rows = dataset.skipped_checks.values_list("check_name", "reason", "mendable")
    if {check: (reason, mendable) for check, reason, mendable in stored_rows} == reasons:
        return
    dataset.skipped_checks.all().delete()
    SkippedCheck.objects.bulk_create(
        SkippedCheck(dataset=dataset, check_name=check, reason=reason, mendable=mendable)
        for check, (reason, mendable) in reasons.items()
    )


def _save_generation_status(dataset: Dataset, *, now: datetime, problem: str = "") -> None:
    version = dataset.metadata_version
    GenerationStatus.objects.update_or_create(
        dataset=dataset,
        defaults={
            "metadata_version": version,
            "generated_at": now,
            "problem": problem,
            "attempted_version": version,
            "attempted_at": now,
            "attempts": 0,
            "retry_at": None,
        },
    )
