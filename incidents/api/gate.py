"""The gate over REST: may I read this dataset over this time range now?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.request_parsing import current_user, validated_body
from incidents.api.serializers import gate as serializers
from incidents.api.throttling import GateThrottle, charge, charge_reading
from incidents.gate import answer as gate
from incidents.gate import copies
from incidents.gate import from_sql as gate_sql
from incidents.gate import question_log as gate_log
from incidents.gate.answer import CopyQuestion, GateReply, ResolvedQuestion
from lakehub import wiring
from lakehub.accounts.models import Token
from lakehub.catalog.request_times import parse_range
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions.zones import UnknownZone, zone_named
from quality.generation.business_metrics import metric_named
from quality.models import Metric

MAX_INPUTS = 100
MAX_REQUEST_ID_LENGTH = 100
MAX_CONSUMER_LENGTH = 63
"""What a policy and the log hold; the name of a person may be longer."""


class Gate(APIView):
    """May I read this dataset over this time range now?"""

    scopes: ClassVar = {"GET": "gate:read", "POST": "gate:read"}
    throttle_classes = (GateThrottle,)

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
        responses=serializers.AnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Verdict, reasons, allow or block by the policy of the token's consumer, and when to ask again."""
        question = {name: request.query_params.get(name, "") for name in ("dataset", "from", "to", "dc")}
        if not question["dataset"]:
            raise Refused.for_fields({"dataset": "Say which `dataset`."})
        (reply,) = ask_all(request, [question], request.query_params.get("request_id", ""), now=wiring.clock.now())
        return Response(serializers.answer_to_json(reply))

    @extend_schema(request=serializers.InputsSerializer, responses=serializers.AnswersSerializer)
    def post(self, request: Request) -> Response:
        """All the inputs of a job at once: allowed where each of them is."""
        validated_data = validated_body(serializers.InputsSerializer, request)
        if len(validated_data["inputs"]) > MAX_INPUTS:
            raise Refused(
                f"{len(validated_data['inputs'])} inputs are too many for one question: ask for {MAX_INPUTS} at most."
            )
        charge(request, len(validated_data["inputs"]) - 1)
        replies = ask_all(request, validated_data["inputs"], validated_data["request_id"], now=wiring.clock.now())
        return Response(serializers.answers_to_json(replies))


class QueryGate(APIView):
    """May I run this query now? The datasets and ranges that it reads, each asked about; nothing of it is run."""

    scopes: ClassVar = {"POST": "gate:read"}
    throttle_classes = (GateThrottle,)

    @extend_schema(request=serializers.QuerySerializer, responses=serializers.QueryAnswersSerializer)
    def post(self, request: Request) -> Response:
        """A table that nothing bounds by a constant is asked for as a whole, and the answer says so."""
        validated_data, now = validated_body(serializers.QuerySerializer, request), wiring.clock.now()
        charge_reading(request, validated_data["sql"])
        derived = gate_sql.questions_of_query(
            validated_data["sql"],
            dialect=validated_data["dialect"],
            consumer=consumer_of(request),
            now=now,
            data_center=validated_data["dc"] or default_data_center(request),
            zone=_zone(validated_data["timezone"]),
            leave_out=validated_data["leave_out"],
            request_id=validated_data["request_id"],
        )
        charge(request, len(derived.asked) - 1)
        reads = [serializers.reads_to_json(table_reads) for table_reads in derived.reads]
        body = serializers.answers_to_json(answer_and_log(derived.asked, now=now))
        return Response({**body, "reads": reads, "left_out": derived.skipped_tables})


class MetricGate(APIView):
    """May I use this business metric over this time range now?"""

    scopes: ClassVar = {"GET": "gate:read"}
    throttle_classes = (GateThrottle,)

    @extend_schema(
        parameters=[
            OpenApiParameter("from", str, required=True, description="In the zone of the dataset that it is cut by."),
            OpenApiParameter("to", str, required=True, description="Not included."),
            OpenApiParameter("dc", str, description="The data center; the token's, if not given."),
            OpenApiParameter("request_id", str),
        ],
        responses=serializers.MetricAnswersSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """The worst over the datasets that it reads and its own tests."""
        query_params = {key: request.query_params.get(key, "") for key in ("from", "to", "dc")}
        metric, now = metric_named(name), wiring.clock.now()
        inputs = [
            {**query_params, "dataset": dataset_name}
            for dataset_name in dict.fromkeys([metric.dataset.name, *_live_inputs(metric)])
        ]
        charge(request, len(inputs) - 1)
        replies = ask_all(request, inputs, request.query_params.get("request_id", ""), now=now, metric=metric)
        return Response({"metric": metric.name, **serializers.answers_to_json(replies)})


def _live_inputs(metric: Metric) -> list[str]:
    return [dataset.name for dataset in metric.inputs.all() if dataset.offboarded_at is None]


def _zone(name: str) -> ZoneInfo | None:
    try:
        return zone_named(name) if name else None
    except UnknownZone:
        raise Refused.for_fields({"timezone": f"There is no time zone `{name}`: write it as Europe/Lisbon."}) from None


def ask_all(
    request: Request,
    raw_questions: Sequence[Mapping[str, Any]],
    request_id: str,
    *,
    now: datetime,
    metric: Metric | None = None,
) -> list[GateReply]:
    """Answers the questions and has them kept; with `metric` those about it, in its dataset's days. Raises NotFound, Refused."""
    if len(request_id) > MAX_REQUEST_ID_LENGTH:
        raise Refused.for_fields(
            {"request_id": f"A request id of {len(request_id)} characters: use {MAX_REQUEST_ID_LENGTH} at most."}
        )
    consumer, home = consumer_of(request), default_data_center(request)
    known_copies = copies.find_copies([raw_question["dataset"] for raw_question in raw_questions], consumer, now=now)
    questions = []
    for raw_question in raw_questions:
        known_copy = copies.choose_copy(raw_question["dataset"], raw_question["dc"] or home, known_copies)
        data_range = parse_range(
            raw_question["from"], raw_question["to"], metric.dataset if metric else known_copy.copy.dataset
        )
        question = CopyQuestion(
            raw_question["dataset"], data_range, consumer, known_copy.copy.data_center.name, request_id
        )
        questions.append(ResolvedQuestion(question, known_copy, metric.name if metric else ""))
    return answer_and_log(questions, now=now)


def answer_and_log(questions: Sequence[ResolvedQuestion], *, now: datetime) -> list[GateReply]:
    """The answers; the questions are kept behind them."""
    replies = gate.answer_questions(questions, now=now)
    gate_log.QUESTION_LOG.put(map(gate.question_to_row, replies))
    return replies


def consumer_of(request: Request) -> str:
    """The token's, never a parameter; a person at the browser asks as themselves."""
    if isinstance(request.auth, Token):
        return request.auth.consumer
    return current_user(request).get_username()[:MAX_CONSUMER_LENGTH]


def default_data_center(request: Request) -> str:
    """The data center that is meant where none is named."""
    return request.auth.data_center if isinstance(request.auth, Token) else ""
