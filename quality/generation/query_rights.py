"""A query that a person writes answers with whatever rows it is made to: who writes it must be allowed to see the rows that it reads."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models.functions import Lower

from lakehub.accounts.models import User
from lakehub.accounts.permissions import role_names
from lakehub.catalog.models import Dataset, LineageEdge
from lakehub.catalog.request_permissions import without_rows
from lakehub.kernel.errors import Refused
from quality.domain.language import THIS, Expression, asks_of, function_calls
from quality.domain.language.scope import UPSTREAM


def check_queries(expression: Expression, dataset: Dataset, *, author: User | None) -> None:
    """Of a test or backtest of `dataset`; without an author it is the operator's. Raises Refused."""
    queries = [ask for call in function_calls(expression) for ask in asks_of(call) if ask.measure.is_query]
    names = {name.dataset for ask in queries for name in (ask.table, *ask.measure.other_tables)}
    if UPSTREAM in names and not dataset.is_loaded_from_connection:
        edges = LineageEdge.compared().filter(downstream=dataset)
        names |= set(edges.values_list("upstream__name", flat=True))
    check_may_read(names - {THIS, UPSTREAM}, dataset, author=author, field="expression")


def check_may_read(names: Iterable[str], dataset: Dataset, *, author: User | None, field: str) -> None:
    """The datasets that a query of `dataset` names. Raises Refused, for the field."""
    wanted = {name.lower() for name in names} - {dataset.name.lower()}
    if author is None or not wanted:
        return
    others = Dataset.objects.annotate(small=Lower("name")).filter(small__in=wanted)
    if hidden := without_rows(author, others.select_related("team").order_by("name")):
        raise Refused.for_fields(
            {
                field: f"The query reads rows of {hidden[0].name}: to write it you need to be {role_names('see rows')} of team {hidden[0].team.name}. "
                f"Counts such as rows({hidden[0].name}) are for everybody."
            }
        )
