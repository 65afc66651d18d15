"""Signing in and out, and the browsers that somebody is signed in with."""

from __future__ import annotations

import logging

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from frontend.screens.account.entry import BY_PASSWORD, enter, enter_with_code
from frontend.ui.form_actions import actor_of, errors_as_messages
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.recent_sign_in import AGAIN, needs_recent_sign_in
from lakehub.accounts.sign_in import passwords, pending, second_step, sessions
from lakehub.accounts.sign_in.forms import SignInForm, seconds_until, wait_in_words
from lakehub.accounts.sign_in.throttle import SignInLocked
from lakehub.http.client_address import client_address
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)

CODE_TEMPLATE = "screens/account/templates/sign_in_code.html"


class SignIn(LoginView):
    template_name = "screens/account/templates/sign_in.html"
    http_method_names = ["get", "head", "post"]  # noqa: RUF012 - as the base class has it
    authentication_form = SignInForm

    @property
    def redirect_authenticated_user(self) -> bool:  # type: ignore[override]  # a constant there
        return AGAIN not in self.request.GET

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        person = form.get_user()
        assert isinstance(person, User)
        return enter(self.request, person, next_url=self.get_success_url(), factor=BY_PASSWORD)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Whoever must wait is told how long, programs too."""
        answer = super().form_invalid(form)
        if isinstance(form, SignInForm) and form.wait_s is not None:
            answer.status_code = 429
            answer.headers["Retry-After"] = str(form.wait_s)
        return answer

    def get_context_data(self, **context: object) -> dict[str, object]:
        shown = {
            "by_password": settings.LAKEHUB_LOCAL_PASSWORDS,
            "can_mail": passwords.can_mail(),
            "again": self.request.user if self.request.user.is_authenticated else None,
            "single_sign_on": settings.LAKEHUB_OIDC_NAME if settings.LAKEHUB_OIDC_ISSUER else "",
        }
        return super().get_context_data(**context) | shown


class SignOut(LogoutView):
    """Posted to only: a link that signs people out is a trap."""

    http_method_names = ["post"]  # noqa: RUF012

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """What the browser has stored of ours goes too, but for its cookies: that it is known is worth keeping."""
        name = request.user.get_username()
        response = super().post(request, *args, **kwargs)
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
        if name:
            logger.info("%s signed out", name)
        return response

    def get_success_url(self) -> str:
        """With single sign-on to a page with a link there: forms go to this server only, redirected or not."""
        return reverse("signed-out") if settings.LAKEHUB_OIDC_ISSUER else super().get_success_url()


@login_not_required
@sensitive_post_parameters()
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """The second step, for somebody who has given the password in this browser."""
    given = pending.pending_sign_in(request)
    if given is None:
        return redirect("sign-in")
    context: dict[str, object] = {"person": given.person, "codes_left": second_step.recovery_codes_left(given.person)}
    if request.method != "POST":
        return render(request, CODE_TEMPLATE, context)
    try:
        code = request.POST.get("code", "")
        second_step.verify(given.person, code, address=client_address(request), now=wiring.clock.now())
    except Refused as refused:
        context["error"] = refused.fields["code"]
        return render(request, CODE_TEMPLATE, context, status=422)
    except SignInLocked as locked:
        wait_s = seconds_until(locked.until, now=wiring.clock.now())
        context["error"] = f"Too many codes were wrong. Try again in {wait_in_words(wait_s)}."
        response = render(request, CODE_TEMPLATE, context, status=429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    return enter_with_code(request, given)


@require_POST
@needs_recent_sign_in(then="account")
def end_session(request: HttpRequest, number: int) -> HttpResponse:
    person = actor_of(request)
    with errors_as_messages(request):
        sessions.end_session(person, number, now=wiring.clock.now())
        messages.info(request, "That browser is signed out.")
    return redirect("account")


@require_POST
@needs_recent_sign_in(then="account")
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    person = actor_of(request)
    session_count = sessions.end_sessions(
        person, actor=person.get_username(), now=wiring.clock.now(), keep=request.session.session_key
    )
    messages.info(request, f"{session_count} other browser{'s are' if session_count != 1 else ' is'} signed out.")
    return redirect("account")
