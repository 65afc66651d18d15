"""Work that runs only on data that may be read: a block, a function, or a wait.

with require_quality(["flights", "weather"], ("2026-11-16", "2026-11-17")):
    train()

@require_quality("flights", last_week, wait_s=3600)
def experiment() -> None: ...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from datetime import date, datetime
from random import uniform
from types import TracebackType
from typing import TypeAlias

from lakehub_client.client import Answer, Client, Input, LakehubError

Instant: TypeAlias = "str | date | datetime"
Range: TypeAlias = "tuple[Instant, Instant] | Callable[[], tuple[Instant, Instant]]"
"""`[from, to)`, or a function that gives it, called each time."""

MIN_WAIT_S, MAX_WAIT_S = 1.0, 60.0
"""Between two questions. A pause longer than the second is cut: somebody may mend it earlier than was thought."""
OUTAGE_TOLERANCE_S = 30.0
"""How long Lakehub may be out of reach before nobody waits for it any more, where no other time is named."""


class Blocked(RuntimeError):
    """The gate does not let these be read. `answer` says why, and when to ask again."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"The gate blocks: {answer.why}.")
        self.answer = answer


def wait_for(
    inputs: Sequence[Input],
    *,
    deadline_s: float,
    client: Client | None = None,
    request_id: str = "",
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Asks until all inputs may be read, as often as the gate says that it may help. `deadline_s` 0: asks once.

    Raises Blocked at the deadline; LakehubError where it refuses the question, or is out of reach until then (for
    OUTAGE_TOLERANCE_S at least).
    """
    asking, begun, attempt = client or Client.from_environment(), clock(), 0
    while True:
        attempt += 1
        left = begun + deadline_s - clock()
        try:
            answer = asking.gate(inputs, request_id=request_id)
        except LakehubError as problem:
            left = begun + max(deadline_s, OUTAGE_TOLERANCE_S) - clock()
            pause = problem.retry_after or min(MAX_WAIT_S, 2.0 ** min(attempt - 1, 6)) * uniform(0.5, 1.0)
            if not problem.is_transient or left < pause:
                raise
        else:
            if answer.allowed:
                return answer
            pause = min(max(answer.retry_after or MIN_WAIT_S, MIN_WAIT_S), MAX_WAIT_S)
            if left <= 0:
                raise Blocked(answer)
            pause = min(pause, left)
        sleep(pause)


class require_quality(ContextDecorator):  # noqa: N801 - it is used as a function
    """A block, or each call of a function, runs only while all `datasets` may be read over `range`; else Blocked is raised.

    `datasets`: names, such as `flights`, or `flights@dc2` for another data center than the token's. `wait_s`: how long to
    wait for it. Without a `client` it is that of `LAKEHUB_URL` and `LAKEHUB_TOKEN`. The block is given the Answer.
    """

    def __init__(
        self,
        datasets: str | Sequence[str],
        range: Range,
        *,
        wait_s: float = 0.0,
        client: Client | None = None,
        request_id: str = "",
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._datasets = [datasets] if isinstance(datasets, str) else list(datasets)
        if not self._datasets:
            raise ValueError("Name the datasets that must be good.")
        self._range, self._wait_s, self._client, self._request_id = range, wait_s, client, request_id
        self._sleep, self._clock = sleep, clock

    def __enter__(self) -> Answer:
        start, end = self._range() if callable(self._range) else self._range
        inputs = [
            Input(name, start, end, center)
            for name, _, center in (dataset.partition("@") for dataset in self._datasets)
        ]
        return wait_for(
            inputs,
            deadline_s=self._wait_s,
            client=self._client,
            request_id=self._request_id,
            sleep=self._sleep,
            clock=self._clock,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
