"""The description of the REST API is valid, and true: every operation, as every caller, answers nothing else.

`LAKEHUB_SCHEMATHESIS=full python -m pytest tests/contracts/test_openapi.py` asks each of them 50 times, and more widely;
a number above 5 in place of `full` asks so often. Without it each caller asks each operation once, of four requests in turn.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from pytest_django.plugin import DjangoDbBlocker
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests import callers
from tests.callers import CALLERS, World

ASKED_FOR = os.environ.get("LAKEHUB_SCHEMATHESIS", "4")
EXAMPLES = 50 if ASKED_FOR == "full" else int(ASKED_FOR)
FULL = EXAMPLES > 5
ASKING = (
    CALLERS if FULL else tuple(name for name in CALLERS if name not in ("staff", "viewer's token", "revoked token"))
)
EXCLUDED: dict[str, str] = {}
"""Operations that are not asked, and why."""
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
THERE = {
    "dataset": "flights",
    "team": callers.TEAM,
    "dc": "dc1",
    "data_center": "dc1",
    "connection": "ops",
    "category": "duplicates",
    "from": "2026-11-14",
    "to": "2026-11-17",
    "expression": "rows(this) > 0",
    "action": "acknowledge",
    "assignee": "on_call",
    "scopes": ["gate:read"],
}
"""By the name of a parameter or a field, what is there: in half of what is asked, so that it gets past the first look."""


@cache
def described() -> dict[str, Any]:
    schema_json: dict[str, Any] = json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True)))
    for name, schema in schema_json["components"]["schemas"].items():
        if "properties" in schema and not name.endswith("Request"):
            # No answer has a field that is not described: it would be one that nobody meant to show.
            schema.setdefault("additionalProperties", False)
    return schema_json


@cache
def operations() -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(described())
    described_operations = (result.ok() for result in schema.get_all_operations())
    return {f"{operation.method.upper()} {operation.path}": operation for operation in described_operations}


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Built once in a transaction that is never committed; what a request does is undone at once."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield callers.build()
        transaction.set_rollback(True)


def test_it_is_valid_openapi() -> None:
    assert described()["openapi"].startswith("3.1")
    assert [str(error) for error in OpenAPIV31SpecValidator(described()).iter_errors()] == []


def test_each_caller_is_known_over_wsgi(world: World, db: None) -> None:
    """Else all of them would be refused, as described."""
    case = operations()["GET /api/v1/tiers"].Case()
    for name in CALLERS:
        answer = case.call(
            app=get_wsgi_application(), headers=world.callers[name].headers, cookies=world.callers[name].cookies
        )
        refused = {"anonymous": 401, "expired token": 401, "revoked token": 401, "token without the scope": 403}
        assert answer.status_code == refused.get(name, 200), name


def test_what_is_excluded_is_there() -> None:
    assert set(EXCLUDED) <= set(operations())


@pytest.mark.parametrize("label", sorted(set(operations()) - set(EXCLUDED)))
def test_each_caller_is_answered_as_described(world: World, db: None, label: str) -> None:
    app, cases = get_wsgi_application(), _cases(label, world)
    for turn, name in enumerate(ASKING):
        caller = world.callers[name]
        for case in cases if FULL else (cases[turn % len(cases)],):
            with transaction.atomic():
                answer = case.call(app=app, headers=caller.headers, cookies=caller.cookies)
                transaction.set_rollback(True)
            case.validate_response(answer, checks=CHECKS)


def _cases(label: str, world: World) -> list[Case]:
    """So many requests to one operation: half as they should be, half wrong in one place; half of each about what is there."""
    operation, cases = operations()[label], []
    modes = [operation.as_strategy(mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]

    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(case=st.one_of(modes), real=st.booleans())
    def collect(case: Case, real: bool) -> None:
        cases.append(_about_what_is_there(case, world) if real or not FULL else case)

    collect()
    return cases


def _about_what_is_there(case: Case, world: World) -> Case:
    for pattern, thing in world.places.items():
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern)
        if path in case.operation.path:
            case.path_parameters[re.findall(r"{(\w+)}", path)[-1]] = thing
    for part in (case.query, case.body):
        if isinstance(part, dict):
            part.update({name: value for name, value in THERE.items() if name in part})
    return case
