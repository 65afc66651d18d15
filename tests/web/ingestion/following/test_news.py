"""A step of a process that follows asks the database for what is due, however often others write to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.following.follower import Followed, Follower
from ingestion.following.news import ASK_EVERY_S, CLAIM_EVERY_S, FREE_LEASES_EVERY_S, News
from ingestion.models import JobKind
from ingestion.runs import feed_schedule
from tests import factories as given
from tests.factories import MINUTE, NOW
from tests.following import follower
from tests.web.ingestion.following.shop import EVERY, SECOND, Shop


@dataclass
class Server:
    """A database, the processes of this host, and a clock that the test moves."""

    at: float = 0.0
    mark: Callable[[], str] = lambda: ""
    asked: int = 0
    freed_at: list[float] = field(default_factory=list)

    def is_always_written_to(self) -> Server:
        """As PostgreSQL, whose mark is that of the whole server."""
        marks = count()
        self.mark = lambda: str(next(marks))
        return self

    def news(self) -> News:
        return News(self._ask, free_leases=lambda: self.freed_at.append(self.at), monotonic=lambda: self.at)

    def _ask(self) -> str:
        self.asked += 1
        return self.mark()


def heard(server: Server, news: News, *, seconds: int, a_second: int = 10) -> int:
    """How often there was news."""
    number = 0
    for _ in range(seconds * a_second):
        server.at += 1 / a_second
        number += news()
    return number


def test_it_asks_once_a_second_and_frees_leases_every_five() -> None:
    server = Server().is_always_written_to()
    number = heard(server, server.news(), seconds=60)
    assert 55 <= number <= 61
    assert server.asked == number
    assert len(server.freed_at) == pytest.approx(60 / FREE_LEASES_EVERY_S, abs=2)


def test_where_nobody_writes_there_is_news_for_a_lease_that_may_have_run_out() -> None:
    server = Server()
    news = server.news()
    assert news()
    assert heard(server, news, seconds=70) == 2
    assert CLAIM_EVERY_S == 30


def test_leases_are_freed_some_seconds_after_news_although_there_is_none_then() -> None:
    """A process that is killed says nothing; what was written when it died was its end."""
    server = Server()
    news = server.news()
    assert news()
    server.at, server.mark = ASK_EVERY_S, lambda: "1"
    assert news()
    assert server.freed_at == [0.0]
    server.at = FREE_LEASES_EVERY_S
    assert news(), "runs may be free now"
    assert server.freed_at == [0.0, FREE_LEASES_EVERY_S]


@pytest.fixture
def process(shop: Shop) -> tuple[Follower, Server]:
    """It has looked at its copies, all of which are idle."""
    for name in ("planes", "crews"):
        made = given.dataset(name)
        given.feed(made, connection=shop.copy.dataset.feed.connection, object="flights", every=EVERY)
        loaded = given.run(made.copies.get(), JobKind.BOOTSTRAP, started_at=NOW - MINUTE, ended_at=NOW - MINUTE)
        Shop(made.copies.get(), shop.database).commit(str(loaded.key))
    feed_schedule.request_due_runs(now=shop.now)
    server = Server().is_always_written_to()
    follows = follower(shop.worker(), has_news=server.news(), monotonic=lambda: server.at)
    follows.step()
    return follows, server


def queries_of_a_step(process: Follower) -> int:
    with CaptureQueriesContext(connection) as queries:
        process.step()
    return len(queries)


def test_a_step_in_which_nothing_is_due_asks_the_database_nothing(shop: Shop, process: tuple[Follower, Server]) -> None:
    follows, server = process
    server.at += ASK_EVERY_S / 2
    shop.now += SECOND / 2
    assert queries_of_a_step(follows) == 0
    server.at += ASK_EVERY_S
    shop.now += SECOND
    assert queries_of_a_step(follows) == 1, "what is to be claimed"


def test_what_is_looked_at_before_there_may_be_news_again_is_read_by_one_query(
    shop: Shop, process: tuple[Follower, Server]
) -> None:
    follows, server = process
    for number, followed in enumerate(follows._followed.values()):
        followed.due_at = shop.now + EVERY + number * SECOND / 4
    server.at += EVERY.total_seconds()
    shop.now += EVERY
    queries = [queries_of_a_step(follows)]
    for _ in range(2):
        server.at += 0.25
        shop.now += SECOND / 4
        queries.append(queries_of_a_step(follows))
    assert queries == [2, 0, 0], "what is to be claimed, and the three runs"
    assert [followed.sums.looks for followed in follows._followed.values()] == [2, 2, 2]


def test_whose_sums_are_to_be_told_is_looked_up_once_a_second(
    shop: Shop, process: tuple[Follower, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that follows a thousand tables makes hundreds of steps in that time."""
    follows, _ = process
    looked_up: list[Followed] = []
    monkeypatch.setattr(Followed, "is_telling_due", lambda self, now: bool(looked_up.append(self)))
    for _ in range(20):
        shop.now += SECOND / 10
        follows.step()
    assert len(looked_up) == 2 * len(follows._followed)
    shop.now -= 9 * SECOND  # a clock that was ahead holds no telling up
    follows.step()
    assert len(looked_up) == 3 * len(follows._followed)
