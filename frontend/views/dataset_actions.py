"""What can be done with a dataset's tests."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend import words
from frontend.acting import act
from frontend.queries.tests import worth_a_rerun
from frontend.views.dataset import find
from incidents.rollup import live_units
from lakehub import wiring
from lakehub.accounts.models import User
from quality.asking import asked_for


@require_POST
def rerun(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        now = wiring.clock.now()
        units = live_units(now).filter(test__dataset=dataset)
        worth = worth_a_rerun(units, now=now)
        asked = asked_for(dataset, worth, tests=(), actor=actor.get_username(), now=now)
        if not asked:
            return f"The tests of {name} are being run already."
        return f"{words.count(asked, 'test run')} of {name} {'is' if asked == 1 else 'are'} under way."

    return act(request, "rerun", dataset, use_case, then=reverse("dataset", args=[name]))
