"""What can be done with one test: run it now, retire it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend import words
from frontend.acting import act
from frontend.queries.tests import worth_a_rerun
from frontend.views.one_test import find_test
from incidents.rollup import live_units
from lakehub import wiring
from lakehub.accounts import audit
from lakehub.accounts.models import User
from lakehub.kernel.errors import Refused
from quality import generator
from quality.asking import asked_for


@require_POST
def run(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset, test = find_test(name, key)

    def use_case(actor: User) -> str:
        now = wiring.clock.now()
        worth = worth_a_rerun(live_units(now).filter(test=test), now=now)
        asked = asked_for(dataset, worth, tests=(key,), actor=actor.get_username(), now=now)
        if not asked:
            return "It is being run already, or has no data to run on yet."
        return f"{words.count(asked, 'run')} of {test.title} {'is' if asked == 1 else 'are'} under way."

    return act(request, "rerun", dataset, use_case, then=reverse("dataset-test", args=[name, key]))


@require_POST
def retire(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset, test = find_test(name, key)

    def use_case(actor: User) -> str:
        if test.generated:
            raise Refused(f"`{key}` is generated: change the metadata or the SLAs of {name} instead.")
        now = wiring.clock.now()
        generator.retire_test(test, now=now)
        audit.record(actor.get_username(), "retire test", f"dataset:{name}", now=now, key=key)
        return f"{test.title} is retired. Its results stay."

    return act(request, "onboard", dataset, use_case, then=reverse("dataset-test", args=[name, key]))
