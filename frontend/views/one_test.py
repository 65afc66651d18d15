"""One test of a dataset: what it asks, how it went, what it asked before."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from frontend.acting import actor_of
from frontend.backtesting import Tried, tried
from frontend.export import as_csv
from frontend.expressions import asked
from frontend.numbers import whole
from frontend.queries import history, one_test
from frontend.queries.reasons import partition_of
from frontend.queries.tests import TestRow, test_rows
from frontend.views.dataset import find
from incidents.domain.rollup import heaviest
from incidents.rollup import health_of
from lakehub import wiring
from lakehub.accounts.permissions import can
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.suggest import did_you_mean
from quality.models import Test
from quality.versions import history as history_of

VERSIONS = 20


def page(request: HttpRequest, name: str, key: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, test = find_test(name, key)
    health = health_of([dataset], now=now)[dataset.pk]
    rows = test_rows(dataset, [test], health, now=now)
    bad, bad_units = one_test.bad_units(test, dataset, now=now)
    measures, parameters = asked(test.version.flattened) if test.version else ((), [])
    context = {
        "now": now,
        "dataset": dataset,
        "test": test,
        "state": "none" if test.retired_at else heaviest(row.state for row in rows),
        "rows": rows,
        "opened": _opened(request, dataset, rows, now),
        "bad": bad,
        "bad_units": bad_units,
        "versions": history_of(test)[:VERSIONS],
        "runs": one_test.runs(test.version) if test.version else "",
        "measures": measures,
        "ruled": key.startswith("rule:"),
        "metric": key.removeprefix("metric:").partition(".")[0] if key.startswith("metric:") else "",
        "parameters": parameters,
        **_results(request, dataset, test),
        **(may := _may(request, dataset, test)),
        "tried": _tried(request, dataset, key, now) if may["may_run"] and "backtest" in request.GET else None,
    }
    return render(request, "frontend/test/page.html", context)


def _tried(request: HttpRequest, dataset: Dataset, key: str, now: datetime) -> Tried:
    return tried(dataset, test=key, person=actor_of(request).get_username(), now=now)


def results_csv(request: HttpRequest, name: str, key: str) -> StreamingHttpResponse:
    """What the results table shows, without its pages."""
    dataset, test = find_test(name, key)
    outcome, copy = _filter(request, dataset)
    return as_csv(one_test.results(test, copy, outcome), dataset, f"{name}.{key}")


def find_test(name: str, key: str) -> tuple[Dataset, Test]:
    """The test, retired or not. Raises Http404 with the nearest key."""
    dataset = find(name)
    test = dataset.tests.filter(key=key).select_related("version").first()
    if test is None:
        known = dataset.tests.filter(retired_at=None).values_list("key", flat=True)
        raise Http404(f"{name} has no test `{key}`.{did_you_mean(key, known)}")
    test.dataset = dataset
    return dataset, test


def _may(request: HttpRequest, dataset: Dataset, test: Test) -> dict[str, bool]:
    """What this person may do with it; nothing where it has ended."""
    user = actor_of(request)
    live = test.retired_at is None and dataset.offboarded_at is None
    return {
        "may_run": live and can(user, "rerun", dataset.team),
        "may_write": live and not test.generated and can(user, "onboard", dataset.team),
    }


def _opened(request: HttpRequest, dataset: Dataset, rows: list[TestRow], now: datetime) -> dict[str, Any] | None:
    """The copy whose history is shown: the one asked for, else the first of those that are worst."""
    ran = [row for row in rows if row.unit is not None and row.copy is not None]
    if not ran:
        return None
    wanted = request.GET.get("dc")
    row = next((row for row in ran if row.copy and row.copy.data_center.name == wanted), None)
    row = row or max(ran, key=lambda one: one.bad)
    days = whole(request.GET.get("days", ""))
    days = days if days in history.DAYS else 60
    return {
        "row": row,
        "data": partition_of(row.unit) if row.unit else "",
        "days": days,
        "choices": history.DAYS,
        "plot": history.of_row(dataset, row.unit, days=days, now=now) if row.unit else None,
    }


def _results(request: HttpRequest, dataset: Dataset, test: Test) -> dict[str, Any]:
    outcome, copy = _filter(request, dataset)
    paged = Paginator(one_test.results(test, copy, outcome), one_test.RESULTS).get_page(request.GET.get("page"))
    return {
        "results": paged,
        "result_rows": [one_test.result_row(one, dataset) for one in paged],
        "outcome": outcome,
        "outcomes": ["", *(one.value for one in Outcome)],
        "of_copy": copy,
    }


def _filter(request: HttpRequest, dataset: Dataset) -> tuple[str, DatasetCopy | None]:
    """(outcome, copy) as the address asks; what is unknown is dropped."""
    outcome = request.GET.get("outcome", "")
    wanted = request.GET.get("of", "")
    copy = next((copy for copy in dataset.copies.all() if copy.data_center.name == wanted), None)
    return (outcome if outcome in {one.value for one in Outcome} else ""), copy
