"""A SELECT that is refused, because what a change reaches cannot be worked out for it."""

from __future__ import annotations

from sqlglot import exp


class NotFollowed(ValueError):
    """Names the part of the SELECT, and what to write instead."""


def shown(expression: exp.Expr) -> str:
    """As a person would write it."""
    return expression.sql("spark").replace("`", "")
