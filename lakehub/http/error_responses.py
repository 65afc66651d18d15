"""What every answer of the REST API has in common: how an error reads, and where the schema is."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig, ValidationError
from rest_framework import status
from rest_framework.response import Response
from rest_framework.views import exception_handler

from lakehub.kernel.errors import Busy, Conflict, NotFound, Refused


def error_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """`{"error": {"code", "message", "fields"?}}` for what a caller can mend; anything else stays a 500."""
    if isinstance(error, Refused):
        return _response(status.HTTP_422_UNPROCESSABLE_ENTITY, "refused", str(error), error.fields)
    if isinstance(error, NotFound):
        return _response(status.HTTP_404_NOT_FOUND, "not_found", str(error))
    if isinstance(error, Conflict):
        return _response(status.HTTP_409_CONFLICT, "conflict", str(error))
    if isinstance(error, Busy):
        answer = _response(status.HTTP_503_SERVICE_UNAVAILABLE, "busy", str(error))
        answer.headers["Retry-After"] = str(error.retry_after_s)
        return answer
    if isinstance(error, RequestDataTooBig):
        return _response(status.HTTP_413_REQUEST_ENTITY_TOO_LARGE, "too_large", str(error))
    if isinstance(error, ValidationError):
        return _response(status.HTTP_422_UNPROCESSABLE_ENTITY, "refused", " ".join(error.messages))
    response = exception_handler(error, context)
    if response is None:
        return None
    return _reshape_response(response)


def _reshape_response(response: Response) -> Response:
    data = response.data
    if isinstance(data, dict) and set(data) == {"detail"}:
        detail = data["detail"]
        response.data = {"error": {"code": getattr(detail, "code", "error"), "message": str(detail)}}
    else:
        response.data = {"error": {"code": "invalid", "message": "Some fields cannot be used.", "fields": data}}
    return response


def _response(code: int, word: str, message: str, fields: dict[str, str] | None = None) -> Response:
    body: dict[str, Any] = {"code": word, "message": message}
    if fields:
        body["fields"] = fields
    return Response({"error": body}, status=code)
