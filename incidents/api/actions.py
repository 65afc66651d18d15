"""What is done to an incident over REST, each at an address of its own."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from incidents import actions, backfilling, combining, moves, reports, resolving
from incidents.api.common import person, valid
from incidents.api.incidents import shown
from incidents.shapes import actions as shapes
from incidents.shapes.incidents import IncidentDetailSerializer
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require


class Action(APIView):
    """What is done to one incident: the subclass names the right it takes, the body it reads, and the call it makes."""

    scopes: ClassVar = {"POST": "incidents:write"}
    right: ClassVar[str]
    body: ClassVar[type[Serializer[Any]]] = shapes.ActionSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        raise NotImplementedError

    def post(self, request: Request, number: int) -> Response:
        actor = person(request)
        require(actor, self.right, moves.find(number).dataset.team)
        self.act(number, valid(self.body, request), actor, wiring.clock.now())
        return shown(number)


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
        ends = {"until_worse": said["until_worse"], "failures": said["failures"]}
        return actions.snooze(number, said["until"], actor=actor, now=now, seen=said["revision"], **ends)


class Wake(Action):
    """Ends the snooze before its time."""

    right = "acknowledge"

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.wake(number, actor=actor, now=now, seen=said["revision"])


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


class Backfill(Action):
    """Asks for a job that repairs what is affected, and links it."""

    right = "rerun"
    body = shapes.BackfillSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        name, where = actor.get_username(), said["data_center"]
        return backfilling.start(number, data_center=where, actor=name, now=now, seen=said["revision"])


class Merge(Action):
    """Moves the spans of another incident here."""

    right = "resolve"
    body = shapes.MergeSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return combining.merge(number, said["other"], actor=actor.get_username(), now=now, seen=said["revision"])


class Split(Action):
    """Moves the spans of some units to an incident of their own."""

    right = "resolve"
    body = shapes.SplitSerializer

    def act(self, number: int, said: dict[str, Any], actor: User, now: datetime) -> object:
        return combining.split(number, said["units"], actor=actor.get_username(), now=now, seen=said["revision"])


class Dispute(APIView):
    """Insists that a rejected report is right. Everybody who is signed in may."""

    scopes: ClassVar = {"POST": "incidents:write"}

    @extend_schema(request=shapes.ReasonSerializer, responses=IncidentDetailSerializer)
    def post(self, request: Request, number: int) -> Response:
        said = valid(shapes.ReasonSerializer, request)
        reports.dispute(number, why=said["why"], actor=person(request), now=wiring.clock.now(), seen=said["revision"])
        return shown(number)


for _action in Action.__subclasses__():
    extend_schema(request=_action.body, responses=IncidentDetailSerializer)(_action)
