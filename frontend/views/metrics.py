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

from frontend import declaring
from frontend.acting import act, actor_of
from frontend.declaring import MetricDraft
from frontend.queries.metrics import metric_rows
from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can, require, teams_where
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from quality import metrics
from quality.models import Metric

PAGE = 25


def listing(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    known = Metric.objects.filter(dataset__offboarded_at=None).select_related("team", "dataset__team")
    paged = Paginator(known.prefetch_related("dataset__copies__data_center").order_by("name"), PAGE).get_page(
        request.GET.get("page")
    )
    context = {
        "now": now,
        "page": paged,
        "rows": metric_rows(list(paged), now=now),
        "may_write": Team.objects.filter(teams_where(request.user, "onboard")).exists(),
    }
    return render(request, "frontend/metric/list.html", context)


def one(request: HttpRequest, name: str) -> HttpResponse:
    metric = _find(name)
    now = wiring.clock.now()
    context = {
        "now": now,
        "metric": metric,
        "row": metric_rows([metric], now=now)[0],
        "may_write": can(actor_of(request), "onboard", metric.dataset.team),
    }
    return render(request, "frontend/metric/page.html", context)


def new(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _form(request, declaring.blank_metric(request.GET.get("dataset", "")))
    return _said(request, declaring.metric_typed(request.POST))


def edit(request: HttpRequest, name: str) -> HttpResponse:
    metric = _find(name)
    require(actor_of(request), "onboard", metric.dataset.team)
    if request.method != "POST":
        return _form(request, declaring.of_metric(metric), metric)
    return _said(request, declaring.metric_typed(request.POST, name=name, dataset=metric.dataset.name), metric)


@require_POST
def remove(request: HttpRequest, name: str) -> HttpResponse:
    metric = _find(name)

    def use_case(actor: User) -> str:
        metrics.remove(metric, actor=actor.get_username(), now=wiring.clock.now())
        return f"{name} is let go. The results of its tests stay."

    return act(request, "onboard", metric.dataset, use_case, then=reverse("metric-list"))


def _find(name: str) -> Metric:
    try:
        return metrics.metric_named(name)
    except NotFound as missing:
        raise Http404(str(missing)) from missing


def _said(request: HttpRequest, draft: MetricDraft, metric: Metric | None = None) -> HttpResponse:
    actor = actor_of(request)
    try:
        dataset = metric.dataset if metric else live_dataset(draft.values["dataset"])
        require(actor, "onboard", dataset.team)
        if metric is None and Metric.objects.filter(name=draft.values["name"]).exists():
            raise Conflict(
                f"There is a metric `{draft.values['name']}` already: change that one, or choose another name."
            )
        said = declaring.metric_said(draft)
        metrics.put(dataset, said, actor=actor.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _form(request, replace(draft, errors=refused.fields or {"name": str(refused)}), metric)
    except NotFound as missing:
        return _form(request, replace(draft, errors={"dataset": str(missing)}), metric)
    except Conflict as conflict:
        return _form(request, replace(draft, errors={"name": str(conflict)}), metric)
    messages.info(request, f"{said.name} is saved; its tests run over the data that is due.")
    return redirect("metric-page", said.name)


def _form(request: HttpRequest, draft: MetricDraft, metric: Metric | None = None) -> HttpResponse:
    mine = Dataset.objects.filter(
        offboarded_at=None, team__in=Team.objects.filter(teams_where(request.user, "onboard"))
    )
    context: dict[str, Any] = {
        "now": wiring.clock.now(),
        "draft": draft,
        "metric": metric,
        "datasets": list(mine.order_by("name").values_list("name", flat=True)),
    }
    return render(request, "frontend/metric/write.html", context, status=422 if draft.errors else 200)
