"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpResponse

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
