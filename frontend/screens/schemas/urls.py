"""Addresses of the schemas screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.schemas import actions, proposal_views, views

urlpatterns = [
    path("schemas", views.schema_list, name="schemas"),
    path("new-schema", proposal_views.new_subject, name="schemas-new"),
    path("new-schema/register", proposal_views.register_subject, name="schemas-register-new"),
    path("schemas/<str:subject>", views.subject_page, name="schemas-subject"),
    path("schemas/<str:subject>/diff", views.version_diff, name="schemas-diff"),
    path("schemas/<str:subject>/propose", proposal_views.propose_version, name="schemas-propose"),
    path("schemas/<str:subject>/register", proposal_views.register_version, name="schemas-register"),
    path("schemas/<str:subject>/rule", actions.set_rule, name="schemas-rule"),
    path("schemas/<str:subject>/versions/<int:number>/deprecate", actions.deprecate, name="schemas-deprecate"),
]
