"""The tests to retire or to tune: those whose incidents people forced to be false, with what to do about each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from incidents.domain.resolution import FalsePositive
from incidents.domain.tuning import Advice, Noise, advice, because
from incidents.scores.behind import false_by_test
from incidents.scores.scoring import Score, Scores, named
from quality.models import Test

MOST = 200


@dataclass(frozen=True)
class Noisy:
    """One test, its scores in the window, its false alarms by kind and what would end them."""

    score: Score
    noise: Noise
    advice: Advice
    tier: int
    team: str

    @property
    def because(self) -> str:
        return because(self.noise)

    @property
    def kinds(self) -> list[tuple[FalsePositive, int]]:
        return [(kind, n) for kind in FalsePositive if (n := self.noise.kinds.get(kind, 0))]


def noisy_tests(scores: Scores) -> list[Noisy]:
    """Of the live tests in the window, the most false time first. Three queries beyond the scores."""
    kinds = _kinds(scores)
    live = dict(Test.objects.filter(pk__in=list(kinds), retired_at=None).values_list("pk", "dataset_id").order_by())
    found = [one for one in scores.of_tests(live) if one.key in live and one.false]
    worst = sorted(found, key=lambda one: (-one.durations.fp, one.key or 0))[:MOST]
    return list(_noisy(named(worst), scores, kinds, live))


def _noisy(
    tests: Iterable[Score], scores: Scores, kinds: dict[int, dict[FalsePositive, int]], live: dict[int, int]
) -> Iterable[Noisy]:
    for score in tests:
        key = score.key or 0
        noise = Noise(kinds[key], score.real)
        what = advice(noise)
        if what is not None:
            known = scores.lives.datasets[live[key]]
            yield Noisy(score, noise, what, known.tier, known.team)


def _kinds(scores: Scores) -> dict[int, dict[FalsePositive, int]]:
    """How many false positives of each kind each test had in the window."""
    found: defaultdict[int, dict[FalsePositive, int]] = defaultdict(dict)
    for test, kind, n in false_by_test(scores.window, scores.scope):
        found[test][FalsePositive(kind)] = n
    return found
