"""What must hold of columns: setting rules and taking them back. The tests of the dataset follow at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.domain.generation.rules import BadRule, Rule
from quality.domain.language import ExpressionError, understand
from quality.domain.slas import BadOverride
from quality.generation import generate
from quality.models import ColumnRule
from quality.state.dataset_facts import dataset_facts


def set_rule(
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
    check_rule(dataset, rule)
    with transaction.atomic():
        row, _ = ColumnRule.objects.update_or_create(
            dataset=dataset,
            kind=kind,
            column=column,
            by=by,
            defaults={"parameters": dict(rule.parameters), "enabled": enabled, "set_by": actor, "set_at": now},
        )
        audit_log.record(actor, "set rule", f"dataset:{dataset.name}", now=now, rule=rule.key, enabled=enabled)
        regenerate(dataset, now=now)
    return row


def remove_rule(row: ColumnRule, *, actor: str, now: datetime) -> None:
    """Its test is retired; the results stay."""
    with transaction.atomic():
        dataset, key = row.dataset, row.rule.key
        row.delete()
        audit_log.record(actor, "remove rule", f"dataset:{dataset.name}", now=now, rule=key)
        regenerate(dataset, now=now)


def rule_of(dataset: Dataset, number: int) -> ColumnRule:
    """Raises NotFound."""
    row = dataset.column_rules.select_related("dataset__team").filter(pk=number).first()
    if row is None:
        raise NotFound(f"{dataset.name} has no rule {number}: see the list of its rules.")
    return row


def check_rule(dataset: Dataset, rule: Rule) -> str:
    """The expression that the rule becomes. Raises Refused with what is wrong, by field."""
    column_names = [column["name"] for column in dataset.columns]
    for field, column in (("column", rule.column), ("by", rule.by)):
        if column and column_names and column not in column_names:
            raise Refused.for_fields(
                {field: f"{dataset.name} has no column `{column}`.{did_you_mean(column, column_names)}"}
            )
    try:
        understand(rule.expression, dataset_facts(dataset).scope)
    except BadRule as problem:
        raise Refused.for_fields({problem.field: str(problem)}) from problem
    except ExpressionError as problem:
        raise Refused.for_fields({"parameters": str(problem)}) from problem
    except BadOverride as problem:
        raise Refused.for_fields({"overrides": str(problem)}) from problem
    return rule.expression


def regenerate(dataset: Dataset, *, now: datetime) -> None:
    """A new version of what is known of the dataset, and its tests at once."""
    Dataset.objects.filter(pk=dataset.pk).update(metadata_version=F("metadata_version") + 1)
    dataset.refresh_from_db(fields=["metadata_version"])
    generate.generate_tests(dataset, now=now)
