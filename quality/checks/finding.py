"""What ingestion saw, as a test: so that incidents have one door. The tests come with the first finding of a kind; those of captured datasets are there before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language import formula
from quality.domain.language.tree.nodes import Name

LEFT_OUT_KINDS = frozenset({"partition_unreadable", "partition_ahead", "audit_refused"})
"""Of rows that are left out; all others go on to be read, so that these block no reader."""

OF_CAPTURES = {
    "copy_behind": "Changes arrive in time",
    "messages_unaccounted": "Source = log = commits",
}
"""What is asked of each captured dataset, at its cadence, whether or not something was ever found."""


class FindingCheck:
    category = "ingestion"
    keys = ("finding:",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        for kind, title in OF_CAPTURES.items() if dataset.is_captured else ():
            asked = self.definition_of(kind)
            because = "its changes are captured"
            yield replace(asked, title=title, cadence=dataset.slas.cadence, because=because, planned=True)

    def definition_of(self, kind: str) -> Definition:
        """The test that no finding of `kind` is open. It fails at once: ingestion is sure of what it saw."""
        return Definition(
            key=f"finding:{kind}",
            title=kind.replace("_", " ").capitalize(),
            category=self.category,
            check="finding",
            expression=f"findings(this, {formula(Name(kind))}) == 0",
            sustain=timedelta(),
            cadence=None,
            because=f"ingestion found {kind}",
            planned=False,
            gating=kind not in LEFT_OUT_KINDS,
        )


FINDING = FindingCheck()
