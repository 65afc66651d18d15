"""How the REST API describes itself: to what a view answers, every operation adds how it refuses. In one place, so that none forgets."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

_COMMON_ERRORS = {
    400: "The request cannot be read: its address, a parameter, or a field of the body.",
    401: "No sign-in, or a token that is unknown, expired or revoked.",
    403: "The scope, or the role in the team, is missing; or a form of a browser without its CSRF token.",
    404: "There is nothing by that name, or no such page of the list.",
    422: "It was understood and cannot be done; `fields` says why, field by field.",
}
_BODY_ERRORS = {
    413: "The body is too large.",
    415: "The body is not JSON.",
}
_CHANGE_ERRORS = {409: "Somebody was faster; nothing was changed."}
_RATE_LIMIT_ERRORS = {429: "Too many requests; `Retry-After` says in how many seconds the next is answered."}


SCHEMA_RENDERERS = (OpenApiJsonRenderer2, OpenApiJsonRenderer, OpenApiYamlRenderer)
"""JSON unless YAML is asked for, which takes seconds to write."""


class ErrorDetailSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="A word for programs: refused, not_found, conflict, invalid ...")
    message = serializers.CharField(help_text="A sentence for people: what, which value, what would do.")
    fields = serializers.JSONField(required=False, help_text="The same for each field.")  # type: ignore[assignment]


class ErrorSerializer(serializers.Serializer[Any]):
    """How every refusal reads."""

    error = ErrorDetailSerializer()


BUSY = OpenApiResponse(
    ErrorSerializer, "Too many do this just now; `Retry-After` says in how many seconds to ask again."
)
"""For what raises Busy."""
_TIME_OF_DAY = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?$"


class ApiSchema(AutoSchema):
    """What a view says of its answers, and the refusals that `lakehub.http.error_responses.error_response` makes for all."""

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        described, body = cast("Any", self)._get_response_for_code, self.get_response_serializers()
        if self.method == "DELETE" and body is not None and not isinstance(body, dict):
            answers = {"200": described(body, "200", direction=direction)}  # what is left, in place of an empty 204
        else:
            answers = super()._get_response_bodies(direction)
        refusal = getattr(self.view, "refusal_serializer", ErrorSerializer)
        for code, why in self._refusals().items():
            if str(code) not in answers:
                answers[str(code)] = described(refusal, str(code)) | {"description": why}
        return dict(sorted(answers.items()))

    def _refusals(self) -> dict[int, str]:
        changes = self.method not in ("GET", "HEAD", "OPTIONS")
        reads_a_body = self.method in ("POST", "PUT", "PATCH")
        limited = bool(self.view.get_throttles())
        return (
            _COMMON_ERRORS
            | (_BODY_ERRORS if reads_a_body else {})
            | (_CHANGE_ERRORS if changes else {})
            | (_RATE_LIMIT_ERRORS if limited else {})
        )


class CachedSchemaGenerator(SchemaGenerator):
    """The description is the same for everybody, and costs most of a second: each process makes it once."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        return _full_schema()


@cache
def _full_schema() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)


def describe_times_of_day(result: Any, generator: Any, request: Any, public: Any) -> Any:
    """A time of a day has no offset with us, which the format `time` asks for: a pattern says what is meant."""
    waiting = [result]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("format") == "time":
                node.pop("format")
                node["pattern"] = _TIME_OF_DAY
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return result
