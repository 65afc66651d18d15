"""Threads for looks, one each: how many there are at once is `LookPlaces`' to say. A process that ends does not wait for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Thread
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class LookThreads(Executor):
    """Threads of a ThreadPoolExecutor are joined when Python ends, however long a source is silent."""

    def submit(
        self, call: Callable[Arguments, Answer], /, *arguments: Arguments.args, **keywords: Arguments.kwargs
    ) -> Future[Answer]:
        answer = Future[Answer]()
        Thread(target=_answer, args=(answer, call, arguments, keywords), name="look", daemon=True).start()
        return answer


def _answer(
    answer: Future[Any], call: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    try:
        result = call(*arguments, **keywords)
    except BaseException as problem:
        answer.set_exception(problem)
    else:
        answer.set_result(result)
