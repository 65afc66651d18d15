"""What a quarter comes to, in plain values: the machine's rows and the book's lists are both told in these, and compared."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from tests.web.incidents.quarter.scenario import Key


class Name(NamedTuple):
    """The n-th incident of a dataset and category that tests found, or that users reported."""

    dataset: str
    category: str
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.dataset} {self.category} {self.kind} {self.number}"


class Execution(NamedTuple):
    """A test was run on a unit, because it was due or because a person asked for it."""

    at: datetime
    key: Key
    outcome: str
    by_hand: bool


class SpanOf(NamedTuple):
    key: Key
    start: datetime
    end: datetime
    began_at: datetime
    ended_at: datetime | None


class Case(NamedTuple):
    """An incident as it was in the end."""

    opened_at: datetime
    name: Name
    state: str
    resolved_at: datetime | None
    how: str
    spans: tuple[SpanOf, ...]
    matched: Name | None = None


class Letter(NamedTuple):
    """A message to the owners: whether and when it went out, and since when stale data held it until when."""

    at: datetime
    name: Name
    occasion: str
    fate: str
    sent_at: datetime | None
    suppressed_since: datetime | None
    released_at: datetime | None


class Reply(NamedTuple):
    """What the gate said."""

    at: datetime
    dataset: str
    verdict: str
    allowed: bool
    incidents: tuple[Name, ...]
    retry_at: datetime | None


class Score(NamedTuple):
    """Of one window: in minutes, and the questions to the gate."""

    start: datetime
    end: datetime
    tp: float
    fp: float
    fn: float
    share: float | None
    asked: int
    failed: int
    by_dataset: tuple[tuple[str, float | None], ...]


class QuarterResults(NamedTuple):
    executions: list[Execution]
    cases: list[Case]
    letters: list[Letter]
    replies: list[Reply]
    scores: list[Score]
