from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from lakehub.processes.pacemaker import Pacemaker
from lakehub.processes.wakeups import Wakeup

NOW = datetime(2026, 11, 17, 8, 0, tzinfo=UTC)
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


class World:
    """A clock on the wall, one that only goes on, and a database that answers what is due when."""

    def __init__(self) -> None:
        self.now, self.uptime, self.writes = NOW, 1000.0, 0
        self.due_at: datetime | None = None
        self.asked = 0
        self.sent: list[tuple[str, timedelta]] = []

    def next_due(self, _now: datetime) -> datetime | None:
        self.asked += 1
        return self.due_at

    def pacemaker(self) -> Pacemaker:
        wakeups = (
            Wakeup("due", MINUTE, next_due=self.next_due),
            Wakeup("changes", 30 * SECOND, on_change=True),
            Wakeup("slow changes", MINUTE, on_change=True, at_most_every=5 * SECOND),
            Wakeup("regular", 10 * SECOND),
        )
        return Pacemaker(
            wakeups,
            now=lambda: self.now,
            monotonic=lambda: self.uptime,
            change_mark=lambda: str(self.writes),
            send=lambda task, expires: self.sent.append((task, expires)),
        )

    def pass_seconds(self, pacemaker: Pacemaker, seconds: int) -> Counter[str]:
        """What is sent meanwhile, with one look a second."""
        sent: Counter[str] = Counter()
        for _ in range(seconds):
            self.now += SECOND
            self.uptime += 1
            sent.update(pacemaker.look())
        return sent


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pacemaker(world: World) -> Pacemaker:
    """One that has begun: everything was sent once."""
    pacemaker = world.pacemaker()
    assert pacemaker.look() == ["due", "changes", "slow changes", "regular"]
    world.pass_seconds(pacemaker, 5)
    world.sent.clear()
    return pacemaker


def test_an_idle_minute_sends_what_is_regular_and_asks_once(world: World, pacemaker: Pacemaker) -> None:
    asked = world.asked
    assert world.pass_seconds(pacemaker, 60) == {"regular": 6, "changes": 2, "slow changes": 1, "due": 1}
    assert world.asked - asked == 1, "after it was sent"


def test_a_change_is_taken_in_at_the_next_look_and_once(world: World, pacemaker: Pacemaker) -> None:
    world.writes += 1
    assert world.pass_seconds(pacemaker, 1) == {"changes": 1, "slow changes": 1}
    assert world.pass_seconds(pacemaker, 2) == {}


def test_changes_that_come_fast_are_taken_in_as_often_as_is_allowed(world: World, pacemaker: Pacemaker) -> None:
    sent: Counter[str] = Counter()
    for _ in range(10):
        world.writes += 1
        sent += world.pass_seconds(pacemaker, 1)
    assert sent["changes"] == 10
    assert sent["slow changes"] == 2


def test_a_change_while_a_task_may_not_be_sent_is_not_forgotten(world: World, pacemaker: Pacemaker) -> None:
    world.writes += 1
    world.pass_seconds(pacemaker, 1)
    world.writes += 1
    assert world.pass_seconds(pacemaker, 5)["slow changes"] == 1


def test_what_is_due_is_sent_when_it_is_and_until_it_no_longer_is(world: World, pacemaker: Pacemaker) -> None:
    world.due_at, world.writes = world.now + 10 * SECOND, world.writes + 1
    assert "due" not in world.pass_seconds(pacemaker, 9)
    assert world.pass_seconds(pacemaker, 3)["due"] == 3
    world.due_at = None
    # The last one took it.
    assert world.pass_seconds(pacemaker, 2)["due"] == 0


@pytest.mark.parametrize("jump", [-DAY, DAY], ids=["back", "forth"])
def test_a_clock_that_jumps_stops_nothing(world: World, pacemaker: Pacemaker, jump: timedelta) -> None:
    world.now += jump
    assert world.pass_seconds(pacemaker, 60) == {"regular": 6, "changes": 2, "slow changes": 1, "due": 1}
    world.due_at, world.writes = world.now, world.writes + 1
    assert world.pass_seconds(pacemaker, 1)["due"] == 1


def test_what_was_planned_is_due_at_once_where_the_clock_went_forth(world: World, pacemaker: Pacemaker) -> None:
    world.due_at, world.writes = world.now + DAY, world.writes + 1
    assert "due" not in world.pass_seconds(pacemaker, 2)
    world.now += DAY
    assert world.pass_seconds(pacemaker, 1)["due"] == 1


def test_what_is_asked_for_again_later_expires_soon_and_what_comes_once_does_not(
    world: World, pacemaker: Pacemaker
) -> None:
    world.due_at, world.writes = world.now, world.writes + 1
    world.pass_seconds(pacemaker, 1)
    assert ("due", 5 * SECOND) in world.sent
    assert ("changes", 30 * SECOND) in world.sent


def test_what_could_not_be_sent_is_sent_at_the_next_look(world: World) -> None:
    pacemaker = world.pacemaker()
    down = [True]

    def send(task: str, expires: timedelta) -> None:
        if down[0]:
            raise ConnectionError("the broker is down")
        world.sent.append((task, expires))

    pacemaker._send = send
    with pytest.raises(ConnectionError):
        pacemaker.look()
    down[0] = False
    assert len(pacemaker.look()) == 4
