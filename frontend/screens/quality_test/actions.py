"""What can be done with one test: run it now, retire it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.quality_test_rows import units_worth_rerunning
from frontend.screens.quality_test.views import find_test
from frontend.ui import words
from frontend.ui.form_actions import perform_action
from incidents.record.health import live_units
from lakehub import wiring
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import User
from lakehub.kernel.errors import Refused
from quality.generation import custom_tests
from quality.planning.run_requests import request_units


@require_POST
def run_now(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset, test = find_test(name, key)

    def use_case(actor: User) -> str:
        now = wiring.clock.now()
        worth = units_worth_rerunning(live_units(now).filter(test=test), now=now)
        requested_count = request_units(dataset, worth, tests=(key,), actor=actor.get_username(), now=now)
        if not requested_count:
            return "It is being run already, or has no data to run on yet."
        return f"{words.count(requested_count, 'run')} of {test.title} {'is' if requested_count == 1 else 'are'} under way."

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset-test", args=[name, key]))


@require_POST
def retire(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset, test = find_test(name, key)

    def use_case(actor: User) -> str:
        if test.generated:
            raise Refused(f"`{key}` is generated: change the metadata or the SLAs of {name} instead.")
        now = wiring.clock.now()
        custom_tests.retire_test(test, now=now)
        audit_log.record(actor.get_username(), "retire test", f"dataset:{name}", now=now, key=key)
        return f"{test.title} is retired. Its results stay."

    return perform_action(request, "onboard", dataset, use_case, then=reverse("dataset-test", args=[name, key]))
