"""Following without a process of its own: each look has its answer at once, by the clock that the test gives."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from ingestion.following.follower import Follower
from ingestion.runs.run_worker import Worker


class AtOnce(Executor):
    """Calls where it is asked to."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        try:
            answer.set_result(call(*arguments, **keywords))
        except Exception as problem:
            answer.set_exception(problem)
        return answer


def follower(
    worker: Worker, *, has_news: Callable[[], bool] = lambda: True, monotonic: Callable[[], float] = lambda: 0.0
) -> Follower:
    return Follower(worker, AtOnce(), has_news=has_news, wake=lambda: None, monotonic=monotonic)


def follow_once(worker: Worker) -> None:
    """What a process does that begins now, and ends before the clock goes on."""
    process = follower(worker)
    process.step()
    process.give_back()
