"""Business metrics: the list, one with its tests, and registering one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.screens.metrics import metric_form
from frontend.screens.metrics.metric_form import MetricForm
from frontend.screens.metrics.queries import metric_rows
from frontend.ui.form_actions import actor_of, perform_action
from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can, require, teams_where
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from quality.generation import business_metrics
from quality.models import Metric

PAGE_SIZE = 25


def metric_list(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    metrics = Metric.objects.filter(dataset__offboarded_at=None).select_related("team", "dataset__team")
    paged = Paginator(metrics.prefetch_related("dataset__copies__data_center").order_by("name"), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    context = {
        "now": now,
        "page": paged,
        "rows": metric_rows(list(paged), now=now),
        "may_write": Team.objects.filter(teams_where(request.user, "onboard")).exists(),
    }
    return render(request, "screens/metrics/templates/list.html", context)


def metric_page(request: HttpRequest, name: str) -> HttpResponse:
    metric = _find_metric(name)
    now = wiring.clock.now()
    context = {
        "now": now,
        "metric": metric,
        "row": metric_rows([metric], now=now)[0],
        "may_write": can(actor_of(request), "onboard", metric.dataset.team),
    }
    return render(request, "screens/metrics/templates/page.html", context)


def new_metric(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _form_page(request, metric_form.blank_metric_form(request.GET.get("dataset", "")))
    return _save(request, metric_form.metric_form_from_post(request.POST))


def edit_metric(request: HttpRequest, name: str) -> HttpResponse:
    metric = _find_metric(name)
    require(actor_of(request), "onboard", metric.dataset.team)
    if request.method != "POST":
        return _form_page(request, metric_form.form_of_metric(metric), metric)
    return _save(
        request, metric_form.metric_form_from_post(request.POST, name=name, dataset=metric.dataset.name), metric
    )


@require_POST
def remove_metric(request: HttpRequest, name: str) -> HttpResponse:
    metric = _find_metric(name)

    def use_case(actor: User) -> str:
        business_metrics.remove_metric(metric, actor=actor.get_username(), now=wiring.clock.now())
        return f"{name} is let go. The results of its tests stay."

    return perform_action(request, "onboard", metric.dataset, use_case, then=reverse("metric-list"))


def _find_metric(name: str) -> Metric:
    try:
        return business_metrics.metric_named(name)
    except NotFound as missing:
        raise Http404(str(missing)) from missing


def _save(request: HttpRequest, draft: MetricForm, metric: Metric | None = None) -> HttpResponse:
    actor = actor_of(request)
    try:
        dataset = metric.dataset if metric else live_dataset(draft.values["dataset"])
        require(actor, "onboard", dataset.team)
        if metric is None and Metric.objects.filter(name=draft.values["name"]).exists():
            raise Conflict(
                f"There is a metric `{draft.values['name']}` already: change that one, or choose another name."
            )
        definition = metric_form.metric_definition(draft)
        business_metrics.set_metric(
            dataset, definition, actor=actor.get_username(), author=actor, now=wiring.clock.now()
        )
    except Refused as refused:
        return _form_page(request, replace(draft, errors=refused.fields or {"name": str(refused)}), metric)
    except NotFound as missing:
        return _form_page(request, replace(draft, errors={"dataset": str(missing)}), metric)
    except Conflict as conflict:
        return _form_page(request, replace(draft, errors={"name": str(conflict)}), metric)
    messages.info(request, f"{definition.name} is saved; its tests run over the data that is due.")
    return redirect("metric-page", definition.name)


def _form_page(request: HttpRequest, draft: MetricForm, metric: Metric | None = None) -> HttpResponse:
    own_datasets = Dataset.objects.filter(
        offboarded_at=None, team__in=Team.objects.filter(teams_where(request.user, "onboard"))
    )
    context: dict[str, Any] = {
        "now": wiring.clock.now(),
        "draft": draft,
        "metric": metric,
        "datasets": list(own_datasets.order_by("name").values_list("name", flat=True)),
    }
    return render(request, "screens/metrics/templates/form.html", context, status=422 if draft.errors else 200)
