"""The query gate on the rows that there are: may this consumer read this copy over this range now?

Verdicts are judged from the facts at the moment of the question, so a change of state, also one that only time made, shows
in the next answer. Nothing that can change is kept from one question to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from incidents.domain import gate
from incidents.domain.gate import Answer, CopyState, Policy
from incidents.gate import decisions, facts, log
from incidents.gate.facts import Found, Wanted
from incidents.models import GateQuestion
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean


@dataclass(frozen=True)
class Question:
    """Who asks what. `data_center` empty: the only copy that there is. A question of one request is counted once."""

    dataset: str
    wanted: Interval
    consumer: str
    data_center: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class Reply:
    """The answer, with what it was about."""

    question: Question
    copy: DatasetCopy
    answer: Answer
    policy: Policy
    at: datetime


class Asked(NamedTuple):
    """A range of a copy that was found. `metric`: asked for it, so that the dataset's other metrics do not count."""

    question: Question
    found: Found
    metric: str = ""


def ask(question: Question, *, now: datetime, record: bool = True, copy: DatasetCopy | None = None) -> Reply:
    """Answers and, unless told otherwise, keeps the question for the query-level score. Raises NotFound, Refused.

    `copy` saves looking it up again.
    """
    found = (
        Found(copy)
        if copy
        else chosen(question.dataset, question.data_center, found_copies([question.dataset], now=now))
    )
    (reply,) = answered([Asked(question, found)], now=now)
    if record:
        log.keep([question_row(reply)])
    return reply


def answered(asked: Sequence[Asked], *, now: datetime) -> list[Reply]:
    """The answers to one consumer's questions, in their order; a number of queries that does not grow with theirs."""
    if not asked:
        return []
    consumer = asked[0].question.consumer
    wanted = [Wanted(one.found, one.question.wanted, one.metric) for one in asked]
    policies = decisions.policies_of(consumer)
    overrides = decisions.overrides_of(wanted, consumer, now=now)
    replies = []
    for one, state in zip(asked, facts.states_of(wanted, now=now), strict=True):
        copy = one.found.copy
        policy = decisions.policy_for(copy.dataset.tier, policies)
        answer = gate.ask(one.question.wanted, state, policy, now=now, overrides=overrides.get(copy.pk, ()))
        replies.append(Reply(one.question, copy, answer, policy, now))
    return replies


def question_row(reply: Reply) -> GateQuestion:
    """What is kept of a question. Once for each request: the first answer stays."""
    question = reply.question
    return GateQuestion(
        at=reply.at,
        consumer=question.consumer,
        request_id=question.request_id or log.new_request_id(),
        copy_id=reply.copy.pk,
        start=question.wanted.start,
        end=question.wanted.end,
        verdict=reply.answer.verdict,
        allowed=reply.answer.allowed,
        would_allow=reply.answer.would_allow,
    )


# Finding what is asked about


def found_copies(names: Iterable[str], *, now: datetime) -> Mapping[str, list[Found]]:
    """The copies of the live datasets of these names; names that are not there are left out."""
    return facts.found_by_name(names, now=now)


def chosen(dataset: str, data_center: str, known: Mapping[str, list[Found]]) -> Found:
    """The copy that is asked about. Raises NotFound with the nearest name, Refused where a data center must be said."""
    found = known.get(dataset, [])
    if not found:
        live = Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)
        raise NotFound(f"There is no dataset `{dataset}`.{did_you_mean(dataset, live[:1000])}")
    names = [one.copy.data_center.name for one in found]
    if not data_center and len(found) > 1:
        raise Refused.because(
            {"dc": f"`{dataset}` has copies in {', '.join(names)}: say which one, as in `dc={names[0]}`."}
        )
    for one in found:
        if data_center in ("", one.copy.data_center.name):
            return one
    raise NotFound(f"`{dataset}` has no copy in `{data_center}`.{did_you_mean(data_center, names)}")


def find_copy(dataset: str, data_center: str = "") -> DatasetCopy:
    """The copy of this name, for those who go on with its row. Raises as `chosen`."""
    copies = DatasetCopy.objects.select_related("dataset__team", "data_center", "watch")
    named = copies.filter(dataset__name=dataset, dataset__offboarded_at=None)
    return chosen(dataset, data_center, {dataset: [Found(copy) for copy in named]}).copy


def state_of(copy: DatasetCopy, wanted: Interval, *, now: datetime) -> CopyState:
    """The gating tests of the copy with the units that meet `wanted`, and the reports about it."""
    (state,) = facts.states_of([Wanted(Found(copy), wanted)], now=now)
    return state
