"""Addresses of the team screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.team import message_views, route_views

urlpatterns = [
    path("teams/<str:name>/routes", route_views.route_list, name="team-routes"),
    path("teams/<str:name>/routes/<int:number>", route_views.route_page, name="team-route"),
    path("teams/<str:name>/routes/<int:number>/remove", route_views.remove_route, name="team-route-remove"),
    path("teams/<str:name>/routes/<int:number>/test", message_views.send_route_trial, name="team-route-trial"),
    path("teams/<str:name>/messages", message_views.team_messages, name="team-messages"),
    path("teams/<str:name>/messages/<str:occasion>", message_views.message_template, name="team-words"),
    path("teams/<str:name>/try", message_views.send_trial, name="team-trial"),
]
