"""What can be done with a dataset's tests."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import find_dataset
from frontend.components.quality_test_rows import units_worth_rerunning
from frontend.ui import words
from frontend.ui.form_actions import perform_action
from incidents.record.health import live_units
from lakehub import wiring
from lakehub.accounts.models import User
from quality.planning.run_requests import request_units


@require_POST
def rerun(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        now = wiring.clock.now()
        units = live_units(now).filter(test__dataset=dataset)
        worth = units_worth_rerunning(units, now=now)
        requested_count = request_units(dataset, worth, tests=(), actor=actor.get_username(), now=now)
        if not requested_count:
            return f"The tests of {name} are being run already."
        return (
            f"{words.count(requested_count, 'test run')} of {name} {'is' if requested_count == 1 else 'are'} under way."
        )

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset", args=[name]))
