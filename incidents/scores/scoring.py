"""Precision, recall, data-level and query-level scores of a window, for the platform and by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from incidents.domain.levels import DataLevel, QueryLevel, data_level
from incidents.domain.scores import Durations, Key, Tally, tally
from incidents.scores.lives import Known, Lives, copies_of, lives_of
from incidents.scores.questions import query_levels
from incidents.scores.scope import ALL, Scope
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category, Test

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
    lives: Lives
    asked: Mapping[int, Sequence[QueryLevel]]
    """By dataset, one a step."""
    steps: int = 1
    """Of the same length, in which questions are counted."""

    @property
    def edges(self) -> list[datetime]:
        """Of the steps."""
        return edges_of(self.window, self.steps)

    @cached_property
    def tallies(self) -> dict[Key, Tally]:
        found = tally(self.lives.rows, self.lives.missed, self.lives.window)
        category = self.scope.category
        return {key: one for key, one in found.items() if category in ("", key[1])}

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
            raise Refused.because({"by": f"Nothing is grouped by `{grouping}`.{did_you_mean(grouping, GROUPINGS)}"})
        if grouping == "test":
            return self.of_tests()
        if grouping == "category":
            return self._by_category()
        return self._by_datasets(grouping)

    def _by_datasets(self, grouping: str) -> list[Score]:
        named: dict[str, Callable[[Known], str]] = {
            "team": lambda one: one.team,
            "tier": lambda one: str(one.tier),
            "dataset": lambda one: one.name,
        }
        members: defaultdict[str, list[int]] = defaultdict(list)
        for pk, known in self.lives.datasets.items():
            members[named[grouping](known)].append(pk)
        of_dataset: defaultdict[int, list[Tally]] = defaultdict(list)
        for (dataset, _), one in self.tallies.items():
            of_dataset[dataset].append(one)
        found = [
            self._score(name, (one for pk in pks for one in of_dataset[pk]), pks)
            for name, pks in sorted(members.items())
        ]
        return [replace(one, dataset=one.name) for one in found] if grouping == "dataset" else found

    def _by_category(self) -> list[Score]:
        shown = [self.scope.category] if self.scope.category else Category.values
        return [
            replace(
                self._score(
                    name, (one for key, one in self.tallies.items() if key[1] == name), self.lives.datasets, name
                ),
                queries=None,
            )
            for name in shown
        ]

    def of_tests(self, only: Collection[int] | None = None) -> list[Score]:
        """Of all, or of `only` these; those with the most time first, not named yet."""
        found = self.lives.by_test(self.scope.category, only=only)
        scores = [replace(summed("", [one]), key=pk) for pk, one in found.items()]
        return sorted(scores, key=lambda one: (-one.durations.whole, one.key or 0))

    def _score(self, name: str, tallies: Iterable[Tally], datasets: Iterable[int], category: str = "") -> Score:
        return replace(
            summed(name, tallies),
            data=sum((self._level(pk, category) for pk in datasets), DataLevel()),
            queries=sum((level for pk in datasets for level in self.asked.get(pk, ())), QueryLevel()),
        )

    def _level(self, dataset: int, category: str) -> DataLevel:
        if (dataset, category) not in self._levels:
            self._levels[dataset, category] = self._level_of(dataset, category)
        return self._levels[dataset, category]

    @cached_property
    def _levels(self) -> dict[Key, DataLevel]:
        """Those that were asked for; of a dataset in all categories, it is asked for by every grouping."""
        return {}

    def _level_of(self, dataset: int, category: str) -> DataLevel:
        since = self.lives.datasets[dataset].monitored_from
        if since is None:
            return DataLevel()
        names = [category] if category else Category.values
        tallies = (self.tallies[key] for name in names if (key := (dataset, name)) in self.tallies)
        return data_level(tallies, self.window, monitored_from=since)


def edges_of(window: Interval, steps: int) -> list[datetime]:
    return [window.start + window.length * at / steps for at in range(steps)] + [window.end]


def scores_of(window: Interval, *, now: datetime, scope: Scope = ALL, steps: int = 1) -> Scores:
    """The scores of the live datasets of the scope within `window`, judged with what is known now.

    Raises Refused where the window ends in the future: nobody knows yet.
    """
    if window.end > now:
        raise Refused.because({"to": f"The window ends at {window.end:%Y-%m-%d %H:%M} UTC, which has not come yet."})
    lives = lives_of(window, scope)
    asked = query_levels(edges_of(window, steps), copies_of(lives.datasets))
    return Scores(window, scope, lives, asked, steps)


def summed(name: str, tallies: Iterable[Tally]) -> Score:
    """Their durations added up, and the incidents behind them."""
    durations, real, false, missed = Durations(), 0, 0, 0
    unsettled: list[int] = []
    for one in tallies:
        durations += one.durations
        real, false, missed = real + len(one.real), false + len(one.false), missed + len(one.missed)
        unsettled.extend(one.unsettled)
    return Score(name, durations, real=real, false=false, missed=missed, unsettled=tuple(sorted(unsettled)))


def named(scores: Iterable[Score]) -> list[Score]:
    """Scores by test with the names of the tests and of their datasets: one query for a page of them."""
    rows = list(scores)
    tests = Test.objects.filter(pk__in=[one.key for one in rows]).values_list("pk", "title", "key", "dataset__name")
    known = {pk: (title, key, dataset) for pk, title, key, dataset in tests}
    found = []
    for one in rows:
        title, key, dataset = known[one.key or 0]
        found.append(replace(one, name=title, test=key, dataset=dataset))
    return found
