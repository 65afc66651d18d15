"""What a backtest is asked to try: the draft's expression, and the partitions of the past that it covers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, floor_to_bucket, partitions_within
from quality.domain.generation.definitions import DatasetFacts
from quality.domain.language import Expression, ExpressionError, flattened, function_calls, parse, understand
from quality.domain.language.type_checker import check_expression
from quality.domain.slas import BadOverride
from quality.generation.query_rights import check_queries
from quality.models import QualityTest, QualityTestVersion, Unit
from quality.state.dataset_facts import dataset_facts
from quality.state.dataset_slas import production_calendar
from quality.state.live_tests import live_test

DEFAULT_DAYS = 90
MAX_DAYS = 800
MAX_PARTITIONS = 2200
"""Of one copy: three months of hours. The newest are tested."""


_SEPARATE_SCAN_FUNCTIONS = frozenset({"query", "drift", "matching", "sampled", "difference"})


@dataclass(frozen=True)
class BacktestDraft:
    """The test that is tried, as it would be stored."""

    dataset: Dataset
    facts: DatasetFacts
    expression: Expression
    sustain: timedelta
    due_after: timedelta

    @property
    def needs_separate_scans(self) -> bool:
        return self.expression.parameters.by is not None or any(
            call.function in _SEPARATE_SCAN_FUNCTIONS for call in function_calls(self.expression)
        )

    @property
    def tests_freshness(self) -> bool:
        return any(call.function == "freshness" for call in function_calls(self.expression))

    @property
    def tests_whole_table(self) -> bool:
        given = self.expression.parameters
        return given.partition == "whole" or given.cadence is not None or self.facts.grain is Grain.NONE

    def unit(self, copy: DatasetCopy, partition: Interval, number: int) -> Unit:
        """Never saved: what measuring wants to know."""
        version = QualityTestVersion(flattened=flattened(self.expression))
        test = QualityTest(dataset=self.dataset, version=version)
        return Unit(pk=-number, test=test, copy=copy, start=partition.start, end=partition.end)


def draft_of(dataset: Dataset, expression: str, key: str, *, author: User | None = None) -> BacktestDraft:
    """`author`: whose rights the queries of an expression need. Raises Refused."""
    if bool(expression) == bool(key):
        raise Refused.for_fields({"expression": "Give an expression, or the key of a test: one of the two."})
    try:
        facts = dataset_facts(dataset)
        if key:
            version = live_test(dataset, key).version
            assert version is not None  # live tests have one
            stored = parse(version.flattened)
            check_expression(
                stored
            )  # of an older version, or of a plug-in that is gone, it may say what nothing measures
            return BacktestDraft(dataset, facts, stored, version.sustain, version.due_after)
        understood = understand(expression, facts.scope)
        check_queries(understood, dataset, author=author)
    except BadOverride as problem:
        raise Refused.for_fields({"overrides": str(problem)}) from problem
    except ExpressionError as problem:
        raise Refused.for_fields({"expression": str(problem)}) from problem
    sustain = understood.parameters.sustain
    due_after = facts.slas.freshness
    return BacktestDraft(dataset, facts, understood, facts.slas.sustain if sustain is None else sustain, due_after)


def partitions_to_test(draft: BacktestDraft, copy: DatasetCopy, days: int, *, now: datetime) -> list[Interval]:
    """Those that were due within the last days, are watched and expected; oldest first."""
    grain, zone = draft.facts.grain, copy.dataset.zone
    begin = floor_to_bucket(now - timedelta(days=days), grain, zone)
    end = floor_to_bucket(now - draft.due_after, grain, zone)
    begin = max(begin, copy.monitored_from or begin)
    if begin >= end:
        return []
    calendar = production_calendar(draft.dataset)
    within = partitions_within(Interval(begin, end), grain, zone)
    return [partition for partition in within if calendar is None or calendar.expects(partition)][-MAX_PARTITIONS:]
