"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from quality.api import backtests, coverage, quality_tests, results
from quality.api import external_runs as pipelines
from quality.api import rules_and_metrics as authoring

urlpatterns: list[URLPattern] = [
    path("datasets/<str:name>/tests", quality_tests.QualityTestList.as_view(), name="tests"),
    path("datasets/<str:name>/tests/<str:key>", quality_tests.QualityTestDetail.as_view(), name="test"),
    path("datasets/<str:name>/tests/<str:key>/versions", quality_tests.VersionHistory.as_view(), name="test-versions"),
    path("datasets/<str:name>/coverage", coverage.DatasetCoverage.as_view(), name="dataset-coverage"),
    path("datasets/<str:name>/skipped", quality_tests.SkippedCheckList.as_view(), name="skipped"),
    path("datasets/<str:name>/run", results.RunRequestList.as_view(), name="run"),
    path("datasets/<str:name>/units", results.UnitList.as_view(), name="units"),
    path("datasets/<str:name>/expression", quality_tests.ExpressionCheck.as_view(), name="expression"),
    path("coverage", coverage.CoverageSummary.as_view(), name="coverage"),
    path("reports/weekly", coverage.WeeklyReportDetail.as_view(), name="weekly-report"),
    path("tiers", coverage.TierList.as_view(), name="tiers"),
    path("datasets/<str:name>/rules", authoring.RuleList.as_view(), name="rules"),
    path("datasets/<str:name>/rules/proposals", authoring.RuleSuggestionList.as_view(), name="proposals"),
    path("datasets/<str:name>/rules/<int:number>", authoring.RuleDetail.as_view(), name="rule"),
    path("datasets/<str:name>/backtest", backtests.BacktestRun.as_view(), name="backtest"),
    path("metrics", authoring.MetricList.as_view(), name="metrics"),
    path("metrics/<str:name>", authoring.MetricDetail.as_view(), name="metric"),
    path("pipelines/finished", pipelines.ExternalRunList.as_view(), name="pipelines-finished"),
    path("pipelines/hooks", pipelines.PipelineHookList.as_view(), name="pipeline-hooks"),
    path("pipelines/hooks/<str:key>", pipelines.PipelineHookDetail.as_view(), name="pipeline-hook"),
    path("pipelines/hooks/<str:key>/finished", pipelines.SignedExternalRun.as_view(), name="pipeline-hook-finished"),
    path("units/<int:number>/results", results.ResultList.as_view(), name="results"),
    path("units/<int:number>/rows", results.FailingRowsDetail.as_view(), name="unit-rows"),
]
