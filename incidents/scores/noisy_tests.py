"""The tests to retire or to tune: those whose incidents people forced to be false, with what to do about each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from incidents.domain.incident.resolution import FalsePositive
from incidents.domain.scores.noisy_tests import Advice, FalseAlarmCounts, advice, advice_reason
from incidents.scores.drilldown import false_positives_by_test
from incidents.scores.scoring import Score, Scores, with_test_names
from quality.models import QualityTest

MAX_TESTS = 200


@dataclass(frozen=True)
class NoisyTest:
    """One test, its scores in the window, its false alarms by kind and what would end them."""

    score: Score
    noise: FalseAlarmCounts
    advice: Advice
    tier: int
    team: str

    @property
    def because(self) -> str:
        return advice_reason(self.noise)

    @property
    def kinds(self) -> list[tuple[FalsePositive, int]]:
        return [(kind, n) for kind in FalsePositive if (n := self.noise.kinds.get(kind, 0))]


def noisy_tests(scores: Scores) -> list[NoisyTest]:
    """Of the live tests in the window, the most false time first. Three queries beyond the scores."""
    kinds = _false_positive_counts(scores)
    live = dict(
        QualityTest.objects.filter(pk__in=list(kinds), retired_at=None).values_list("pk", "dataset_id").order_by()
    )
    false_alarms = [score for score in scores.of_tests(live) if score.key in live and score.false]
    worst = sorted(false_alarms, key=lambda score: (-score.durations.fp, score.key or 0))[:MAX_TESTS]
    return list(_with_advice(with_test_names(worst), scores, kinds, live))


def _with_advice(
    tests: Iterable[Score], scores: Scores, kinds: dict[int, dict[FalsePositive, int]], live: dict[int, int]
) -> Iterable[NoisyTest]:
    for score in tests:
        key = score.key or 0
        noise = FalseAlarmCounts(kinds[key], score.real)
        recommendation = advice(noise)
        if recommendation is not None:
            dataset = scores.lives.datasets[live[key]]
            yield NoisyTest(score, noise, recommendation, dataset.tier, dataset.team)


def _false_positive_counts(scores: Scores) -> dict[int, dict[FalsePositive, int]]:
    """How many false positives of each kind each test had in the window."""
    counts: defaultdict[int, dict[FalsePositive, int]] = defaultdict(dict)
    for test, kind, n in false_positives_by_test(scores.window, scores.scope):
        counts[test][FalsePositive(kind)] = n
    return counts
