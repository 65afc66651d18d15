"""The query gate on the rows that there are: may this consumer read this copy over this range now?

Verdicts are judged from the facts at the moment of the question, so a change of state, also one that only time made, shows
in the next answer. Nothing that can change is kept from one question to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from incidents.domain.gate import decide
from incidents.domain.gate.decide import GateDecision, Policy
from incidents.gate import in_force, load_state, question_log
from incidents.gate.copies import KnownCopy, RequestedRange, choose_copy, find_copies
from incidents.models import GateQuestion
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval


@dataclass(frozen=True)
class CopyQuestion:
    """Who asks what. `data_center` empty: the only copy that there is. A question of one request is counted once."""

    dataset: str
    wanted: Interval
    consumer: str
    data_center: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class GateReply:
    """The answer, with what it was about."""

    question: CopyQuestion
    copy: DatasetCopy
    answer: GateDecision
    policy: Policy
    at: datetime


class ResolvedQuestion(NamedTuple):
    """A range of a copy that was found. `metric`: asked for it, so that the dataset's other metrics do not count."""

    question: CopyQuestion
    known_copy: KnownCopy
    metric: str = ""


def ask_gate(
    question: CopyQuestion, *, now: datetime, record: bool = True, copy: DatasetCopy | None = None
) -> GateReply:
    """Answers and, unless told otherwise, keeps the question for the query-level score. Raises NotFound, Refused.

    `copy` saves looking it up again.
    """
    known_copy = (
        KnownCopy(copy)
        if copy
        else choose_copy(
            question.dataset, question.data_center, find_copies([question.dataset], question.consumer, now=now)
        )
    )
    (reply,) = answer_questions([ResolvedQuestion(question, known_copy)], now=now)
    if record:
        question_log.save_questions([question_to_row(reply)])
    return reply


def answer_questions(questions: Sequence[ResolvedQuestion], *, now: datetime) -> list[GateReply]:
    """The answers to one consumer's questions, in their order; a number of queries that does not grow with theirs."""
    if not questions:
        return []
    consumer = questions[0].question.consumer
    requested_ranges = [
        RequestedRange(resolved.known_copy, resolved.question.wanted, resolved.metric) for resolved in questions
    ]
    policies = in_force.policies_in_force(consumer, requested_ranges)
    overrides = in_force.overrides_in_force(requested_ranges, consumer, now=now)
    replies = []
    for resolved, state in zip(questions, load_state.copy_states(requested_ranges, now=now), strict=True):
        copy = resolved.known_copy.copy
        policy = in_force.policy_for(copy.dataset.tier, policies)
        answer = decide.evaluate(resolved.question.wanted, state, policy, now=now, overrides=overrides.get(copy.pk, ()))
        replies.append(GateReply(resolved.question, copy, answer, policy, now))
    return replies


def question_to_row(reply: GateReply) -> GateQuestion:
    """What is kept of a question. Once for each request: the first answer stays."""
    question = reply.question
    return GateQuestion(
        at=reply.at,
        consumer=question.consumer,
        request_id=question.request_id or question_log.new_request_id(),
        copy_id=reply.copy.pk,
        start=question.wanted.start,
        end=question.wanted.end,
        verdict=reply.answer.verdict,
        allowed=reply.answer.allowed,
        would_allow=reply.answer.would_allow,
    )
