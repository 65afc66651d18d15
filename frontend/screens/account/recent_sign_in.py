"""What changes how somebody gets in needs a recent sign-in: a browser that was left open, or a stolen session, is not enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from lakehub.accounts.sign_in.sessions import sign_in_again_url, signed_in_recently

_View = Callable[..., HttpResponse]


def needs_recent_sign_in(*, then: str) -> Callable[[_View], _View]:
    """Whoever signed in too long ago does so again, comes to the page `then`, and decides anew there: nothing is done yet."""

    def wrap(view: _View) -> _View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if signed_in_recently(request.session):
                return view(request, *args, **kwargs)
            return redirect(sign_in_again_url(reverse(then)))

        return guarded

    return wrap
