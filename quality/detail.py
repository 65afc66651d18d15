"""What a result says besides its outcome, as JSON: for the pages, the API and messages. docs/expressions.md lists it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from quality.domain.evaluation import Evaluation
from quality.domain.stored import storable
from quality.measuring import Reused


def detail_of(found: Evaluation, reused: Reused | None) -> dict[str, Any]:
    """Only what there is."""
    exchanged = found.exchanged or {}
    said = {
        "formula": found.formula,
        "observed": found.observed_text,
        "behind": found.behind,
        "cause": found.cause,
        "facts": found.facts,
        "complete_until": found.complete_until.isoformat() if found.complete_until else None,
        "groups": asdict(found.groups) if found.groups else None,
        "missing": exchanged.get("missing"),
        "bloom": exchanged.get("report"),
        "reused_from": _reused(reused) if reused else None,
    }
    return {name: storable(value) for name, value in said.items() if value}


def _reused(reused: Reused) -> dict[str, Any]:
    return {
        "read_at": reused.read_at.isoformat(),
        "instant": reused.instant,
        "measures": reused.measures,
        "of": reused.of,
    }
