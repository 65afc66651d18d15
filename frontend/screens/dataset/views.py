"""The pages of one dataset: quality, incidents, data, ingestion, lineage."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.components import incident_rows as incident_query
from frontend.components.dataset_frame import dataset_frame
from frontend.components.quality_test_rows import CategoryGroup, rows_by_category
from frontend.results import history_plot
from frontend.screens.dataset import ingestion_queries, queries
from frontend.screens.dataset.capture_lag_query import capture_lags
from frontend.screens.dataset.capture_query import capture_state, history_places
from frontend.ui.feed_fields.hidden_columns import hidden_column_facts
from frontend.ui.feed_fields.options import feed_option_facts
from frontend.ui.live import render_live
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.runs.index_use.states import index_states
from ingestion.runs.replicas.states import MAX_PENDING, replica_states
from lakehub import wiring
from lakehub.accounts.permissions import can
from lakehub.catalog.models import Dataset

FRAGMENTS = {
    "tests": "screens/dataset/templates/tests.html",
    "running": "components/templates/running_list.html",
}


def quality(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = dataset_frame(request, name, "quality", now)
    groups = rows_by_category(dataset, context["health"], now=now)
    context |= {
        "groups": groups,
        "test_count": sum(len(group.rows) for group in groups),
        "opened": _opened_row(request, dataset, groups, now),
        "partitions": queries.partition_overview(dataset, context["health"], now=now),
        "commits": queries.recent_commits(dataset),
        "sums": queries.row_accounting(dataset, now=now),
        "past": queries.past_incidents(dataset, now=now),
        "neighbours": queries.neighbours(dataset, now=now),
        "skipped": dataset.skipped_checks.order_by("check_name"),
    }
    return render_live(request, "screens/dataset/templates/quality.html", context, FRAGMENTS)


def incidents(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = dataset_frame(request, name, "incidents", now)
    context["rows"] = incident_query.incident_rows(list(queries.past_incidents(dataset, now=now, limit=100)), now=now)
    return render(request, "screens/dataset/templates/incidents.html", context)


def data(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = dataset_frame(request, name, "data", now)
    context["partitions"] = queries.partition_overview(dataset, context["health"], now=now)
    context["hidden_facts"] = hidden_column_facts(dataset)
    context["histories"] = history_places(dataset)
    return render(request, "screens/dataset/templates/data.html", context)


def ingestion(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = dataset_frame(request, name, "ingestion", now)
    may = cache(lambda right: can(request.user, right, dataset.team))
    context |= {
        "runs": ingestion_queries.run_rows(dataset, may=may, now=now),
        "commits": queries.recent_commits(dataset, 30),
        "sums": queries.row_accounting(dataset, now=now),
        "waiting": ingestion_queries.waiting_runs(dataset),
        "finished": ingestion_queries.external_run_rows(dataset),
        "hooks": ingestion_queries.run_hooks_of(dataset),
        "may_see_rows": can(request.user, "see rows", dataset.team),
        "captured": (captured := capture_state(dataset)),
        "capture_lags": capture_lags(dataset, now=now) if captured else [],
        "feed_facts": feed_option_facts(dataset),
        "hidden_facts": hidden_column_facts(dataset),
        "indexes": index_states(dataset),
        "replicas": replica_states(dataset),
        "max_pending": MAX_PENDING,
    }
    return render_live(request, "screens/dataset/templates/ingestion.html", context, FRAGMENTS)


def lineage(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = dataset_frame(request, name, "lineage", now)
    context["neighbours"] = queries.neighbours(dataset, now=now)
    return render(request, "screens/dataset/templates/lineage.html", context)


def _opened_row(
    request: HttpRequest, dataset: Dataset, groups: list[CategoryGroup], now: datetime
) -> dict[str, Any] | None:
    """The test whose row is open (`?test=12-dc1&days=60`), with what it observed."""
    row = next((row for group in groups for row in group.rows if row.key == request.GET.get("test")), None)
    if row is None or row.unit is None:
        return None
    requested_days = parse_whole_number(request.GET.get("days", ""))
    days = requested_days if requested_days in history_plot.DAY_CHOICES else 60
    return {
        "key": row.key,
        "row": row,
        "days": days,
        "choices": history_plot.DAY_CHOICES,
        "plot": history_plot.plot_of_unit(dataset, row.unit, days=days, now=now),
    }
