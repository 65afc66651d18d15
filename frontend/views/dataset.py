"""The pages of one dataset: quality, incidents, data, ingestion, lineage."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.acting import actor_of
from frontend.live import render_live
from frontend.numbers import whole
from frontend.queries import dataset as query
from frontend.queries import history, pipelines
from frontend.queries import incidents as incident_query
from frontend.queries.behind import by_copy
from frontend.queries.reasons import reason_line, units_behind
from frontend.queries.tests import Group, test_groups
from incidents.models import Subscription
from incidents.rollup import Health, health_of
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can
from lakehub.catalog.models import Dataset
from lakehub.kernel.suggest import did_you_mean

FRAGMENTS = {"tests": "frontend/dataset/tests.html"}
TABS = (
    ("quality", "Quality"),
    ("rules", "Rules"),
    ("incidents", "Incidents"),
    ("data", "Data"),
    ("ingestion", "Ingestion"),
    ("lineage", "Lineage"),
    ("alerts", "Alerts"),
    ("settings", "Settings"),
)


def quality(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = frame(request, name, "quality", now)
    groups = test_groups(dataset, context["health"], now=now)
    context |= {
        "groups": groups,
        "test_count": sum(len(group.rows) for group in groups),
        "opened": _opened(request, dataset, groups, now),
        "partitions": query.partitions(dataset, context["health"], now=now),
        "commits": query.commits(dataset),
        "sums": query.sums(dataset, now=now),
        "past": query.past_incidents(dataset, now=now),
        "neighbours": query.neighbours(dataset, now=now),
        "skipped": dataset.skipped_checks.order_by("check_name"),
    }
    return render_live(request, "frontend/dataset/quality.html", context, FRAGMENTS)


def incidents(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = frame(request, name, "incidents", now)
    context["rows"] = incident_query.rows(list(query.past_incidents(dataset, now=now, limit=100)), now=now)
    return render(request, "frontend/dataset/incidents.html", context)


def data(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = frame(request, name, "data", now)
    context["partitions"] = query.partitions(dataset, context["health"], now=now)
    return render(request, "frontend/dataset/data.html", context)


def ingestion(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = frame(request, name, "ingestion", now)
    context |= {
        "runs": query.runs(dataset),
        "commits": query.commits(dataset, 30),
        "sums": query.sums(dataset, now=now),
        "waiting": pipelines.waiting(dataset),
        "finished": pipelines.finished(dataset),
        "hooks": pipelines.hooks(dataset),
    }
    return render(request, "frontend/dataset/ingestion.html", context)


def lineage(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = frame(request, name, "lineage", now)
    context["neighbours"] = query.neighbours(dataset, now=now)
    return render(request, "frontend/dataset/lineage.html", context)


def find(name: str) -> Dataset:
    """The dataset, off-boarded or not. Raises Http404 with the nearest name."""
    found = query.dataset_named(name).first()
    if found is None:
        known = Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)[:1000]
        raise Http404(f"There is no dataset `{name}`.{did_you_mean(name, known)}")
    return found


def frame(request: HttpRequest, name: str, tab: str, now: datetime) -> tuple[Dataset, dict[str, Any]]:
    """What every tab shows: the verdict, one sentence of why, the facts."""
    dataset = find(name)
    health = health_of([dataset], now=now)[dataset.pk]
    user = request.user
    context = {
        "now": now,
        "dataset": dataset,
        "health": health,
        "why": _why(health, now),
        "lags": by_copy(dataset),
        "tab": tab,
        "tabs": TABS,
        "running": query.running(dataset),
        "followed": Subscription.objects.filter(user=actor_of(request), dataset=dataset).exists(),
        "may_rerun": isinstance(user, User) and can(user, "rerun", dataset.team),
        "may_write": dataset.offboarded_at is None and can(user, "onboard", dataset.team),
    }
    return dataset, context


def _why(health: Health, now: datetime) -> str:
    worst = health.worst
    return reason_line(worst, units_behind([worst]), now=now) if worst else ""


def _opened(request: HttpRequest, dataset: Dataset, groups: list[Group], now: datetime) -> dict[str, Any] | None:
    """The test whose row is open (`?test=12-dc1&days=60`), with what it observed."""
    row = next((row for group in groups for row in group.rows if row.key == request.GET.get("test")), None)
    if row is None or row.unit is None:
        return None
    asked = whole(request.GET.get("days", ""))
    days = asked if asked in history.DAYS else 60
    return {
        "key": row.key,
        "row": row,
        "days": days,
        "choices": history.DAYS,
        "plot": history.of_row(dataset, row.unit, days=days, now=now),
    }
