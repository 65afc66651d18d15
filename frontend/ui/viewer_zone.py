"""The viewer's time zone: the one of the account; where that is UTC, the browser's (a cookie that js/zone.js fills)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from lakehub.accounts.models import User

ZONE_COOKIE = "zone"
UTC = "UTC"


class ViewerZoneMiddleware:
    """Middleware, after authentication: every page formats its times in the viewer's zone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(ZoneInfo(self._name(request))):
            return self._get_response(request)

    def _name(self, request: HttpRequest) -> str:
        chosen = request.user.timezone if isinstance(request.user, User) else UTC
        name = chosen if chosen != UTC else request.COOKIES.get(ZONE_COOKIE, UTC)
        return name if name in _known_zones() else UTC


@cache
def _known_zones() -> frozenset[str]:
    """Read once in a process: it opens every file of the zone database."""
    return frozenset(available_timezones())
