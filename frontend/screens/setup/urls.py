"""Addresses of the setup screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.setup import connection_views, people_views, views

urlpatterns = [
    path("setup", views.setup, name="setup"),
    path("new-team", views.new_team, name="new-team"),
    path("new-data-center", views.new_data_center, name="new-data-center"),
    path("new-connection", connection_views.new_connection, name="new-connection"),
    path("new-person", people_views.new_person, name="new-person"),
    path("teams/<str:name>/members", people_views.members, name="team-members-page"),
    path("teams/<str:name>/members/remove", people_views.remove_member, name="team-member-remove"),
]
