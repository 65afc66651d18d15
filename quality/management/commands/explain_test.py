"""`manage.py explain_test flights 'duplicates(this) < 0.1%'`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound
from quality.domain.evaluation.evaluate import asks_of_expression
from quality.domain.language import ExpressionError, flattened, formula, readable, understand
from quality.domain.slas import BadOverride
from quality.state.dataset_facts import dataset_facts

MAX_MEASURES_SHOWN = 12


class Command(BaseCommand):
    help = "Says how an expression is understood for a dataset: its stored form and what would be measured."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("expression")

    def handle(self, *, dataset: str, expression: str, **_: Any) -> None:
        try:
            understood = understand(expression, dataset_facts(live_dataset(dataset)).scope)
        except (NotFound, ExpressionError, BadOverride) as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"readable  {readable(understood)}")
        self.stdout.write(f"stored    {flattened(understood)}")
        measured = asks_of_expression(understood)
        for ask in measured[:MAX_MEASURES_SHOWN]:
            self.stdout.write(f"measures  {ask.measure} of {formula(ask.table)}, {ask.reach}")
        if len(measured) > MAX_MEASURES_SHOWN:
            self.stdout.write(f"measures  {len(measured) - MAX_MEASURES_SHOWN} more, in earlier partitions")
