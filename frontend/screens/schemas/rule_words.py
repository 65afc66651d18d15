"""The rules of subjects in words: which version may follow."""

from __future__ import annotations

from ingestion.domain.avro.compatibility import Compatibility

RULES = {
    Compatibility.BACKWARD: ("Backward", "Readers of a new version can read what the newest version wrote."),
    Compatibility.BACKWARD_TRANSITIVE: (
        "Backward, all versions",
        "Readers of a new version can read what every version wrote.",
    ),
    Compatibility.FORWARD: ("Forward", "Readers of the newest version can read what a new version writes."),
    Compatibility.FORWARD_TRANSITIVE: (
        "Forward, all versions",
        "Readers of every version can read what a new version writes.",
    ),
    Compatibility.FULL: ("Full", "Readers of the newest and of a new version can read what the other writes."),
    Compatibility.FULL_TRANSITIVE: (
        "Full, all versions",
        "Readers of every version and of a new one can read what the other writes.",
    ),
    Compatibility.NONE: ("No rule", "Any schema may follow."),
}
"""By rule its name, and what it asks of a new version."""


def rule_name(compatibility: str) -> str:
    return RULES[Compatibility(compatibility)][0]


def rule_sentence(compatibility: str) -> str:
    return RULES[Compatibility(compatibility)][1]
