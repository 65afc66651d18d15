"""Precision, recall, data-level and query-level scores of a window, for the platform and by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from incidents.domain.scores.quality_levels import DataLevel, QueryLevel, data_level, monitored_pieces
from incidents.domain.scores.tally import DatasetCategory, Durations, Tally, tally_by_category
from incidents.scores.intervals import FailureIntervals, MonitoredDataset, dataset_by_copy, failure_intervals
from incidents.scores.query_level import query_levels
from incidents.scores.scope import ALL_DATASETS, Scope
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category, QualityTest

GROUPINGS = ("team", "tier", "category", "dataset", "test")


@dataclass(frozen=True)
class Score:
    """Of the platform or of one group. Shares are None where there is nothing to share."""

    name: str = ""
    """The team, the tier, the category, the dataset, the title of the test; empty: of all."""
    durations: Durations = field(default_factory=Durations)
    data: DataLevel | None = None
    """None: not told of a test."""
    queries: QueryLevel | None = None
    """None: a question is about a dataset, not about a category or a test of it."""
    real: int = 0
    false: int = 0
    missed: int = 0
    """The number of incidents behind TP, FP and FN."""
    unsettled: tuple[int, ...] = ()
    """Those of them that are open: their time counts to now and may still change sides."""
    dataset: str = ""
    """Whose it is: of a dataset or a test."""
    test: str = ""
    """The key of the test within its dataset."""
    key: int | None = None

    @property
    def incident_share(self) -> float | None:
        return None if self.data is None else self.data.incident_share

    @property
    def quality(self) -> float | None:
        return None if self.data is None else self.data.quality

    @property
    def within(self) -> dict[str, str]:
        """What narrows a list of incidents to those behind this score, but for the window and what was asked of all."""
        if self.test:
            return {"dataset": self.dataset, "test": self.test}
        return {"dataset": self.dataset} if self.dataset else {}


@dataclass(frozen=True)
class Scores:
    """Everything about one window."""

    window: Interval
    scope: Scope
    lives: FailureIntervals
    asked: Mapping[int, Sequence[QueryLevel]]
    """By dataset, one a step."""
    steps: int = 1
    """Of the same length, in which questions are counted."""

    @property
    def edges(self) -> list[datetime]:
        """Of the steps."""
        return step_edges(self.window, self.steps)

    @cached_property
    def tallies(self) -> dict[DatasetCategory, Tally]:
        all_tallies = tally_by_category(self.lives.rows, self.lives.missed, self.lives.window)
        category = self.scope.category
        return {key: tally for key, tally in all_tallies.items() if category in ("", key[1])}

    @cached_property
    def whole(self) -> Score:
        return self._score("", self.tallies.values(), self.lives.datasets)

    @property
    def durations(self) -> Durations:
        return self.whole.durations

    @property
    def incident_share(self) -> float | None:
        return self.whole.incident_share

    @property
    def quality(self) -> float | None:
        return self.whole.quality

    @property
    def queries(self) -> QueryLevel:
        return self.whole.queries or QueryLevel()

    @property
    def unsettled(self) -> tuple[int, ...]:
        return self.whole.unsettled

    @property
    def datasets(self) -> list[Score]:
        return self.by("dataset")

    def by(self, grouping: str) -> list[Score]:
        """Teams, tiers and categories in their order; datasets by name; tests with the most time first, not named yet."""
        if grouping not in GROUPINGS:
            raise Refused.for_fields({"by": f"Nothing is grouped by `{grouping}`.{did_you_mean(grouping, GROUPINGS)}"})
        if grouping == "test":
            return self.of_tests()
        if grouping == "category":
            return self._by_category()
        return self._by_datasets(grouping)

    def _by_datasets(self, grouping: str) -> list[Score]:
        named: dict[str, Callable[[MonitoredDataset], str]] = {
            "team": lambda dataset: dataset.team,
            "tier": lambda dataset: str(dataset.tier),
            "dataset": lambda dataset: dataset.name,
        }
        members: defaultdict[str, list[int]] = defaultdict(list)
        for pk, monitored_dataset in self.lives.datasets.items():
            members[named[grouping](monitored_dataset)].append(pk)
        of_dataset: defaultdict[int, list[Tally]] = defaultdict(list)
        for (dataset, _), tally in self.tallies.items():
            of_dataset[dataset].append(tally)
        scores = [
            self._score(name, (tally for pk in pks for tally in of_dataset[pk]), pks)
            for name, pks in sorted(members.items())
        ]
        return [replace(score, dataset=score.name) for score in scores] if grouping == "dataset" else scores

    def _by_category(self) -> list[Score]:
        shown = [self.scope.category] if self.scope.category else Category.values
        return [
            replace(
                self._score(
                    name, (tally for key, tally in self.tallies.items() if key[1] == name), self.lives.datasets, name
                ),
                queries=None,
            )
            for name in shown
        ]

    def of_tests(self, only: Collection[int] | None = None) -> list[Score]:
        """Of all, or of `only` these; those with the most time first, not named yet."""
        tallies = self.lives.by_test(self.scope.category, only=only)
        scores = [replace(sum_tallies("", [tally]), key=pk) for pk, tally in tallies.items()]
        return sorted(scores, key=lambda score: (-score.durations.whole, score.key or 0))

    def _score(self, name: str, tallies: Iterable[Tally], datasets: Iterable[int], category: str = "") -> Score:
        return replace(
            sum_tallies(name, tallies),
            data=sum((self._level(pk, category) for pk in datasets), DataLevel()),
            queries=sum((level for pk in datasets for level in self.asked.get(pk, ())), QueryLevel()),
        )

    def _level(self, dataset: int, category: str) -> DataLevel:
        if (dataset, category) not in self._levels:
            self._levels[dataset, category] = self._level_of(dataset, category)
        return self._levels[dataset, category]

    @cached_property
    def _levels(self) -> dict[DatasetCategory, DataLevel]:
        """Those that were asked for; of a dataset in all categories, it is asked for by every grouping."""
        return {}

    def _level_of(self, dataset: int, category: str) -> DataLevel:
        monitored = monitored_pieces(self.lives.window, dataset, self.lives.datasets[dataset].monitored_from)
        names = [category] if category else Category.values
        tallies = (self.tallies[key] for name in names if (key := (dataset, name)) in self.tallies)
        return data_level(tallies, monitored)


def step_edges(window: Interval, steps: int) -> list[datetime]:
    return [window.start + window.length * at / steps for at in range(steps)] + [window.end]


def scores_of(window: Interval, *, now: datetime, scope: Scope = ALL_DATASETS, steps: int = 1) -> Scores:
    """The scores of the live datasets of the scope within `window`, judged with what is known now.

    Raises Refused where the window ends in the future: nobody knows yet.
    """
    if window.end > now:
        raise Refused.for_fields({"to": f"The window ends at {window.end:%Y-%m-%d %H:%M} UTC, which has not come yet."})
    lives = failure_intervals(window, scope)
    levels = query_levels(step_edges(window, steps), dataset_by_copy(lives.datasets))
    return Scores(window, scope, lives, levels, steps)


def sum_tallies(name: str, tallies: Iterable[Tally]) -> Score:
    """Their durations added up, and the incidents behind them."""
    durations, real, false, missed = Durations(), 0, 0, 0
    unsettled: list[int] = []
    for tally in tallies:
        durations += tally.durations
        real, false, missed = real + len(tally.real), false + len(tally.false), missed + len(tally.missed)
        unsettled.extend(tally.unsettled)
    return Score(name, durations, real=real, false=false, missed=missed, unsettled=tuple(sorted(unsettled)))


def with_test_names(scores: Iterable[Score]) -> list[Score]:
    """Scores by test with the names of the tests and of their datasets: one query for a page of them."""
    rows = list(scores)
    tests = QualityTest.objects.filter(pk__in=[score.key for score in rows]).values_list(
        "pk", "title", "key", "dataset__name"
    )
    names_by_test = {pk: (title, key, dataset) for pk, title, key, dataset in tests}
    named = []
    for score in rows:
        title, key, dataset = names_by_test[score.key or 0]
        named.append(replace(score, name=title, test=key, dataset=dataset))
    return named
