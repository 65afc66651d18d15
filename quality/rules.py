"""What must hold of columns: setting rules and taking them back. The tests of the dataset follow at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from lakehub.accounts import audit
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality import generator
from quality.described import described
from quality.domain.expression import ExpressionError, understand
from quality.domain.rules import BadRule, Rule
from quality.domain.tiers import BadOverride
from quality.models import ColumnRule


def put(
    dataset: Dataset,
    *,
    kind: str,
    column: str = "",
    parameters: Mapping[str, Any] | None = None,
    by: str = "",
    enabled: bool = True,
    actor: str,
    now: datetime,
) -> ColumnRule:
    """The rule of this kind for this column, new or changed. Raises Refused with what is wrong, by field."""
    rule = Rule(kind, column, parameters or {}, by)
    check(dataset, rule)
    with transaction.atomic():
        row, _ = ColumnRule.objects.update_or_create(
            dataset=dataset,
            kind=kind,
            column=column,
            by=by,
            defaults={"parameters": dict(rule.parameters), "enabled": enabled, "set_by": actor, "set_at": now},
        )
        audit.record(actor, "set rule", f"dataset:{dataset.name}", now=now, rule=rule.key, enabled=enabled)
        regenerate(dataset, now=now)
    return row


def remove(row: ColumnRule, *, actor: str, now: datetime) -> None:
    """Its test is retired; the results stay."""
    with transaction.atomic():
        dataset, key = row.dataset, row.rule.key
        row.delete()
        audit.record(actor, "remove rule", f"dataset:{dataset.name}", now=now, rule=key)
        regenerate(dataset, now=now)


def rule_of(dataset: Dataset, number: int) -> ColumnRule:
    """Raises NotFound."""
    found = dataset.column_rules.select_related("dataset__team").filter(pk=number).first()
    if found is None:
        raise NotFound(f"{dataset.name} has no rule {number}: see the list of its rules.")
    return found


def check(dataset: Dataset, rule: Rule) -> str:
    """The expression that the rule becomes. Raises Refused with what is wrong, by field."""
    known = [column["name"] for column in dataset.columns]
    for field, column in (("column", rule.column), ("by", rule.by)):
        if column and known and column not in known:
            raise Refused.because({field: f"{dataset.name} has no column `{column}`.{did_you_mean(column, known)}"})
    try:
        understand(rule.expression, described(dataset).scope)
    except BadRule as problem:
        raise Refused.because({problem.field: str(problem)}) from problem
    except ExpressionError as problem:
        raise Refused.because({"parameters": str(problem)}) from problem
    except BadOverride as problem:
        raise Refused.because({"overrides": str(problem)}) from problem
    return rule.expression


def regenerate(dataset: Dataset, *, now: datetime) -> None:
    """A new version of what is known of the dataset, and its tests at once."""
    Dataset.objects.filter(pk=dataset.pk).update(metadata_version=F("metadata_version") + 1)
    dataset.refresh_from_db(fields=["metadata_version"])
    generator.generate(dataset, now=now)
