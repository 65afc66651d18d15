"""Following a dataset. Everybody who is signed in may, for themselves."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import find_dataset
from frontend.ui.form_actions import actor_of, next_url_of
from incidents.notifications import subscriptions
from lakehub import wiring


@require_POST
def follow(request: HttpRequest, name: str) -> HttpResponse:
    """`follow=1`: from now on; else no more."""
    dataset, user = find_dataset(name), actor_of(request)
    if request.POST.get("follow") == "1":
        subscriptions.subscribe(dataset, user=user, now=wiring.clock.now())
        where = f"at {user.email}" if user.email else "nowhere: your account has no e-mail address"
        messages.info(request, f"You follow {name}: new incidents, their ETA and their end reach you {where}.")
    else:
        subscriptions.unsubscribe(dataset, user=user, now=wiring.clock.now())
        messages.info(request, f"You follow {name} no more.")
    return redirect(next_url_of(request) or reverse("dataset", args=[name]))
