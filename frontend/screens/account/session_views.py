"""Signing in and out, and a new password."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, LogoutView
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from frontend.ui.form_actions import actor_of
from lakehub import wiring
from lakehub.accounts.audit import audit_log
from lakehub.accounts.sign_in import known_browsers
from lakehub.accounts.sign_in.forms import SignInForm


class SignIn(LoginView):
    template_name = "screens/account/templates/sign_in.html"
    http_method_names = ["get", "head", "post"]  # noqa: RUF012 - as the base class has it
    redirect_authenticated_user = True
    authentication_form = SignInForm

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        known_browsers.remember_browser(self.request, answer, form.cleaned_data["username"])
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Whoever must wait is told how long, programs too."""
        answer = super().form_invalid(form)
        if isinstance(form, SignInForm) and form.wait_s is not None:
            answer.status_code = 429
            answer.headers["Retry-After"] = str(form.wait_s)
        return answer


class SignOut(LogoutView):
    """Posted to only: a link that signs people out is a trap."""

    http_method_names = ["post"]  # noqa: RUF012


@sensitive_post_parameters()
def change_password(request: HttpRequest) -> HttpResponse:
    """One's own, with the old one; other browsers are signed out by it."""
    person = actor_of(request)
    form = PasswordChangeForm(person, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            form.save()
            name = person.get_username()
            audit_log.record(name, "change password", f"person:{name}", now=wiring.clock.now())
        update_session_auth_hash(request, person)
        messages.info(request, "Your password is changed. Other browsers are signed out.")
        return redirect("account")
    status = 422 if form.errors else 200
    return render(request, "screens/account/templates/password.html", {"form": form}, status=status)
