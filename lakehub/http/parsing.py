"""What is read of a request before anything knows what it means: plain JSON, and text without NUL.

A database refuses NUL and half characters in the middle of a query, and a parser gives up on nesting without end: both would be our
error. Here they are the caller's, by name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import IO, Any

from django.db import DataError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

logger = logging.getLogger(__name__)

_NUL_MESSAGE = "A NUL character (%00) is in {where}: take it out."


class PayloadTooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"


class StrictJSONParser(JSONParser):
    """JSON that every database can hold."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError("The body is nested too deeply.") from None
        for text in _all_strings(data):
            if "\0" in text:
                raise ParseError(_NUL_MESSAGE.format(where="the body"))
            if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
                raise ParseError("Half of a surrogate pair (\\ud800 to \\udfff) is in the body: send whole characters.")
        return data


def _all_strings(data: Any) -> Iterator[str]:
    """Every text of a parsed body, keys too."""
    waiting = [data]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            waiting.extend((*node.keys(), *node.values()))
        elif isinstance(node, list):
            waiting.extend(node)


class RejectNulMiddleware:
    """Refuses NUL in an address, its parameters, or the fields of a page's form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            return _bad_request(request, "the address")
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        match = request.resolver_match
        if request.method != "POST" or (match and match.namespace == "api"):
            return None
        if any("\0" in text for name, values in request.POST.lists() for text in (name, *values)):
            return _bad_request(request, "the form")
        return None


class ConsoleFilterMiddleware:
    """The console narrows its lists by what the address says, which it hands to the database as it is: a time before the year 1,
    or a number of a hundred digits, is the caller's error there."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, problem: Exception) -> HttpResponse | None:
        is_filter = request.method == "GET" and request.GET and request.path_info.startswith("/console/")
        if not is_filter or not isinstance(problem, OverflowError | ValueError | DataError):
            return None
        logger.warning("The console cannot narrow a list by this address", exc_info=problem)
        return _refusal(request, "A number or a time in the address is out of range: change it, or leave it out.")


def _bad_request(request: HttpRequest, where: str) -> HttpResponse:
    return _refusal(request, _NUL_MESSAGE.format(where=where))


def _refusal(request: HttpRequest, message: str) -> HttpResponse:
    if request.path_info.startswith("/api/"):
        return JsonResponse({"error": {"code": "invalid", "message": message}}, status=400)
    return HttpResponse(message, status=400, content_type="text/plain; charset=utf-8")
