"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    template_name = "frontend/sign_in.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """Posted to only: a link that signs people out is a trap."""
