"""The schema registry over REST, below /api/v1/schema-registry: what Confluent's clients and serializers ask of a registry, and deprecation.

Refusals read as all of Lakehub's do, and have Confluent's `error_code` and `message` besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.domain.avro.compatibility import Refusal
from ingestion.models import SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.serializers import (
    CompatibilityRuleSerializer,
    CompatibilitySerializer,
    DeprecationSerializer,
    ModeSerializer,
    RegistryErrorSerializer,
    RuleLevelSerializer,
    SchemaIdSerializer,
    SchemaSerializer,
    SchemaTextSerializer,
    SchemaVersionSerializer,
    SubjectTeamSerializer,
    SubjectVersionSerializer,
    schema_text,
)
from ingestion.schemas.teams import team_of_new_subject
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.accounts.teams import team_named
from lakehub.accounts.tokens.authentication import TokenAsPasswordAuthentication, TokenAuthentication
from lakehub.http.parsing import StrictJSONParser
from lakehub.kernel.errors import NotFound, Refused

_MAX_NAMES = 1_000
_OFFSET = OpenApiParameter("offset", int, description="How many to leave out at the beginning.")
_LIMIT = OpenApiParameter("limit", int, description=f"How many at most; {_MAX_NAMES:,}, and no more.")
VERSION = OpenApiParameter("version", OpenApiTypes.STR, OpenApiParameter.PATH, description="A number, or `latest`.")


class _RegistryParser(StrictJSONParser):
    media_type = "application/vnd.schemaregistry.v1+json"


class _Registry(APIView):
    authentication_classes = (TokenAuthentication, TokenAsPasswordAuthentication, SessionAuthentication)
    refusal_serializer = RegistryErrorSerializer
    parser_classes = (_RegistryParser, StrictJSONParser)
    scopes: ClassVar[dict[str, str]] = {"GET": "schemas:read"}

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if isinstance(response.data, dict) and "error" in response.data:
            message = response.data["error"]["message"]
            response.data |= {"error_code": _error_code(exc, response.status_code), "message": message}
        return response


def _error_code(problem: Exception, status_code: int) -> int:
    """Confluent's: three digits of HTTP and two of its own."""
    match problem:
        case registry.SubjectNotFound():
            return 40401
        case registry.VersionNotFound():
            return 40402
        case NotFound():
            return 40403
        case registry.InvalidVersion():
            return 42202
        case registry.InvalidRule():
            return 42203
        case Refused():
            return 42201
    return status_code


class SubjectList(_Registry):
    @extend_schema(
        operation_id="schema_registry_subjects",
        parameters=[_OFFSET, _LIMIT],
        responses={200: {"type": "array", "items": {"type": "string"}}},
    )
    def get(self, request: Request) -> Response:
        """The names of all subjects, in order."""
        begin, end = _range(request)
        return Response([*registry.subjects().values_list("name", flat=True)[begin:end]])


class SubjectLookup(_Registry):
    scopes: ClassVar = {"POST": "schemas:read"}

    @extend_schema(
        operation_id="schema_registry_lookup", request=SchemaSerializer, responses={200: SchemaVersionSerializer}
    )
    def post(self, request: Request, subject: str) -> Response:
        """Which version of the subject a schema is. Nothing is registered."""
        return Response(SchemaVersionSerializer(registry.find_registered(subject, _schema_in(request))).data)


class VersionList(_Registry):
    scopes: ClassVar = {"GET": "schemas:read", "POST": "schemas:write"}

    @extend_schema(
        operation_id="schema_registry_versions", responses={200: {"type": "array", "items": {"type": "integer"}}}
    )
    def get(self, request: Request, subject: str) -> Response:
        """The numbers of the subject's versions."""
        versions = registry.find_subject(subject).versions.order_by("version")
        return Response([*versions.values_list("version", flat=True)])

    @extend_schema(
        operation_id="schema_registry_register", request=SchemaSerializer, responses={200: SchemaIdSerializer}
    )
    def post(self, request: Request, subject: str) -> Response:
        """Registers a schema, if the subject's rule allows it; the one that is there already has its id. A new subject belongs to the token's team."""
        try:
            team = registry.find_subject(subject).team
        except NotFound:
            team = team_of_new_subject(request.user)
        require(request.user, "onboard", team)
        text = _schema_in(request)
        actor, now = request.user.get_username(), wiring.clock.now()
        return Response({"id": registry.register(subject, text, team=team, actor=actor, now=now).pk})


class VersionDetail(_Registry):
    @extend_schema(
        operation_id="schema_registry_version", parameters=[VERSION], responses={200: SchemaVersionSerializer}
    )
    def get(self, request: Request, subject: str, version: str) -> Response:
        return Response(SchemaVersionSerializer(registry.find_version(subject, registry.version_number(version))).data)


class VersionText(_Registry):
    @extend_schema(
        operation_id="schema_registry_version_schema", parameters=[VERSION], responses={200: OpenApiTypes.ANY}
    )
    def get(self, request: Request, subject: str, version: str) -> Response:
        """The schema alone."""
        return Response(registry.schema_of(registry.find_version(subject, registry.version_number(version))))


class VersionDeprecation(_Registry):
    scopes: ClassVar = {"POST": "schemas:write"}

    @extend_schema(
        operation_id="schema_registry_deprecate",
        parameters=[VERSION],
        request=DeprecationSerializer,
        responses={200: SchemaVersionSerializer},
    )
    def post(self, request: Request, subject: str, version: str) -> Response:
        """Says that a version should not be used any more, and why. What was written by it can be read as before."""
        deprecated: SchemaVersion = registry.find_version(subject, registry.version_number(version))
        require(request.user, "onboard", deprecated.subject.team)
        body = DeprecationSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        actor = request.user.get_username()
        registry.deprecate(deprecated, body.validated_data["why"], actor=actor, now=wiring.clock.now())
        return Response(SchemaVersionSerializer(deprecated).data)


class SchemaDetail(_Registry):
    @extend_schema(operation_id="schema_registry_schema", responses={200: SchemaTextSerializer})
    def get(self, request: Request, number: int) -> Response:
        """The schema that messages with this id were written by."""
        return Response({"schema": registry.find_by_id(number).text})


class SchemaVersions(_Registry):
    @extend_schema(operation_id="schema_registry_schema_versions", responses={200: SubjectVersionSerializer(many=True)})
    def get(self, request: Request, number: int) -> Response:
        """Of which subject the schema with this id is a version; one, as each version has an id of its own."""
        return Response([SubjectVersionSerializer(registry.find_by_id(number)).data])


class SchemaTypes(_Registry):
    @extend_schema(
        operation_id="schema_registry_types", responses={200: {"type": "array", "items": {"type": "string"}}}
    )
    def get(self, request: Request) -> Response:
        return Response(["AVRO"])


class Mode(_Registry):
    @extend_schema(operation_id="schema_registry_mode", responses={200: ModeSerializer})
    def get(self, request: Request) -> Response:
        return Response({"mode": "READWRITE"})


class Rule(_Registry):
    @extend_schema(operation_id="schema_registry_rule", responses={200: RuleLevelSerializer})
    def get(self, request: Request) -> Response:
        """The rule of new subjects."""
        return Response({"compatibilityLevel": registry.DEFAULT_RULE.value.upper()})


class SubjectRule(_Registry):
    scopes: ClassVar = {"GET": "schemas:read", "PUT": "schemas:write"}

    @extend_schema(operation_id="schema_registry_subject_rule", responses={200: RuleLevelSerializer})
    def get(self, request: Request, subject: str) -> Response:
        """Which version may follow in this subject."""
        return Response({"compatibilityLevel": registry.find_subject(subject).compatibility.upper()})

    @extend_schema(
        operation_id="schema_registry_set_subject_rule",
        request=CompatibilityRuleSerializer,
        responses={200: CompatibilityRuleSerializer},
    )
    def put(self, request: Request, subject: str) -> Response:
        """For versions that are registered from now on."""
        changed = registry.find_subject(subject)
        require(request.user, "onboard", changed.team)
        body = CompatibilityRuleSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        text, actor = body.validated_data["compatibility"], request.user.get_username()
        rule = registry.set_rule(changed, text, actor=actor, now=wiring.clock.now())
        return Response({"compatibility": rule.value.upper()})


class SubjectTeam(_Registry):
    scopes: ClassVar = {"PUT": "schemas:write"}

    @extend_schema(
        operation_id="schema_registry_set_team", request=SubjectTeamSerializer, responses={200: SubjectTeamSerializer}
    )
    def put(self, request: Request, subject: str) -> Response:
        """Hands a subject over to another team, which then registers its versions; administrators of its team."""
        changed = registry.find_subject(subject)
        require(request.user, "offboard", changed.team)
        body = SubjectTeamSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        team = team_named(body.validated_data["team"])
        registry.set_team(changed, team, actor=request.user.get_username(), now=wiring.clock.now())
        return Response({"team": team.name})


class CompatibilityCheck(_Registry):
    scopes: ClassVar = {"POST": "schemas:read"}

    @extend_schema(
        operation_id="schema_registry_check",
        parameters=[VERSION],
        request=SchemaSerializer,
        responses={200: CompatibilitySerializer},
    )
    def post(self, request: Request, subject: str, version: str) -> Response:
        """Whether a schema may follow a version by the subject's rule, and why not. Nothing is registered."""
        problems = registry.compatibility_problems(
            subject, _schema_in(request), version=registry.version_number(version)
        )
        return _verdict(problems)


class CompatibilityCheckOfAll(_Registry):
    scopes: ClassVar = {"POST": "schemas:read"}

    @extend_schema(
        operation_id="schema_registry_check_all", request=SchemaSerializer, responses={200: CompatibilitySerializer}
    )
    def post(self, request: Request, subject: str) -> Response:
        """The same with the versions that count by the subject's rule."""
        problems = registry.compatibility_problems(subject, _schema_in(request))
        return _verdict(problems)


def _verdict(problems: Sequence[Refusal]) -> Response:
    return Response({"is_compatible": not problems, "messages": [str(problem) for problem in problems]})


def _schema_in(request: Request) -> str:
    body = SchemaSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    return schema_text(body.validated_data)


def _range(request: Request) -> tuple[int, int]:
    begin, limit = (_parameter(request, name, usual) for name, usual in (("offset", 0), ("limit", _MAX_NAMES)))
    return begin, begin + min(limit if limit >= 0 else _MAX_NAMES, _MAX_NAMES)


def _parameter(request: Request, name: str, usual: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return usual
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 10):
        raise Refused.for_fields({name: f"{text[:40]!r} is not a whole number."})
    return max(int(text), -1 if name == "limit" else 0)
