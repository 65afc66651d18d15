"""Coverage as a number: how many datasets are tested as their metadata allows, and what the others lack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.db.models import Exists, OuterRef, Prefetch, Q

from lakehub.accounts.models import Team
from lakehub.catalog.models import Dataset, DatasetCopy
from quality.checks import definitions_of
from quality.described import Surroundings, described, surroundings
from quality.domain.definitions import Definition
from quality.domain.tiers import BadOverride
from quality.models import Category, Test, Unit

HIGHEST = (0, 1)
"""The tiers whose coverage must be whole."""


@dataclass(frozen=True)
class Uncovered:
    dataset: str
    tier: int
    team: str
    why: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """Of the live datasets of some tiers. Covered: each test that the metadata allows (freshness always) is live and has
    a range to run on, made for the present version of the metadata, without a problem, and every copy is monitored."""

    tiers: tuple[int, ...]
    datasets: int
    uncovered: tuple[Uncovered, ...]

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


def coverage(tiers: Collection[int] = HIGHEST, *, team: Team | None = None, now: datetime) -> Coverage:
    """The same few queries however many datasets there are."""
    asked = Q(tier__in=tiers, onboarded_at__lte=now) & (Q(team=team) if team else Q())
    live = Dataset.objects.filter(Q(offboarded_at=None) | Q(offboarded_at__gt=now), asked)
    copies = DatasetCopy.objects.select_related("data_center", "baseline_try")
    datasets = list(
        live.select_related("team", "coverage").prefetch_related(Prefetch("copies", copies)).order_by("tier", "name")
    )
    around, tests = surroundings(datasets), _live_tests(datasets)
    lacking = ((dataset, tuple(_lacks(dataset, tests[dataset.pk], around))) for dataset in datasets)
    uncovered = tuple(Uncovered(dataset.name, dataset.tier, dataset.team.name, why) for dataset, why in lacking if why)
    return Coverage(tuple(sorted(tiers)), len(datasets), uncovered)


def lately(tiers: Collection[int] = HIGHEST, *, now: datetime) -> Coverage:
    """As it was at its first time within this minute: for what is looked at all the time."""
    known = f"coverage:{','.join(map(str, sorted(tiers)))}:{now:%Y%m%d%H%M}"
    found: Coverage | None = cache.get(known)
    if found is None:
        found = coverage(tiers, now=now)
        cache.set(known, found, timeout=60)
    return found


def lacks(dataset: Dataset) -> tuple[str, ...]:
    """Why the dataset is not covered; empty where it is."""
    return tuple(_lacks(dataset, _live_tests([dataset])[dataset.pk], surroundings([dataset])))


def _live_tests(datasets: Collection[Dataset]) -> dict[int, dict[str, Test]]:
    found: dict[int, dict[str, Test]] = defaultdict(dict)
    tests = Test.objects.filter(dataset__in=datasets, retired_at=None, version__isnull=False)
    for test in tests.annotate(has_units=Exists(Unit.objects.filter(test=OuterRef("pk")))):
        found[test.dataset_id][test.key] = test
    return found


def _lacks(dataset: Dataset, tests: dict[str, Test], around: Surroundings) -> Iterator[str]:
    made = getattr(dataset, "coverage", None)
    if made is None or made.generated_at is None:
        yield f"its tests could not be made: {made.problem}" if made else "its tests are not made yet"
        return
    if made.problem:
        yield f"a test could not be made: {made.problem}"
    if made.metadata_version < dataset.metadata_version:
        yield f"its tests are of version {made.metadata_version} of its metadata, which is at {dataset.metadata_version}"
    if Category.FRESHNESS not in {test.category for test in tests.values()}:
        yield "it has no test of freshness"
    yield from _missing(dataset, tests, around)
    yield from _unmonitored(dataset)


def _missing(dataset: Dataset, tests: dict[str, Test], around: Surroundings) -> Iterator[str]:
    try:
        asked = [one for one in definitions_of(described(dataset, around)) if isinstance(one, Definition)]
    except BadOverride:
        return  # the problem says so
    is_monitored = any(copy.monitored_from for copy in dataset.copies.all())
    for definition in asked:
        test = tests.get(definition.key)
        if test is None:
            yield f"the test `{definition.key}` ({definition.category}) is missing"
        elif is_monitored and not test.has_units:  # type: ignore[attr-defined]  # annotated above
            yield f"the test `{definition.key}` ({definition.category}) is run nowhere"


def _unmonitored(dataset: Dataset) -> Iterator[str]:
    for copy in dataset.copies.all():
        if copy.monitored_from is None:
            tried = getattr(copy, "baseline_try", None)
            yield f"its copy in {copy.data_center.name} is not monitored yet{f': {tried.problem}' if tried else ''}"
    if not dataset.copies.all():
        yield "it has no copy"
