"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from lakehub.accounts.api import sessions, teams, tokens_and_audit

urlpatterns: list[URLPattern] = [
    path("tokens", tokens_and_audit.TokenList.as_view(), name="tokens"),
    path("tokens/<str:prefix>", tokens_and_audit.TokenDetail.as_view(), name="token"),
    path("audit", tokens_and_audit.AuditLog.as_view(), name="audit"),
    path("audit/export", tokens_and_audit.AuditExport.as_view(), name="audit-export"),
    path("teams", teams.TeamList.as_view(), name="teams"),
    path("teams/<str:name>/members", teams.MemberList.as_view(), name="team-members"),
    path("teams/<str:name>/members/<str:username>", teams.MemberDetail.as_view(), name="team-member"),
    path("sessions", sessions.SessionList.as_view(), name="sessions"),
    path("sessions/<int:number>", sessions.SessionDetail.as_view(), name="session"),
    path("people/<str:username>/sessions", sessions.PersonSessions.as_view(), name="person-sessions"),
    path("people", teams.PersonList.as_view(), name="people"),
]
