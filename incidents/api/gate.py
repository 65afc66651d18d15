"""The gate over REST: may I read this dataset over this time range now?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.common import person, valid
from incidents.api.limiting import GateRate, charge, charge_reading
from incidents.gate import answers as gate
from incidents.gate import log as gate_log
from incidents.gate import sql as gate_sql
from incidents.gate.answers import Asked, Question, Reply
from incidents.shapes import gate as shapes
from lakehub import wiring
from lakehub.accounts.models import Token
from lakehub.catalog.instants import wanted_range
from lakehub.kernel.errors import Refused
from quality.metrics import metric_named
from quality.models import Metric

MOST_INPUTS = 100
LONGEST_ID = 100
LONGEST_CONSUMER = 63
"""What a policy and the log hold; the name of a person may be longer."""


class Gate(APIView):
    """May I read this dataset over this time range now?"""

    scopes: ClassVar = {"GET": "gate:read", "POST": "gate:read"}
    throttle_classes = (GateRate,)

    @extend_schema(
        parameters=[
            OpenApiParameter("dataset", str, required=True),
            OpenApiParameter(
                "from", str, required=True, description="2026-11-16 in the dataset's zone, or a time with offset."
            ),
            OpenApiParameter("to", str, required=True, description="Not included."),
            OpenApiParameter("dc", str, description="The data center; the token's, if not given."),
            OpenApiParameter("request_id", str, description="Names the job or query: it is counted once."),
        ],
        responses=shapes.AnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Verdict, reasons, allow or block by the policy of the token's consumer, and when to ask again."""
        asked = {name: request.query_params.get(name, "") for name in ("dataset", "from", "to", "dc")}
        if not asked["dataset"]:
            raise Refused.because({"dataset": "Say which `dataset`."})
        (reply,) = ask_all(request, [asked], request.query_params.get("request_id", ""), now=wiring.clock.now())
        return Response(shapes.answer_of(reply))

    @extend_schema(request=shapes.InputsSerializer, responses=shapes.AnswersSerializer)
    def post(self, request: Request) -> Response:
        """All the inputs of a job at once: allowed where each of them is."""
        said = valid(shapes.InputsSerializer, request)
        if len(said["inputs"]) > MOST_INPUTS:
            raise Refused(f"{len(said['inputs'])} inputs are too many for one question: ask for {MOST_INPUTS} at most.")
        charge(request, len(said["inputs"]) - 1)
        replies = ask_all(request, said["inputs"], said["request_id"], now=wiring.clock.now())
        return Response(shapes.answers_of(replies))


class GateOfQuery(APIView):
    """May I run this query now? The datasets and ranges that it reads, each asked about; nothing of it is run."""

    scopes: ClassVar = {"POST": "gate:read"}
    throttle_classes = (GateRate,)

    @extend_schema(request=shapes.QuerySerializer, responses=shapes.QueryAnswersSerializer)
    def post(self, request: Request) -> Response:
        """A table that nothing bounds by a constant is asked for as a whole, and the answer says so."""
        said, now = valid(shapes.QuerySerializer, request), wiring.clock.now()
        charge_reading(request, said["sql"])
        derived = gate_sql.derive(
            said["sql"],
            dialect=said["dialect"],
            consumer=consumer_of(request),
            now=now,
            data_center=said["dc"] or home_of(request),
            zone=_zone(said["timezone"]),
            leave_out=said["leave_out"],
            request_id=said["request_id"],
        )
        charge(request, len(derived.asked) - 1)
        reads = [shapes.reads_of(one) for one in derived.reads]
        body = shapes.answers_of(answer(derived.asked, now=now))
        return Response({**body, "reads": reads, "left_out": derived.left_out})


class GateOfMetric(APIView):
    """May I use this business metric over this time range now?"""

    scopes: ClassVar = {"GET": "gate:read"}
    throttle_classes = (GateRate,)

    @extend_schema(
        parameters=[
            OpenApiParameter("from", str, required=True, description="In the zone of the dataset that it is cut by."),
            OpenApiParameter("to", str, required=True, description="Not included."),
            OpenApiParameter("dc", str, description="The data center; the token's, if not given."),
            OpenApiParameter("request_id", str),
        ],
        responses=shapes.MetricAnswersSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """The worst over the datasets that it reads and its own tests."""
        asked = {key: request.query_params.get(key, "") for key in ("from", "to", "dc")}
        metric, now = metric_named(name), wiring.clock.now()
        inputs = [{**asked, "dataset": one} for one in dict.fromkeys([metric.dataset.name, *_live_inputs(metric)])]
        charge(request, len(inputs) - 1)
        replies = ask_all(request, inputs, request.query_params.get("request_id", ""), now=now, metric=metric)
        return Response({"metric": metric.name, **shapes.answers_of(replies)})


def _live_inputs(metric: Metric) -> list[str]:
    return [one.name for one in metric.inputs.all() if one.offboarded_at is None]


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Refused.because({"timezone": f"There is no time zone `{name}`: write it as Europe/Lisbon."}) from None


def ask_all(
    request: Request,
    asked: Sequence[Mapping[str, Any]],
    request_id: str,
    *,
    now: datetime,
    metric: Metric | None = None,
) -> list[Reply]:
    """Answers the questions and has them kept; with `metric` those about it, in its dataset's days. Raises NotFound, Refused."""
    if len(request_id) > LONGEST_ID:
        raise Refused.because(
            {"request_id": f"A request id of {len(request_id)} characters: use {LONGEST_ID} at most."}
        )
    known = gate.found_copies([one["dataset"] for one in asked], now=now)
    consumer, home = consumer_of(request), home_of(request)
    questions = []
    for one in asked:
        found = gate.chosen(one["dataset"], one["dc"] or home, known)
        wanted = wanted_range(one["from"], one["to"], metric.dataset if metric else found.copy.dataset)
        question = Question(one["dataset"], wanted, consumer, found.copy.data_center.name, request_id)
        questions.append(Asked(question, found, metric.name if metric else ""))
    return answer(questions, now=now)


def answer(asked: Sequence[Asked], *, now: datetime) -> list[Reply]:
    """The answers; the questions are kept behind them."""
    replies = gate.answered(asked, now=now)
    gate_log.LOG.put(map(gate.question_row, replies))
    return replies


def consumer_of(request: Request) -> str:
    """The token's, never a parameter; a person at the browser asks as themselves."""
    if isinstance(request.auth, Token):
        return request.auth.consumer
    return person(request).get_username()[:LONGEST_CONSUMER]


def home_of(request: Request) -> str:
    """The data center that is meant where none is named."""
    return request.auth.data_center if isinstance(request.auth, Token) else ""
