"""One test of a dataset: what it asks, how it went, what it asked before."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from frontend.components.dataset_frame import find_dataset
from frontend.components.quality_test_rows import QualityTestRow, rows_of_tests
from frontend.results import history_plot
from frontend.results.backtest_panel import BacktestPanel, backtest_panel
from frontend.results.differences_csv import UnitDifferences, differences_csv
from frontend.results.reasons import partition_label_of
from frontend.results.result_details import result_details
from frontend.screens.quality_test import queries
from frontend.screens.quality_test.csv_export import results_as_csv
from frontend.screens.quality_test.expression_check import measures_and_parameters
from frontend.screens.quality_test.failing_rows import failing_rows_csv, failing_rows_of_test
from frontend.ui.form_actions import actor_of
from frontend.ui.whole_numbers import parse_whole_number
from incidents.domain.incident.health import worst_state
from incidents.record.health import health_of
from lakehub import wiring
from lakehub.accounts.permissions import can, require
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.suggest import did_you_mean
from quality.execution.row_rights import RowRights
from quality.generation.version_history import version_history as history_of
from quality.models import QualityTest

MAX_VERSIONS = 20


def quality_test_page(request: HttpRequest, name: str, key: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, test = find_test(name, key)
    health = health_of([dataset], now=now)[dataset.pk]
    rows = rows_of_tests(dataset, [test], health, now=now)
    bad, bad_units = queries.units_not_passing(test, dataset, now=now)
    measures, parameters = measures_and_parameters(test.version.flattened) if test.version else ((), [])
    opened = _opened_copy(request, dataset, rows, now)
    context = {
        "now": now,
        "dataset": dataset,
        "test": test,
        "failing_rows": failing_rows_of_test(request, dataset, test, opened["row"].copy if opened else None),
        "state": "none" if test.retired_at else worst_state(row.state for row in rows),
        "rows": rows,
        "opened": opened,
        "bad": bad,
        "bad_units": bad_units,
        "versions": history_of(test)[:MAX_VERSIONS],
        "runs": queries.schedule_text(test.version) if test.version else "",
        "measures": measures,
        "ruled": key.startswith("rule:"),
        "metric": key.removeprefix("metric:").partition(".")[0] if key.startswith("metric:") else "",
        "parameters": parameters,
        **_results_context(request, dataset, test),
        **(may := _rights(request, dataset, test)),
        "tried": _backtest(request, dataset, key, now) if may["may_run"] and "backtest" in request.GET else None,
    }
    return render(request, "screens/quality_test/templates/page.html", context)


def _backtest(request: HttpRequest, dataset: Dataset, key: str, now: datetime) -> BacktestPanel:
    return backtest_panel(dataset, test=key, person=actor_of(request), now=now)


def results_csv(request: HttpRequest, name: str, key: str) -> StreamingHttpResponse:
    """What the results table shows, without its pages."""
    dataset, test = find_test(name, key)
    outcome, copy = _result_filter(request, dataset)
    return results_as_csv(queries.results_of_test(test, copy, outcome), dataset, f"{name}.{key}")


def rows_csv(request: HttpRequest, name: str, key: str, unit: int) -> StreamingHttpResponse:
    """The rows of one data range that fail the test."""
    return failing_rows_csv(request, *find_test(name, key), unit)


def differing_records_csv(request: HttpRequest, name: str, key: str, unit: int) -> StreamingHttpResponse:
    """The records of one data range that the last run named as different, for who may see rows, as on the page."""
    dataset, test = find_test(name, key)
    require(actor_of(request), "see rows", dataset.team)
    tested = test.units.select_related("copy__data_center", "copy__dataset", "test__dataset").filter(pk=unit).first()
    may_see = tested is not None and RowRights(actor_of(request)).may_see(dataset, tested.detail)
    records = result_details(tested).records.differences if tested and may_see else ()
    if tested is None or not records:
        raise Http404(f"{name} has no records there in which `{key}` found a difference.")
    return differences_csv([UnitDifferences(tested, tested.latest_at, records)], f"{name}.{key}.differences")


def find_test(name: str, key: str) -> tuple[Dataset, QualityTest]:
    """The test, retired or not. Raises Http404 with the nearest key."""
    dataset = find_dataset(name)
    test = dataset.tests.filter(key=key).select_related("version").first()
    if test is None:
        live_keys = dataset.tests.filter(retired_at=None).values_list("key", flat=True)
        raise Http404(f"{name} has no test `{key}`.{did_you_mean(key, live_keys)}")
    test.dataset = dataset
    return dataset, test


def _rights(request: HttpRequest, dataset: Dataset, test: QualityTest) -> dict[str, bool]:
    """What this person may do with it; nothing where it has ended."""
    user = actor_of(request)
    live = test.retired_at is None and dataset.offboarded_at is None
    return {
        "may_run": live and can(user, "rerun", dataset.team),
        "may_write": live and not test.generated and can(user, "onboard", dataset.team),
    }


def _opened_copy(
    request: HttpRequest, dataset: Dataset, rows: list[QualityTestRow], now: datetime
) -> dict[str, Any] | None:
    """The copy whose history is shown: the one asked for, else the first of those that are worst."""
    ran = [row for row in rows if row.unit is not None and row.copy is not None]
    if not ran:
        return None
    center_name = request.GET.get("dc")
    row = next((row for row in ran if row.copy and row.copy.data_center.name == center_name), None)
    row = row or max(ran, key=lambda row: row.not_passing)
    days = parse_whole_number(request.GET.get("days", ""))
    days = days if days in history_plot.DAY_CHOICES else 60
    return {
        "row": row,
        "data": partition_label_of(row.unit) if row.unit else "",
        "days": days,
        "choices": history_plot.DAY_CHOICES,
        "plot": history_plot.plot_of_unit(dataset, row.unit, days=days, now=now) if row.unit else None,
    }


def _results_context(request: HttpRequest, dataset: Dataset, test: QualityTest) -> dict[str, Any]:
    outcome, copy = _result_filter(request, dataset)
    paged = Paginator(queries.results_of_test(test, copy, outcome), queries.PAGE_SIZE).get_page(request.GET.get("page"))
    return {
        "results": paged,
        "result_rows": [queries.result_row_of(result, dataset) for result in paged],
        "outcome": outcome,
        "outcomes": ["", *(choice.value for choice in Outcome)],
        "of_copy": copy,
    }


def _result_filter(request: HttpRequest, dataset: Dataset) -> tuple[str, DatasetCopy | None]:
    """(outcome, copy) as the address asks; what is unknown is dropped."""
    outcome = request.GET.get("outcome", "")
    center_name = request.GET.get("of", "")
    copy = next((copy for copy in dataset.copies.all() if copy.data_center.name == center_name), None)
    return (outcome if outcome in {choice.value for choice in Outcome} else ""), copy
