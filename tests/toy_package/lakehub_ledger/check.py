"""Of a dataset that comes from a ledger, every entry must be there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck


class LedgerBalanceCheck:
    category = "completeness"
    keys = ("ledger_balance",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        if not dataset.one_to_one:
            yield InapplicableCheck("ledger_balance", "no ledger whose entries map one to one")
            return
        yield Definition(
            key="ledger_balance",
            title="Entries of the ledger",
            category=self.category,
            check="ledger_balance",
            expression="rows(this) == rows(upstream)",
            sustain=timedelta(),
            cadence=dataset.cadence,
            because="its entries map one to one",
        )


LEDGER_BALANCE = LedgerBalanceCheck()
