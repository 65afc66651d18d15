"""Incidents and the gate over REST. A view translates, makes one call, and translates back."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer
from rest_framework.views import APIView

from incidents import actions, combining, gate, moves, reports, resolving, scoring
from incidents import serializers as shapes
from incidents.instants import wanted_range
from incidents.models import Incident, State
from lakehub import wiring
from lakehub.accounts.models import Token, User
from lakehub.accounts.permissions import require
from lakehub.catalog.changes import live_dataset
from lakehub.kernel.errors import Refused
from lakehub.kernel.outcome import Verdict, worst
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category

MOST_INPUTS = 100
LONGEST_ID = 100


class Gate(APIView):
    """May I read this dataset over this time range now?"""

    scopes: ClassVar = {"GET": "gate:read", "POST": "gate:read"}

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
        reply = _ask(request, asked, request.query_params.get("request_id", ""), now=wiring.clock.now())
        return Response(shapes.AnswerSerializer(shapes.answer_of(reply)).data)

    @extend_schema(request=shapes.InputsSerializer, responses=shapes.AnswersSerializer)
    def post(self, request: Request) -> Response:
        """All the inputs of a job at once: allowed where each of them is."""
        said = _valid(shapes.InputsSerializer, request)
        if len(said["inputs"]) > MOST_INPUTS:
            raise Refused(f"{len(said['inputs'])} inputs are too many for one question: ask for {MOST_INPUTS} at most.")
        now = wiring.clock.now()
        replies = [_ask(request, one, said["request_id"], now=now) for one in said["inputs"]]
        answers = [shapes.answer_of(reply) for reply in replies]
        waits = [answer["retry_after"] for answer in answers if answer["retry_after"] is not None]
        body = {
            "verdict": worst(Verdict(answer["verdict"]) for answer in answers).value,
            "allowed": all(answer["allowed"] for answer in answers),
            # The last input to recover decides when asking again may help.
            "retry_after": max(waits, default=None),
            "answers": answers,
        }
        return Response(shapes.AnswersSerializer(body).data)


class ScoresOfWindow(APIView):
    """How good alarms and data were."""

    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(
        parameters=[
            OpenApiParameter("from", str, required=True),
            OpenApiParameter("to", str),
            OpenApiParameter("dataset", str),
        ],
        responses=shapes.ScoresSerializer,
    )
    def get(self, request: Request) -> Response:
        """Precision, recall, data-level and query-level scores of `[from, to)`, of one dataset or of all. `to`: now."""
        now, asked = wiring.clock.now(), request.query_params
        dataset = live_dataset(asked["dataset"]) if asked.get("dataset") else None
        window = wanted_range(asked.get("from", ""), asked.get("to") or now.isoformat(), dataset)
        found = scoring.scores_of(window, now=now, datasets=[dataset.pk] if dataset else None)
        return Response(shapes.ScoresSerializer(found).data)


class Incidents(ListAPIView[Incident]):
    """Incidents, newest first; `state`, `dataset`, `category` and `open=1` narrow the list."""

    scopes: ClassVar = {"GET": "incidents:read", "POST": "incidents:write"}
    serializer_class = shapes.IncidentSerializer

    def get_queryset(self) -> QuerySet[Incident]:
        rows = Incident.objects.select_related("dataset", "assignee").order_by("-opened_at", "-pk")
        asked = self.request.query_params
        if asked.get("open") == "1":
            rows = rows.filter(resolved_at=None)
        for name, field, known in (
            ("state", "state", State.values),
            ("category", "category", Category.values),
        ):
            if value := asked.get(name):
                rows = rows.filter(**{field: _known(name, value, known)})
        if asked.get("dataset"):
            rows = rows.filter(dataset__name=asked["dataset"])
        return rows

    @extend_schema(
        parameters=[OpenApiParameter(name, str) for name in ("state", "category", "dataset", "open")],
        responses=shapes.IncidentSerializer(many=True),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=shapes.ReportSerializer, responses={201: shapes.IncidentDetailSerializer})
    def post(self, request: Request) -> Response:
        """Reports what no test saw. Everybody who is signed in may."""
        said = _valid(shapes.ReportSerializer, request)
        dataset = live_dataset(said["dataset"])
        made = reports.report(
            dataset,
            said["category"],
            wanted_range(said["from"], said["to"], dataset),
            text=said["text"],
            reporter=_person(request),
            now=wiring.clock.now(),
            copy=gate.find_copy(dataset.name, said["dc"]) if said["dc"] else None,
            occurred_at=said["occurred_at"],
        )
        return _shown(made.pk, status.HTTP_201_CREATED)


class OneIncident(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=shapes.IncidentDetailSerializer)
    def get(self, request: Request, number: int) -> Response:
        """The incident with its spans, its timeline and its messages."""
        return _shown(number)


class Action(APIView):
    """What is done to one incident: the subclass names the right it takes, the body it reads, and the call it makes."""

    scopes: ClassVar = {"POST": "incidents:write"}
    right: ClassVar[str]
    body: ClassVar[type[Serializer[Any]]] = shapes.ActionSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        raise NotImplementedError

    def post(self, request: Request, number: int) -> Response:
        actor = _person(request)
        require(actor, self.right, moves.find(number).dataset.team)
        self.act(number, _valid(self.body, request), actor, wiring.clock.now())
        return _shown(number)


class Acknowledge(Action):
    """Somebody has it."""

    right = "acknowledge"

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.acknowledge(number, actor=actor, now=now, seen=said["revision"])


class Release(Action):
    """Takes an acknowledgement back."""

    right = "acknowledge"

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.release(number, actor=actor, now=now, seen=said["revision"])


class Annotate(Action):
    """What is known of recovery and cause."""

    right = "annotate"
    body = shapes.AnnotateSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        changes = {name: said[name] for name in actions.ANNOTATIONS if name in said}
        return actions.annotate(number, changes, actor=actor, now=now, text=said["text"], seen=said["revision"])


class Comment(Action):
    right = "annotate"
    body = shapes.CommentSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.comment(number, said["text"], actor=actor, now=now)


class Assign(Action):
    right = "acknowledge"
    body = shapes.AssignSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.assign(number, said["assignee"], actor=actor, now=now, seen=said["revision"])


class Snooze(Action):
    """Holds the messages; verdict and gate stay."""

    right = "acknowledge"
    body = shapes.SnoozeSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.snooze(number, said["until"], actor=actor, now=now, seen=said["revision"])


class Rerun(Action):
    """Runs the failing units now."""

    right = "rerun"

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.rerun(number, actor=actor, now=now)


class Resolve(Action):
    """By force, as false_positive or accepted; a report as declared_fixed."""

    right = "resolve"
    body = shapes.ResolveSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        if said["resolution"] == "declared_fixed":
            return reports.declare_fixed(number, why=said["why"], actor=actor, now=now, seen=said["revision"])
        return resolving.resolve(
            number,
            resolution=said["resolution"],
            false_positive=said["false_positive"],
            why=said["why"],
            actor=actor.get_username(),
            now=now,
            seen=said["revision"],
        )


class Reopen(Action):
    """Takes a forced resolution back."""

    right = "resolve"
    body = shapes.ReasonSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return resolving.reopen(number, actor=actor.get_username(), now=now, why=said["why"], seen=said["revision"])


class Reject(Action):
    """A report: nothing is wrong."""

    right = "resolve"
    body = shapes.ReasonSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return reports.reject(number, why=said["why"], actor=actor, now=now, seen=said["revision"])


class Merge(Action):
    """Moves the spans of another incident here."""

    right = "resolve"
    body = shapes.MergeSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return combining.merge(number, said["other"], actor=actor.get_username(), now=now)


class Split(Action):
    """Moves the spans of some units to an incident of their own."""

    right = "resolve"
    body = shapes.SplitSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return combining.split(number, said["units"], actor=actor.get_username(), now=now)


class Dispute(APIView):
    """Insists that a rejected report is right. Everybody who is signed in may."""

    scopes: ClassVar = {"POST": "incidents:write"}

    @extend_schema(request=shapes.ReasonSerializer, responses=shapes.IncidentDetailSerializer)
    def post(self, request: Request, number: int) -> Response:
        said = _valid(shapes.ReasonSerializer, request)
        reports.dispute(number, why=said["why"], actor=_person(request), now=wiring.clock.now(), seen=said["revision"])
        return _shown(number)


for _action in Action.__subclasses__():
    extend_schema(request=_action.body, responses=shapes.IncidentDetailSerializer)(_action)


def _ask(request: Request, asked: dict[str, str], request_id: str, *, now: datetime) -> gate.Reply:
    """The consumer is the token's, never a parameter; a person at the browser asks as themselves."""
    token = request.auth if isinstance(request.auth, Token) else None
    if not asked["dataset"]:
        raise Refused.because({"dataset": "Say which `dataset`."})
    if len(request_id) > LONGEST_ID:
        raise Refused.because(
            {"request_id": f"A request id of {len(request_id)} characters: use {LONGEST_ID} at most."}
        )
    copy = gate.find_copy(asked["dataset"], asked["dc"] or (token.data_center if token else ""))
    wanted = wanted_range(asked["from"], asked["to"], copy.dataset)
    consumer = token.consumer if token else _person(request).get_username()
    question = gate.Question(copy.dataset.name, wanted, consumer, copy.data_center.name, request_id)
    return gate.ask(question, now=now, copy=copy)


def _shown(number: int, code: int = status.HTTP_200_OK) -> Response:
    moves.find(number)
    related = ("spans__copy__data_center", "spans__unit__test", "events", "messages")
    incident = Incident.objects.select_related("dataset", "assignee").prefetch_related(*related).get(pk=number)
    return Response(shapes.IncidentDetailSerializer(incident).data, code)


def _valid(shape: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    said: BaseSerializer[Any] = shape(data=request.data)
    said.is_valid(raise_exception=True)
    return cast("dict[str, Any]", said.validated_data)


def _person(request: Request) -> User:
    return cast("User", request.user)  # HasScope lets nobody else in


def _known(name: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise Refused.because({name: f"There is no {name} `{value}`.{did_you_mean(value, known)}"})
    return value
