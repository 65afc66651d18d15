"""A new password: with the old one, or by a link that is mailed."""

from __future__ import annotations

from datetime import datetime

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from frontend.ui.form_actions import actor_of
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.sign_in import known_browsers, passwords, throttle
from lakehub.accounts.sign_in.forms import seconds_until, wait_in_words
from lakehub.accounts.sign_in.sessions import FIRST_PASSWORD_KEY
from lakehub.accounts.sign_in.throttle import SignInLocked
from lakehub.http.client_address import client_address

CHANGE_TEMPLATE = "screens/account/templates/password.html"
_MAX_EMAIL_LENGTH = 254


@sensitive_post_parameters()
def change_password(request: HttpRequest) -> HttpResponse:
    """One's own, with the old one; other browsers are signed out by it."""
    person, now = actor_of(request), wiring.clock.now()
    if request.method != "POST":
        return render(request, CHANGE_TEMPLATE, {"form": PasswordChangeForm(person)})
    try:
        form = _counted_form(request, person, now)
    except SignInLocked as locked:
        wait_s = seconds_until(locked.until, now=now)
        error = f"Too many attempts have failed. Try again in {wait_in_words(wait_s)}."
        response = render(request, CHANGE_TEMPLATE, {"form": PasswordChangeForm(person), "error": error}, status=429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    if form.errors:
        return render(request, CHANGE_TEMPLATE, {"form": form}, status=422)
    password, session_key = form.cleaned_data["new_password1"], request.session.session_key
    passwords.change_password(person, password, action="change password", now=now, session_key=session_key)
    update_session_auth_hash(request, person)
    request.session.pop(FIRST_PASSWORD_KEY, None)
    messages.info(request, "Your password is changed. Other browsers are signed out.")
    return redirect("account")


def _counted_form(request: HttpRequest, person: User, now: datetime) -> PasswordChangeForm:
    """Looked at. The old password is counted as at signing in: whoever has a session only may guess here too. Raises SignInLocked."""
    name = person.get_username()
    attempt = throttle.SignInAttempt(name, client_address(request), known_browsers.known_browser(request, name))
    throttle.register_attempt(attempt, now=now)
    form = PasswordChangeForm(person, request.POST)
    if "old_password" not in form.errors:
        throttle.clear_failures(attempt)
    return form


@login_not_required
def forgotten_password(request: HttpRequest) -> HttpResponse:
    """The answer is the same whether there is somebody with the address or not."""
    if not passwords.can_mail():
        raise Http404("This instance mails no links for passwords. An administrator of Lakehub sets a new one.")
    if request.method != "POST":
        return render(request, "screens/account/templates/password_forgotten.html")
    email = request.POST.get("email", "").strip()[:_MAX_EMAIL_LENGTH]
    if "@" not in email:
        context = {"email": email, "error": "Enter the mail address of your account."}
        return render(request, "screens/account/templates/password_forgotten.html", context, status=422)
    try:
        passwords.request_reset(email, address=client_address(request), now=wiring.clock.now())
    except SignInLocked as locked:
        wait_s = seconds_until(locked.until, now=wiring.clock.now())
        context = {"email": email, "error": f"Too many links were asked for. Try again in {wait_in_words(wait_s)}."}
        response = render(request, "screens/account/templates/password_forgotten.html", context, status=429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    return render(request, "screens/account/templates/password_forgotten.html", {"sent_to": email})


@login_not_required
@sensitive_post_parameters()
def reset_password(request: HttpRequest, key: str, token: str) -> HttpResponse:
    """By a link of a mail. It signs nobody in: the next step is to sign in, with the second step where there is one."""
    person = passwords.person_of_link(key, token) if passwords.can_mail() else None
    if person is None:
        return render(request, "screens/account/templates/password_reset.html", status=404)
    form = SetPasswordForm(person, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        now = wiring.clock.now()
        passwords.change_password(person, form.cleaned_data["new_password1"], action="reset password", now=now)
        return render(request, "screens/account/templates/password_reset.html", {"is_done": True})
    context = {"form": form, "person": person}
    return render(request, "screens/account/templates/password_reset.html", context, status=422 if form.errors else 200)
