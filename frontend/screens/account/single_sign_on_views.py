"""Signing in at the provider of single sign-on, and back."""

from __future__ import annotations

import logging
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from frontend.screens.account.entry import enter
from lakehub import wiring
from lakehub.accounts.sign_in import throttle
from lakehub.accounts.sign_in.forms import seconds_until, wait_in_words
from lakehub.accounts.single_sign_on import identities, provider, round_trip
from lakehub.http.client_address import client_address
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)


@login_not_required
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    """To the provider. A link and no form: our policy lets forms go to this server only.

    A link on another site signs nobody in: whoever comes by one sees the page with the button first. Whoever is signed in here and
    comes again is to show it anew there.
    """
    _require_provider()
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        return redirect("sign-in")
    wanted = request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    try:
        url, trip = round_trip.begin(wanted if ours else reverse("home"), again=request.user.is_authenticated)
    except provider.ProviderError as problem:
        return _unavailable(request, problem)
    response = HttpResponseRedirect(url)
    round_trip.remember(request, response, trip)
    return response


@login_not_required
@require_safe
def back(request: HttpRequest) -> HttpResponse:
    """From the provider, with a code. Each attempt is counted by its address before anything is asked of the provider."""
    _require_provider()
    attempt, now = throttle.ProviderAttempt(client_address(request)), wiring.clock.now()
    try:
        throttle.register_attempt(attempt, now=now)
        claims, trip = round_trip.finish(request, request.GET.dict())
        person = identities.person_of(claims, now=now)
    except throttle.SignInLocked as locked:
        wait_s = seconds_until(locked.until, now=now)
        response = _refused(request, f"Too many attempts have failed. Try again in {wait_in_words(wait_s)}.", 429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    except (round_trip.RoundTripRefused, Refused) as refused:
        logger.warning("Single sign-on was refused: %s", refused)
        return _refused(request, str(refused), 403)
    except provider.ProviderError as problem:
        return _unavailable(request, problem)
    throttle.clear_failures(attempt)
    response = enter(request, person, next_url=trip.next_url, factor="single sign-on")
    round_trip.forget(response)
    return response


def provider_sign_out_url() -> str:
    """Where the person signs out at the provider too; empty where it has no such place or does not answer."""
    if not settings.LAKEHUB_OIDC_ISSUER:
        return ""
    try:
        end = provider.description().end_session_endpoint
    except provider.ProviderError as problem:
        logger.warning("The provider of single sign-on does not answer: %s", problem)
        return ""
    back_to = f"{settings.LAKEHUB_BASE_URL}{reverse('sign-in')}"
    query = urlencode({"client_id": settings.LAKEHUB_OIDC_CLIENT_ID, "post_logout_redirect_uri": back_to})
    return f"{end}{'&' if '?' in end else '?'}{query}" if end else ""


@login_not_required
@require_safe
def signed_out(request: HttpRequest) -> HttpResponse:
    return render(request, "screens/account/templates/signed_out.html", {"url": provider_sign_out_url()})


def _require_provider() -> None:
    if not settings.LAKEHUB_OIDC_ISSUER:
        raise Http404("This instance has no single sign-on: LAKEHUB_OIDC_ISSUER is not set.")


def _unavailable(request: HttpRequest, problem: provider.ProviderError) -> HttpResponse:
    """What is wrong is for the log: it may quote what the provider, or somebody in its place, has said."""
    logger.warning("Single sign-on failed: %s", problem)
    return _refused(request, "The provider did not answer, or its answer cannot be believed.", 502)


def _refused(request: HttpRequest, why: str, status: int) -> HttpResponse:
    response = render(request, "screens/account/templates/single_sign_on_refused.html", {"why": why}, status=status)
    round_trip.forget(response)
    return response
