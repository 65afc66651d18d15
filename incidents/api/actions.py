"""What is done to an incident over REST, each at an address of its own."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from incidents.api.incidents import incident_response
from incidents.api.request_parsing import current_user, validated_body
from incidents.api.serializers import actions as serializers
from incidents.api.serializers.incidents import IncidentDetailSerializer
from incidents.lifecycle import actions, backfills, merge_split, resolution, user_reports
from incidents.record import transitions
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require


class Action(APIView):
    """What is done to one incident: the subclass names the right it takes, the body it reads, and the call it makes."""

    scopes: ClassVar = {"POST": "incidents:write"}
    right: ClassVar[str]
    body: ClassVar[type[Serializer[Any]]] = serializers.ActionSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        raise NotImplementedError

    def post(self, request: Request, number: int) -> Response:
        actor = current_user(request)
        require(actor, self.right, transitions.incident_by_number(number).dataset.team)
        self.act(number, validated_body(self.body, request), actor, wiring.clock.now())
        return incident_response(number)


class Acknowledge(Action):
    """Somebody has it."""

    right = "acknowledge"

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.acknowledge(number, actor=actor, now=now, expected_revision=validated_data["revision"])


class Release(Action):
    """Takes an acknowledgement back."""

    right = "acknowledge"

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.release(number, actor=actor, now=now, expected_revision=validated_data["revision"])


class Annotate(Action):
    """What is known of recovery and cause."""

    right = "annotate"
    body = serializers.AnnotateSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        changes = {name: validated_data[name] for name in actions.ANNOTATION_FIELDS if name in validated_data}
        return actions.annotate(
            number,
            changes,
            actor=actor,
            now=now,
            text=validated_data["text"],
            expected_revision=validated_data["revision"],
        )


class Comment(Action):
    right = "annotate"
    body = serializers.CommentSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.comment(number, validated_data["text"], actor=actor, now=now)


class Assign(Action):
    right = "acknowledge"
    body = serializers.AssignSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.assign(
            number, validated_data["assignee"], actor=actor, now=now, expected_revision=validated_data["revision"]
        )


class Snooze(Action):
    """Holds the messages; verdict and gate stay."""

    right = "acknowledge"
    body = serializers.SnoozeSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        ends = {"until_worse": validated_data["until_worse"], "failures": validated_data["failures"]}
        return actions.snooze(
            number, validated_data["until"], actor=actor, now=now, expected_revision=validated_data["revision"], **ends
        )


class Wake(Action):
    """Ends the snooze before its time."""

    right = "acknowledge"

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.wake(number, actor=actor, now=now, expected_revision=validated_data["revision"])


class Rerun(Action):
    """Runs the failing units now."""

    right = "rerun"

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return actions.rerun(number, actor=actor, now=now)


class Resolve(Action):
    """By force, as false_positive or accepted; a report as declared_fixed."""

    right = "resolve"
    body = serializers.ResolveSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        if validated_data["resolution"] == "declared_fixed":
            return user_reports.declare_fixed(
                number, why=validated_data["why"], actor=actor, now=now, expected_revision=validated_data["revision"]
            )
        return resolution.resolve_by_force(
            number,
            resolution=validated_data["resolution"],
            false_positive=validated_data["false_positive"],
            why=validated_data["why"],
            actor=actor.get_username(),
            now=now,
            expected_revision=validated_data["revision"],
        )


class Reopen(Action):
    """Takes a forced resolution back."""

    right = "resolve"
    body = serializers.ReasonSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return resolution.undo_resolution(
            number,
            actor=actor.get_username(),
            now=now,
            why=validated_data["why"],
            expected_revision=validated_data["revision"],
        )


class Reject(Action):
    """A report: nothing is wrong."""

    right = "resolve"
    body = serializers.ReasonSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return user_reports.reject_report(
            number, why=validated_data["why"], actor=actor, now=now, expected_revision=validated_data["revision"]
        )


class Backfill(Action):
    """Asks for a job that repairs what is affected, and links it."""

    right = "rerun"
    body = serializers.BackfillSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        name, where = actor.get_username(), validated_data["data_center"]
        return backfills.start_backfill(
            number, data_center=where, actor=name, now=now, expected_revision=validated_data["revision"]
        )


class Merge(Action):
    """Moves the spans of another incident here."""

    right = "resolve"
    body = serializers.MergeSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return merge_split.merge_incidents(
            number,
            validated_data["other"],
            actor=actor.get_username(),
            now=now,
            expected_revision=validated_data["revision"],
        )


class Split(Action):
    """Moves the spans of some units to an incident of their own."""

    right = "resolve"
    body = serializers.SplitSerializer

    def act(self, number: int, validated_data: dict[str, Any], actor: User, now: datetime) -> object:
        return merge_split.split_incident(
            number,
            validated_data["units"],
            actor=actor.get_username(),
            now=now,
            expected_revision=validated_data["revision"],
        )


class Dispute(APIView):
    """Insists that a rejected report is right. Everybody who is signed in may."""

    scopes: ClassVar = {"POST": "incidents:write"}

    @extend_schema(request=serializers.ReasonSerializer, responses=IncidentDetailSerializer)
    def post(self, request: Request, number: int) -> Response:
        validated_data = validated_body(serializers.ReasonSerializer, request)
        user_reports.dispute_report(
            number,
            why=validated_data["why"],
            actor=current_user(request),
            now=wiring.clock.now(),
            expected_revision=validated_data["revision"],
        )
        return incident_response(number)


for _action in Action.__subclasses__():
    extend_schema(request=_action.body, responses=IncidentDetailSerializer)(_action)
