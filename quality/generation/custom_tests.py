"""Tests that people write: saving and retiring them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from django.db import transaction

from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.checks import is_reserved_key
from quality.checks.custom import CUSTOM
from quality.domain.generation.definitions import DatasetFacts
from quality.domain.language import ExpressionError, understand
from quality.domain.slas import BadOverride
from quality.generation.definitions import save_definition
from quality.generation.query_rights import check_queries
from quality.models import QualityTest
from quality.planning import retired_units
from quality.state.dataset_facts import dataset_facts


def write_custom_test(
    dataset: Dataset,
    *,
    key: str,
    title: str,
    expression: str,
    actor: str,
    author: User | None = None,
    gating: bool = True,
    now: datetime,
) -> QualityTest:
    """A test that a person wrote, or a new version of it. Raises Refused with the place of what is wrong.

    `author`: whose rights its queries need; none where the operator wrote it.
    """
    _check_key(dataset, key)
    try:
        facts = dataset_facts(dataset)
        check_queries(understand(expression, facts.scope), dataset, author=author)
        definition = CUSTOM.definition_of(
            facts, key=key, title=title, expression=expression, because=f"written by {actor}", gating=gating
        )
    except BadOverride as problem:
        raise Refused.for_fields({"overrides": str(problem)}) from problem
    except ExpressionError as problem:
        raise Refused.for_fields({"expression": str(problem)}) from problem
    with transaction.atomic():
        return save_definition(dataset, facts, definition, now=now, generated=False)


def follow_slas(dataset: Dataset, facts: DatasetFacts, *, now: datetime) -> None:
    """What people wrote goes by the dataset's SLAs of today. A test that is no longer understood stays as it is; its results say so."""
    written = dataset.tests.filter(generated=False, planned=True, retired_at=None)
    for test in written.exclude(version__due_after=facts.slas.freshness).select_related("version"):
        assert test.version is not None
        with suppress(ExpressionError):
            definition = CUSTOM.definition_of(
                facts,
                key=test.key,
                title=test.title,
                expression=test.version.expression,
                because=test.version.because,
                gating=test.gating,
            )
            save_definition(dataset, facts, definition, now=now, generated=False)


def _check_key(dataset: Dataset, key: str) -> None:
    """What is a person's test already may be written anew, whatever it is called. Raises Refused."""
    existing_test = dataset.tests.filter(key=key).first()
    if existing_test is not None and existing_test.generated:
        raise Refused.for_fields({"key": f"`{key}` is a generated test of {dataset.name}: choose another key."})
    if is_reserved_key(key) and (existing_test is None or existing_test.retired_at is not None):
        raise Refused.for_fields({"key": f"`{key}` is kept for tests that are generated: choose another key."})


def retire_test(test: QualityTest, *, now: datetime) -> None:
    """Ends a test; its results stay."""
    retire_tests([test], now=now)


def retire_tests(tests: Iterable[QualityTest], *, now: datetime) -> None:
    for test in tests:
        with transaction.atomic():
            QualityTest.objects.filter(pk=test.pk, retired_at=None).update(retired_at=now)
            retired_units.stop_units(test, now=now)
