"""A query that a person writes answers with whatever rows it is made to: who writes it must be allowed to see the rows that it reads."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models.functions import Lower

from lakehub.accounts.models import Role, User
from lakehub.accounts.permissions import ROLES_BY_ACTION, can
from lakehub.catalog.models import Dataset, LineageEdge
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
    if author is None:
        return
    wanted = {name.lower() for name in names} - {dataset.name.lower()}
    others = (
        Dataset.objects.annotate(small=Lower("name")).filter(small__in=wanted) if wanted else Dataset.objects.none()
    )
    for other in others.select_related("team").order_by("name"):
        if not can(author, "see rows", other.team):
            roles = " or ".join(Role(role).label.lower() for role in ROLES_BY_ACTION["see rows"])
            raise Refused.for_fields(
                {
                    field: f"The query reads rows of {other.name}: to write it you need to be {roles} of team {other.team.name}. "
                    f"Counts such as rows({other.name}) are for everybody."
                }
            )
