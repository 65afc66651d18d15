"""Addresses of the account screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.account import session_views, theme_views, views

urlpatterns = [
    path("sign-in", session_views.SignIn.as_view(), name="sign-in"),
    path("sign-out", session_views.SignOut.as_view(), name="sign-out"),
    path("account", views.account, name="account"),
    path("account/password", session_views.change_password, name="account-password"),
    path("tokens", views.token_list, name="token-list"),
    path("tokens/<str:prefix>/revoke", views.token_revoke, name="token-revoke"),
    path("audit", views.audit_log_page, name="audit-log"),
    path("theme", theme_views.change_theme, name="turn-theme"),
]
