"""Signing in and out."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    template_name = "frontend/sign_in.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    http_method_names: ClassVar = ["post", "options"]
