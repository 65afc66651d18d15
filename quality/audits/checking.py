"""Which tests can be asked of rows that are not committed yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from quality.domain.language import THIS, Expression, ExpressionError, Scope, asks_of, function_calls, understand
from quality.domain.language.measures import ROWS, Ask, Reach
from quality.domain.language.parameters import PARAMETERS
from quality.domain.language.type_checker import window_function_calls
from quality.engines.sql.scan_reader import FUSED_KINDS

_LATEST = "latest"
"""Of event times, which is about the clock."""
MEASURED_KINDS = FUSED_KINDS - {_LATEST}


def audit_of(
    test: str, columns: Collection[str], inputs: Mapping[str, Collection[str] | None], key: Sequence[str]
) -> Expression:
    """What `test` asks. Raises ExpressionError, with the place in it."""
    tables: dict[str, frozenset[str] | None] = {THIS: frozenset(columns)}
    tables |= {name: None if known is None else frozenset(known) for name, known in inputs.items()}
    audit = understand(test, Scope(tables, primary_key=tuple(key)))
    _refuse_unasked(audit, test)
    return audit


def audit_problem(
    test: str, columns: Collection[str], inputs: Mapping[str, Collection[str] | None], key: Sequence[str]
) -> str:
    """`ingestion.ports.AuditCheck`."""
    try:
        audit_of(test, columns, inputs, key)
    except ExpressionError as problem:
        return problem.problem
    return ""


def is_size_of_input(ask: Ask) -> bool:
    """How many rows a table has that is looked into."""
    return ask.table.dataset != THIS and ask.measure == ROWS and ask.reach is Reach.TABLE


def _is_of_batch(ask: Ask) -> bool:
    table, other = ask.table, ask.measure.other
    is_plain = table.dataset == THIS and not (table.data_center or table.shift) and ask.reach is Reach.PARTITION
    is_of_input = other is None or (other.dataset != THIS and not (other.data_center or other.shift))
    return is_plain and is_of_input and ask.measure.kind in MEASURED_KINDS


def _refuse_unasked(audit: Expression, test: str) -> None:
    for name in PARAMETERS:
        if getattr(audit.parameters, name) is not None:
            raise ExpressionError(
                f"An audit is run with each commit, so it has no `with {name}=`.", text=test, where=audit.where(name)
            )
    for call in window_function_calls(audit):
        raise ExpressionError(
            f"`{call.function}` looks at earlier partitions, which are not what is committed: make it a test of the dataset.",
            text=test,
            where=call.where,
        )
    for call in function_calls(audit):
        for ask in asks_of(call):
            if not (_is_of_batch(ask) or is_size_of_input(ask)):
                raise ExpressionError(
                    f"`{call.function}` cannot be asked here: an audit counts the rows of `this` that are about to be committed, "
                    "and looks values of theirs up in the inputs. Make it a test of the dataset.",
                    text=test,
                    where=call.where,
                )
