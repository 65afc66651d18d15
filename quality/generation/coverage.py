"""Coverage as a number: how many datasets are tested as their metadata allows, and what the others lack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.db.models import Exists, OuterRef, Prefetch, Q

from lakehub.accounts.models import Team
from lakehub.catalog.models import Dataset, DatasetCopy
from quality.checks import all_definitions
from quality.domain.generation.definitions import Definition
from quality.domain.slas import BadOverride
from quality.models import Category, QualityTest, Unit
from quality.state.dataset_facts import CatalogContext, catalog_context, dataset_facts
from quality.state.unverified import UnverifiedTest, unverified_tests

REQUIRED_TIERS = (0, 1)
"""The tiers whose coverage must be whole."""
MAX_UNVERIFIED = 3
"""So many tests of a dataset that are not verified are named."""


@dataclass(frozen=True)
class UncoveredDataset:
    dataset: str
    tier: int
    team: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class TierCoverage:
    """Of the live datasets of some tiers. Covered: each test that the metadata allows (freshness always) is live and has
    a range to run on, made for the present version of the metadata, without a problem, every copy is monitored, and what
    they say is verified: no range of a gating test is unknown for longer than it may be."""

    tiers: tuple[int, ...]
    datasets: int
    uncovered: tuple[UncoveredDataset, ...]

    @property
    def covered(self) -> int:
        return self.datasets - len(self.uncovered)

    @property
    def share(self) -> float | None:
        """None: there are no such datasets."""
        return self.covered / self.datasets if self.datasets else None

    @property
    def is_whole(self) -> bool:
        return not self.uncovered


def coverage_of_tiers(
    tiers: Collection[int] = REQUIRED_TIERS, *, team: Team | None = None, now: datetime
) -> TierCoverage:
    """The same few queries however many datasets there are."""
    in_scope = Q(tier__in=tiers, onboarded_at__lte=now) & (Q(team=team) if team else Q())
    live = Dataset.objects.filter(Q(offboarded_at=None) | Q(offboarded_at__gt=now), in_scope)
    copies = DatasetCopy.objects.select_related("data_center", "baseline_try")
    datasets = list(
        live.select_related("team", "coverage", "feed")
        .prefetch_related(Prefetch("copies", copies))
        .order_by("tier", "name")
    )
    around, tests, unverified = (
        catalog_context(datasets),
        _live_tests(datasets),
        unverified_tests(datasets, now=now),
    )
    lacking = (
        (dataset, (*_gaps(dataset, tests[dataset.pk], around), *_unverified(unverified.get(dataset.pk, ()))))
        for dataset in datasets
    )
    uncovered = tuple(
        UncoveredDataset(dataset.name, dataset.tier, dataset.team.name, why) for dataset, why in lacking if why
    )
    return TierCoverage(tuple(sorted(tiers)), len(datasets), uncovered)


def recent_coverage(tiers: Collection[int] = REQUIRED_TIERS, *, now: datetime) -> TierCoverage:
    """As it was at its first time within this minute: for what is looked at all the time."""
    cache_key = f"coverage:{','.join(map(str, sorted(tiers)))}:{now:%Y%m%d%H%M}"
    tier_coverage: TierCoverage | None = cache.get(cache_key)
    if tier_coverage is None:
        tier_coverage = coverage_of_tiers(tiers, now=now)
        cache.set(cache_key, tier_coverage, timeout=60)
    return tier_coverage


def coverage_gaps(dataset: Dataset, *, now: datetime) -> tuple[str, ...]:
    """Why the dataset is not covered; empty where it is."""
    unverified = unverified_tests([dataset], now=now).get(dataset.pk, ())
    gaps = _gaps(dataset, _live_tests([dataset])[dataset.pk], catalog_context([dataset]))
    return (*gaps, *_unverified(unverified))


def _unverified(tests: Sequence[UnverifiedTest]) -> Iterator[str]:
    if tests:
        more = f", and {len(tests) - MAX_UNVERIFIED:,} tests more" if len(tests) > MAX_UNVERIFIED else ""
        yield f"not verified: {'; '.join(test.sentence for test in tests[:MAX_UNVERIFIED])}{more}"


def _live_tests(datasets: Collection[Dataset]) -> dict[int, dict[str, QualityTest]]:
    tests_by_dataset: dict[int, dict[str, QualityTest]] = defaultdict(dict)
    tests = QualityTest.objects.filter(dataset__in=datasets, retired_at=None, version__isnull=False)
    for test in tests.annotate(has_units=Exists(Unit.objects.filter(test=OuterRef("pk")))):
        tests_by_dataset[test.dataset_id][test.key] = test
    return tests_by_dataset


def _gaps(dataset: Dataset, tests: dict[str, QualityTest], around: CatalogContext) -> Iterator[str]:
    generation_status = getattr(dataset, "coverage", None)
    if generation_status is None or generation_status.generated_at is None:
        yield (
            f"its tests could not be made: {generation_status.problem}"
            if generation_status
            else "its tests are not made yet"
        )
        return
    if generation_status.problem:
        yield f"a test could not be made: {generation_status.problem}"
    if generation_status.metadata_version < dataset.metadata_version:
        yield f"its tests are of version {generation_status.metadata_version} of its metadata, which is at {dataset.metadata_version}"
    if Category.FRESHNESS not in {test.category for test in tests.values()}:
        yield "it has no test of freshness"
    yield from _missing_tests(dataset, tests, around)
    yield from _unmonitored_copies(dataset)


def _missing_tests(dataset: Dataset, tests: dict[str, QualityTest], around: CatalogContext) -> Iterator[str]:
    try:
        definitions = [
            definition
            for definition in all_definitions(dataset_facts(dataset, around))
            if isinstance(definition, Definition)
        ]
    except BadOverride:
        return  # the problem says so
    is_monitored = any(copy.monitored_from for copy in dataset.copies.all())
    for definition in definitions:
        test = tests.get(definition.key)
        if test is None:
            yield f"the test `{definition.key}` ({definition.category}) is missing"
        elif is_monitored and not test.has_units:  # type: ignore[attr-defined]  # annotated above
            yield f"the test `{definition.key}` ({definition.category}) is run nowhere"


def _unmonitored_copies(dataset: Dataset) -> Iterator[str]:
    for copy in dataset.copies.all():
        if copy.monitored_from is None:
            tried = getattr(copy, "baseline_try", None)
            yield f"its copy in {copy.data_center.name} is not monitored yet{f': {tried.problem}' if tried else ''}"
    if not dataset.copies.all():
        yield "it has no copy"
