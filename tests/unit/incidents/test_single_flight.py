"""One computes, one waits, and nobody else."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from incidents.scores import single_flight
from incidents.scores.single_flight import exclusive_computation
from lakehub.kernel.errors import Busy
from tests.polling import scaled, wait_until


def is_crowded() -> bool:
    try:
        with single_flight.queue_slot():
            return False
    except Busy:
        return True


def test_a_second_waits_for_the_first_and_a_third_is_sent_away() -> None:
    order: list[str] = []
    inside, done = Event(), Event()

    def work(name: str) -> None:
        with exclusive_computation():
            inside.set()
            done.wait(scaled(10))
            order.append(name)

    first, second = (Thread(target=work, args=[name]) for name in ("first", "second"))
    first.start()
    assert inside.wait(scaled(10))
    second.start()
    wait_until(is_crowded)
    with pytest.raises(Busy) as sent_away, exclusive_computation():
        order.append("third")
    done.set()
    first.join(scaled(10))
    second.join(scaled(10))
    assert order == ["first", "second"]
    assert sent_away.value.retry_after_s > 0


def test_who_fails_leaves_the_turn_to_others() -> None:
    for _ in range(single_flight.MAX_IN_LINE + 1):
        with pytest.raises(ZeroDivisionError), exclusive_computation():
            raise ZeroDivisionError
    with exclusive_computation():
        pass
