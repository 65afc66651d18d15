"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from quality import api
from quality.authoring import api as authoring
from quality.pipelines import api as pipelines

urlpatterns: list[URLPattern] = [
    path("datasets/<str:name>/tests", api.Tests.as_view(), name="tests"),
    path("datasets/<str:name>/tests/<str:key>", api.OneTest.as_view(), name="test"),
    path("datasets/<str:name>/tests/<str:key>/versions", api.Versions.as_view(), name="test-versions"),
    path("datasets/<str:name>/coverage", api.DatasetCoverage.as_view(), name="dataset-coverage"),
    path("datasets/<str:name>/skipped", api.Skipped.as_view(), name="skipped"),
    path("datasets/<str:name>/run", api.RunNow.as_view(), name="run"),
    path("datasets/<str:name>/units", api.Units.as_view(), name="units"),
    path("datasets/<str:name>/expression", api.Expression.as_view(), name="expression"),
    path("coverage", api.WholeCoverage.as_view(), name="coverage"),
    path("reports/weekly", api.Weekly.as_view(), name="weekly-report"),
    path("tiers", api.Tiers.as_view(), name="tiers"),
    path("datasets/<str:name>/rules", authoring.Rules.as_view(), name="rules"),
    path("datasets/<str:name>/rules/proposals", authoring.Proposals.as_view(), name="proposals"),
    path("datasets/<str:name>/rules/<int:number>", authoring.OneRule.as_view(), name="rule"),
    path("datasets/<str:name>/backtest", authoring.Backtests.as_view(), name="backtest"),
    path("metrics", authoring.Metrics.as_view(), name="metrics"),
    path("metrics/<str:name>", authoring.OneMetric.as_view(), name="metric"),
    path("pipelines/finished", pipelines.Finished.as_view(), name="pipelines-finished"),
    path("pipelines/hooks", pipelines.Hooks.as_view(), name="pipeline-hooks"),
    path("pipelines/hooks/<str:key>", pipelines.OneHook.as_view(), name="pipeline-hook"),
    path("pipelines/hooks/<str:key>/finished", pipelines.SignedFinished.as_view(), name="pipeline-hook-finished"),
    path("units/<int:number>/results", api.Results.as_view(), name="results"),
]
