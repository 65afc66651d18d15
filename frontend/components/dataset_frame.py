"""The frame of a dataset's pages: its header, its tabs and the reason under its verdict."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest

from frontend.components import datasets
from frontend.components.freshness_lag import lag_by_copy
from frontend.results.reasons import cell_reason, example_units
from frontend.ui.form_actions import actor_of
from incidents.models import Subscription
from incidents.record.health import DatasetHealth, health_of
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can
from lakehub.catalog.models import Dataset
from lakehub.kernel.suggest import did_you_mean

TABS = (
    ("quality", "Quality"),
    ("rules", "Rules"),
    ("incidents", "Incidents"),
    ("data", "Data"),
    ("pipeline", "Pipeline"),
    ("ingestion", "Ingestion"),
    ("lineage", "Lineage"),
    ("alerts", "Alerts"),
    ("settings", "Settings"),
)


def _tabs_of(dataset: Dataset) -> list[tuple[str, str]]:
    return [tab for tab in TABS if tab[0] != "pipeline" or dataset.is_modelled]


def find_dataset(name: str) -> Dataset:
    """The dataset, off-boarded or not. Raises Http404 with the nearest name."""
    dataset = datasets.dataset_named(name).first()
    if dataset is None:
        live_names = Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)[:1000]
        raise Http404(f"There is no dataset `{name}`.{did_you_mean(name, live_names)}")
    return dataset


def dataset_frame(request: HttpRequest, name: str, tab: str, now: datetime) -> tuple[Dataset, dict[str, Any]]:
    """What every tab shows: the verdict, one sentence of why, the facts."""
    dataset = find_dataset(name)
    health = health_of([dataset], now=now)[dataset.pk]
    user = request.user
    context = {
        "now": now,
        "dataset": dataset,
        "health": health,
        "why": _verdict_reason(health, now),
        "lags": lag_by_copy(dataset),
        "tab": tab,
        "tabs": _tabs_of(dataset),
        "running": datasets.live_runs(dataset, now=now),
        "followed": Subscription.objects.filter(user=actor_of(request), dataset=dataset).exists(),
        "may_rerun": isinstance(user, User) and can(user, "rerun", dataset.team),
        "may_write": dataset.offboarded_at is None and can(user, "onboard", dataset.team),
    }
    return dataset, context


def _verdict_reason(health: DatasetHealth, now: datetime) -> str:
    worst = health.worst
    return cell_reason(worst, example_units([worst]), now=now) if worst else ""
