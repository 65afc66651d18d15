"""A task goes by the rate that holds now, and sends nothing while none is allowed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.index_cluster.fresh_rate import HOLDS_S, FreshRate, read_rate, written_rate
from ingestion.domain.index_cluster.guided_pace import GuidedPace
from tests.unit.ingestion.index_cluster.test_request_pace import Clock, burst

changes = st.lists(st.tuples(st.floats(1, 30), st.sampled_from([0.0, 1.0, 40.0, 900.0])), min_size=1, max_size=6)


@given(changes)
def test_no_more_is_sent_than_the_rates_of_then_allow_and_one_burst(changes: list[tuple[float, float]]) -> None:
    """Each rate holds for some seconds, and is let go within a second: so long it may wait for a grant of the one before."""
    clock = Clock()
    begins, at = [], clock.at
    for seconds, rate in changes:
        begins.append((at, rate))
        at += seconds
    begins.append((at, 900.0))

    def rate_now() -> float:
        return next(rate for begin, rate in reversed(begins) if begin <= clock.at)

    pace = GuidedPace(rate_now, clock.now, clock.sleep)
    sent: list[tuple[float, int]] = []
    while clock.at < at + 3:
        sent.append((clock.at, 0))
        granted = pace.take(1_000)
        sent.append((clock.at, granted))
    for (begin, rate), (end, _) in pairwise(begins):
        within = sum(granted for moment, granted in sent if begin + 1.001 < moment < end)
        assert within <= rate * (end - begin) + burst(rate) + 1, (begin, rate)


def test_it_waits_until_something_is_allowed_again_or_the_job_has_no_time_left() -> None:
    clock = Clock()
    rates = iter([0.0, 0.0, 0.0, 50.0])
    pace = GuidedPace(lambda: next(rates), clock.now, clock.sleep)
    assert 1 <= pace.take(10) <= 10
    assert clock.slept >= 3

    def late() -> float:
        if clock.slept > 10:
            raise TimeoutError
        return 0.0

    with pytest.raises(TimeoutError):
        GuidedPace(late, clock.now, clock.sleep).take(1)


def test_without_a_rate_it_never_waits() -> None:
    clock = Clock()
    pace = GuidedPace(lambda: None, clock.now, clock.sleep)
    pace.back_off()
    assert (pace.take(10**6), clock.slept) == (10**6, 0.0)


def test_a_rate_that_is_being_written_is_no_news_and_an_old_one_none() -> None:
    clock, text = Clock(), [""]
    fresh = FreshRate(lambda: text[0], clock.now)
    assert fresh() is None
    rates = []
    for number, wrote in enumerate([written_rate(5.0, 0), "7", "7.5 1", written_rate(7.5, 1), ""]):
        text[0], clock.at = wrote, clock.at + 2
        rates.append((number, fresh()))
    assert rates == [(0, 5.0), (1, 5.0), (2, 5.0), (3, 7.5), (4, 7.5)]
    for no_rate in ("\n", "x 1\n", "nan 2\n", "inf 3\n", "-1 4\n", "8 5 6\n", "8" * 64):
        text[0], clock.at = no_rate, clock.at + 0.1
        assert read_rate(no_rate) is None
    clock.at += HOLDS_S
    assert fresh() == 0.0
    text[0], clock.at = written_rate(7.5, 2), clock.at + 2
    assert fresh() == 7.5
