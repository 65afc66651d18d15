"""Every page, and the forms that act. An action is a POST to an address of its own and calls one use case."""

from __future__ import annotations

from django.urls import path

from frontend.views import (
    appearance,
    coverage,
    dataset,
    datasets,
    gate,
    home,
    incident,
    incident_actions,
    incidents,
    onboarding,
    one_test,
    report,
    settings,
    test_actions,
    writing,
)
from frontend.views.dataset_actions import rerun
from frontend.views.session import SignIn, SignOut

urlpatterns = [
    path("", home.home, name="home"),
    path("sign-in", SignIn.as_view(), name="sign-in"),
    path("sign-out", SignOut.as_view(), name="sign-out"),
    path("theme", appearance.turn_theme, name="turn-theme"),
    path("datasets", datasets.datasets, name="datasets"),
    path("datasets/<str:name>", dataset.quality, name="dataset"),
    path("datasets/<str:name>/incidents", dataset.incidents, name="dataset-incidents"),
    path("datasets/<str:name>/data", dataset.data, name="dataset-data"),
    path("datasets/<str:name>/ingestion", dataset.ingestion, name="dataset-ingestion"),
    path("datasets/<str:name>/lineage", dataset.lineage, name="dataset-lineage"),
    path("datasets/<str:name>/rerun", rerun, name="dataset-rerun"),
    path("datasets/<str:name>/settings", settings.settings, name="dataset-settings"),
    path("datasets/<str:name>/offboard", settings.offboard, name="dataset-offboard"),
    path("datasets/<str:name>/restore", settings.restore, name="dataset-restore"),
    path("datasets/<str:name>/new-test", writing.new, name="dataset-test-new"),
    path("datasets/<str:name>/expression", writing.check, name="dataset-expression"),
    path("datasets/<str:name>/tests/<str:key>", one_test.page, name="dataset-test"),
    path("datasets/<str:name>/tests/<str:key>/results.csv", one_test.results_csv, name="dataset-test-csv"),
    path("datasets/<str:name>/tests/<str:key>/run", test_actions.run, name="dataset-test-run"),
    path("datasets/<str:name>/tests/<str:key>/edit", writing.edit, name="dataset-test-edit"),
    path("datasets/<str:name>/tests/<str:key>/retire", test_actions.retire, name="dataset-test-retire"),
    path("incidents", incidents.incidents, name="incidents"),
    path("incidents/report", report.report, name="incident-report"),
    path("incidents/<int:pk>/answer", incident_actions.answer, name="incident-answer"),
    path("incidents/together", incident_actions.together, name="incidents-together"),
    path("incidents/<int:pk>", incident.incident, name="incident"),
    path("incidents/<int:pk>/acknowledge", incident_actions.acknowledge, name="incident-acknowledge"),
    path("incidents/<int:pk>/rerun", incident_actions.rerun, name="incident-rerun"),
    path("incidents/<int:pk>/annotate", incident_actions.annotate, name="incident-annotate"),
    path("incidents/<int:pk>/comment", incident_actions.comment, name="incident-comment"),
    path("incidents/<int:pk>/snooze", incident_actions.snooze, name="incident-snooze"),
    path("incidents/<int:pk>/resolve", incident_actions.resolve, name="incident-resolve"),
    path("incidents/<int:pk>/reopen", incident_actions.reopen, name="incident-reopen"),
    path("gate", gate.gate, name="gate"),
    path("coverage", coverage.coverage, name="coverage"),
    path("onboarding", onboarding.onboarding, name="onboarding"),
    path("onboarding/<str:name>", onboarding.made, name="onboarding-made"),
]
