"""Definitions from what people declared: the rules of a dataset's columns and rows."""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.generation.rules import BadRule, Rule


def definitions_of_rules(
    check: str, dataset: DatasetFacts, *, gating: bool = True
) -> Iterator[Definition | InapplicableCheck]:
    """The tests of those rules that are this check's; one that makes no sense any more costs no other."""
    for rule in dataset.rules:
        try:
            if rule.check == check:
                yield _definition_of(rule, dataset, gating=gating)
        except BadRule as problem:
            yield InapplicableCheck(check, f"{rule.key}: {problem}")


def _definition_of(rule: Rule, dataset: DatasetFacts, *, gating: bool) -> Definition:
    return Definition(
        key=rule.key,
        title=rule.title,
        category="others",
        check=rule.check,
        expression=rule.expression,
        sustain=dataset.slas.sustain,
        cadence=dataset.cadence,
        because=f"tier {dataset.tier}, rule {rule.key.removeprefix('rule:')}",
        gating=gating,
    )
