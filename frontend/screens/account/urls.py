"""Addresses of the account screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.account import (
    password_views,
    second_step_views,
    session_views,
    single_sign_on_views,
    theme_views,
    views,
)

urlpatterns = [
    path("sign-in", session_views.SignIn.as_view(), name="sign-in"),
    path("sign-out", session_views.SignOut.as_view(), name="sign-out"),
    path("account", views.account, name="account"),
    path("sign-in/single-sign-on", single_sign_on_views.begin, name="single-sign-on"),
    path("sign-in/single-sign-on/back", single_sign_on_views.back, name="single-sign-on-back"),
    path("signed-out", single_sign_on_views.signed_out, name="signed-out"),
    path("sign-in/code", session_views.sign_in_code, name="sign-in-code"),
    path("account/sessions/<int:number>/end", session_views.end_session, name="session-end"),
    path("account/sessions/end-others", session_views.end_other_sessions, name="sessions-end-others"),
    path("account/password", password_views.change_password, name="account-password"),
    path("password-forgotten", password_views.forgotten_password, name="password-forgotten"),
    path("password-reset/<str:key>/<str:token>", password_views.reset_password, name="password-reset"),
    path("account/second-step", second_step_views.second_step_page, name="second-step"),
    path("account/second-step/begin", second_step_views.begin, name="second-step-begin"),
    path("account/second-step/confirm", second_step_views.confirm, name="second-step-confirm"),
    path("account/second-step/codes", second_step_views.renew_codes, name="second-step-codes"),
    path("account/second-step/remove", second_step_views.remove, name="second-step-remove"),
    path("tokens", views.token_list, name="token-list"),
    path("tokens/<str:prefix>/revoke", views.token_revoke, name="token-revoke"),
    path("audit", views.audit_log_page, name="audit-log"),
    path("theme", theme_views.change_theme, name="turn-theme"),
]
