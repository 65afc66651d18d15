"""Addresses of the test screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.quality_test import actions, authoring_views, views

urlpatterns = [
    path("datasets/<str:name>/new-test", authoring_views.new_test, name="dataset-test-new"),
    path("datasets/<str:name>/expression", authoring_views.expression_fragment, name="dataset-expression"),
    path("datasets/<str:name>/tests/<str:key>", views.quality_test_page, name="dataset-test"),
    path("datasets/<str:name>/tests/<str:key>/results.csv", views.results_csv, name="dataset-test-csv"),
    path("datasets/<str:name>/tests/<str:key>/rows/<int:unit>.csv", views.rows_csv, name="dataset-test-rows-csv"),
    path(
        "datasets/<str:name>/tests/<str:key>/differences/<int:unit>.csv",
        views.differing_records_csv,
        name="dataset-test-differences-csv",
    ),
    path("datasets/<str:name>/tests/<str:key>/run", actions.run_now, name="dataset-test-run"),
    path("datasets/<str:name>/tests/<str:key>/edit", authoring_views.edit_test, name="dataset-test-edit"),
    path("datasets/<str:name>/tests/<str:key>/retire", actions.retire, name="dataset-test-retire"),
]
