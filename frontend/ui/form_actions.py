"""A form that acts: POST only, the right role, one use case, and what came of it said on the page that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from frontend.ui.whole_numbers import parse_whole_number
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Busy, Conflict, NotFound, Refused
from lakehub.kernel.interval import BEGINNING, FOREVER


def actor_of(request: HttpRequest) -> User:
    """Who acts. Every page needs a sign-in, so there is one."""
    assert isinstance(request.user, User)
    return request.user


@contextmanager
def errors_as_messages(request: HttpRequest, *, refusals: bool = True) -> Iterator[None]:
    """What a use case refuses becomes a message: what was wrong, who was faster, or when to ask again. Forms show `refusals` by their fields."""
    try:
        yield
    except Refused as refused:
        if not refusals:
            raise
        messages.error(request, f"{refused} Nothing was changed.")
    except (Busy, Conflict) as problem:
        messages.warning(request, str(problem))
    except NotFound as missing:
        messages.error(request, str(missing))


def perform_action(
    request: HttpRequest, action: str, dataset: Dataset, use_case: Callable[[User], str], *, then: str
) -> HttpResponse:
    """Runs `use_case`, which returns what it did in words, for somebody who may `action` here. Raises PermissionDenied."""
    actor = actor_of(request)
    require(actor, action, dataset.team)
    with errors_as_messages(request):
        messages.info(request, use_case(actor))
    return redirect(next_url_of(request) or then)


def posted_revision(request: HttpRequest) -> int | None:
    """The revision of the incident that the form was made from, so that of two people one wins."""
    return parse_whole_number(request.POST.get("revision", ""))


def parse_local_time(text: str, to_aware: Callable[[datetime], datetime]) -> datetime | None:
    """What a datetime-local field says; None where it is empty. Raises Refused."""
    if not text:
        return None
    try:
        instant = to_aware(datetime.fromisoformat(text))
        if BEGINNING <= instant.astimezone(UTC) < FOREVER:
            return instant
    except (ValueError, OverflowError):  # no time, or none that UTC can say
        pass
    raise Refused.for_fields({"time": f"`{text}` is not a time to go by: write it as 2026-11-17T15:30."})


def next_url_of(request: HttpRequest) -> str:
    """Where the form wants to go on, if that is a place of ours. It has a slash: Django takes another word for the name of a page."""
    next_url = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(next_url, allowed_hosts={request.get_host()})
    return next_url if is_ours and next_url.startswith("/") else ""
