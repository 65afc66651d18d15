"""A task sends no faster than it may, whatever it asks for, and slows down where the servers do not keep up."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.index_cluster.request_pace import (
    RECOVERY_PER_S,
    SAVED_UP_S,
    SLOWEST,
    WORTH_A_CALL,
    WORTH_WAITING_S,
    RequestPace,
)


@dataclass
class Clock:
    at: float = 1_000.0
    slept: float = 0.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.at += seconds
        self.slept += seconds


def pace_at(rate: float) -> tuple[RequestPace, Clock]:
    clock = Clock()
    return RequestPace(rate, clock.now, clock.sleep), clock


def burst(rate: float) -> float:
    """What may be sent at one moment: what is saved up, and a call of a slow rate."""
    return max(1.0, rate * SAVED_UP_S, min(WORTH_A_CALL, rate * WORTH_WAITING_S))


def send(pace: RequestPace, count: int) -> None:
    """A batch of any size."""
    while count:
        count -= pace.take(count)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(1, 5_000)),
        st.tuples(st.just("work"), st.floats(0, 40)),
        st.tuples(st.just("back off"), st.just(0)),
        st.tuples(st.just("rate"), st.sampled_from([0.3, 1.0, 90.0, 2_000.0])),
    ),
    max_size=25,
)


@given(steps, st.sampled_from([0.3, 1.0, 70.0, 2_000.0]))
def test_over_any_window_no_more_is_sent_than_the_rates_allow_and_one_burst(
    steps: list[tuple[str, float]], rate: float
) -> None:
    pace, clock = pace_at(rate)
    sent: list[tuple[float, int]] = []
    rates = [(clock.at, rate)]
    for step, value in steps:
        if step == "take":
            granted = pace.take(int(value))
            assert 1 <= granted <= value
            sent.append((clock.at, granted))
        elif step == "work":
            clock.at += value
        elif step == "back off":
            pace.back_off()
        else:
            pace.set_rate(value)
            rates.append((clock.at, value))
    for first, (begin, _) in enumerate(sent):
        for last in range(first, len(sent)):
            end = sent[last][0]
            allowed = area(rates, begin, end) + max(burst(each) for _, each in rates)
            assert sum(count for _, count in sent[first : last + 1]) <= allowed * (1 + 1e-9)


def area(rates: list[tuple[float, float]], begin: float, end: float) -> float:
    """What the rates allow between two times, counted piece by piece."""
    ends = [at for at, _ in rates[1:]] + [float("inf")]
    pieces = zip(rates, ends, strict=True)
    return sum(rate * max(0.0, min(end, upto) - max(begin, since)) for (since, rate), upto in pieces)


def test_a_batch_is_sent_in_pieces_of_a_quarter_of_a_second() -> None:
    pace, clock = pace_at(1_000.0)
    assert pace.take(10_000) == 250
    assert clock.slept == pytest.approx(0.25)
    clock.at += 3_600
    assert pace.take(10_000) == 250, "also where more is saved up"
    send(pace, 10_250)
    assert clock.slept == pytest.approx(10.25)
    assert pace.take(0) == 0


@pytest.mark.parametrize(("rate", "sent"), [(0.1, 1), (4.0, 4), (30.0, 30), (100.0, 50), (300.0, 75)])
def test_a_slow_rate_sends_fewer_calls_and_not_smaller_ones(rate: float, sent: int) -> None:
    pace, clock = pace_at(rate)
    assert pace.take(10_000) == sent
    assert clock.slept == pytest.approx(sent / rate, abs=0.01)


def test_tasks_one_after_the_other_do_not_each_begin_with_a_burst() -> None:
    clock = Clock()
    for _ in range(50):
        send(RequestPace(100.0, clock.now, clock.sleep), 10)
    assert clock.slept == pytest.approx(5.0)


def test_a_pause_is_caught_up_for_half_a_second_only() -> None:
    pace, clock = pace_at(100.0)
    send(pace, 1)
    clock.at += 3_600
    before = clock.slept
    send(pace, 300)
    assert clock.slept - before == pytest.approx(2.5)


def test_less_than_one_request_a_second_is_waited_for() -> None:
    pace, clock = pace_at(0.1)
    send(pace, 3)
    assert clock.slept == pytest.approx(30.0, abs=0.01)


def test_a_step_back_halves_the_rate_and_it_recovers_slowly() -> None:
    pace, clock = pace_at(1_000.0)
    send(pace, 10)
    pace.back_off()
    assert pace.present_rate == 500.0
    clock.at += 0.25 / RECOVERY_PER_S
    pace.back_off()
    assert pace.present_rate == pytest.approx(375.0)
    clock.at += 1 / RECOVERY_PER_S
    send(pace, 1)
    assert pace.present_rate == 1_000.0
    before = clock.slept
    send(pace, 5_000)
    assert clock.slept - before == pytest.approx(4.81, abs=0.01), (
        "its rate again, after half a second saved up while it was slow"
    )


@given(st.integers(1, 40), st.sampled_from([0.5, 30.0, 4_000.0]))
def test_it_never_stops(steps: int, rate: float) -> None:
    pace, clock = pace_at(rate)
    for _ in range(steps):
        pace.back_off()
    assert pace.present_rate >= rate * SLOWEST
    assert pace.take(1) == 1
    assert clock.slept <= 1 / (rate * SLOWEST)


def test_another_rate_holds_at_once_and_not_for_the_time_before_it() -> None:
    pace, clock = pace_at(10.0)
    send(pace, 10)
    clock.at += 0.5
    pace.set_rate(1_000.0)
    before = clock.slept
    send(pace, 1_005)
    assert clock.slept - before == pytest.approx(1.0, abs=0.01)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="it has to be above 0"):
            pace.set_rate(wrong)
        with pytest.raises(ValueError, match="it has to be above 0"):
            pace_at(wrong)


def test_it_goes_to_a_process_of_spark() -> None:
    pace = pickle.loads(pickle.dumps(RequestPace(50_000.0, time.monotonic, time.sleep)))
    assert pace.take(7) == 7
