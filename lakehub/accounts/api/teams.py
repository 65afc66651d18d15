"""Teams, members and people over REST."""

from __future__ import annotations

from typing import ClassVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts import teams
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import require, require_operator
from lakehub.accounts.serializers import (
    MemberRoleSerializer,
    MemberSerializer,
    NewPersonSerializer,
    PersonSerializer,
    TeamSerializer,
)

MAX_MEMBERS = 1000
"""Of one team that are listed."""


class TeamList(ListAPIView[Team]):
    scopes: ClassVar = {"GET": "catalog:read"}
    serializer_class = TeamSerializer
    queryset = Team.objects.all()

    @extend_schema(request=TeamSerializer, responses={201: TeamSerializer})
    def post(self, request: Request) -> Response:
        """Adds a team; you are its first admin. Needs a superuser who is signed in, not a token."""
        require_operator(request)
        serializer = TeamSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        team = teams.add_team(
            name=values["name"],
            email=values.get("email", ""),
            actor=cast("User", request.user),
            now=wiring.clock.now(),
        )
        return Response(TeamSerializer(team).data, status.HTTP_201_CREATED)


class MemberList(APIView):
    scopes: ClassVar = {"GET": "catalog:read"}

    @extend_schema(responses=MemberSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Who is in the team, with which role."""
        members = teams.team_named(name).memberships.select_related("user").order_by("user__username")
        return Response([MemberSerializer(membership).data for membership in members[:MAX_MEMBERS]])


class MemberDetail(APIView):
    """Not for tokens: one could make its own person admin."""

    scopes: ClassVar[dict[str, str]] = {}

    @extend_schema(request=MemberRoleSerializer, responses=MemberSerializer)
    def put(self, request: Request, name: str, username: str) -> Response:
        """Adds the person, or gives another role. Needs an admin of the team."""
        team = teams.team_named(name)
        require(request.user, "set roles", team)
        serializer = MemberRoleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        membership = teams.set_role(
            team,
            username,
            serializer.validated_data["role"],
            actor=cast("User", request.user),
            now=wiring.clock.now(),
        )
        return Response(MemberSerializer(membership).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, username: str) -> Response:
        """Takes the person out of the team. A team keeps at least one admin."""
        team = teams.team_named(name)
        require(request.user, "set roles", team)
        teams.remove_member(team, username, actor=cast("User", request.user), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class PersonList(APIView):
    scopes: ClassVar[dict[str, str]] = {}

    @extend_schema(request=PersonSerializer, responses={201: NewPersonSerializer})
    def post(self, request: Request) -> Response:
        """Adds somebody who may sign in, and shows the first password this once. Needs a superuser who is signed in."""
        require_operator(request)
        serializer = PersonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        person, password = teams.add_person(
            **serializer.validated_data, actor=cast("User", request.user), now=wiring.clock.now()
        )
        body = {"username": person.username, "email": person.email, "full_name": person.get_full_name()}
        return Response(body | {"password": password}, status.HTTP_201_CREATED)
