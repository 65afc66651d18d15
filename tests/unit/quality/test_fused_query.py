"""One query for all measures: a bad one costs only itself, whenever it shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest

from quality.domain.language.measures import Answer, Measure
from quality.domain.language.values import Failed, error
from quality.engines.sql.fused_query import FusedQuery, QueryRefused

MEASURES = [Measure("nulls", (f"c{number}",)) for number in range(20)]


class Table:
    """Refuses queries with some of the measures: when they are bound, or when they run."""

    def __init__(self, *, unbound: Collection[int] = (), broken: Collection[int] = (), slow: bool = False) -> None:
        self.unbound = {MEASURES[number] for number in unbound}
        self.broken = {MEASURES[number] for number in broken}
        self.slow = slow
        self.bound = 0

    def bind(self, some: Sequence[Measure]) -> None:
        self.bound += 1
        if self.unbound & set(some):
            raise QueryRefused(error("cannot be bound"))

    def run(self, some: Sequence[Measure]) -> Mapping[Measure, Answer]:
        assert not self.unbound & set(some)
        if self.slow:
            raise QueryRefused(error("out of time"), is_final=True)
        if self.broken & set(some):
            raise QueryRefused(error("broke"))
        return dict.fromkeys(some, 0)

    def answers(self) -> tuple[dict[Measure, Answer | Failed], int]:
        fusion = FusedQuery(self.bind, self.run)
        return fusion.answers(MEASURES), fusion.scan_count


def test_all_are_bound_once_and_run_once() -> None:
    table = Table()
    answers, scans = table.answers()
    assert (set(answers.values()), scans, table.bound) == ({0}, 1, 1)


def test_what_cannot_be_bound_is_known_before_the_scan() -> None:
    answers, scans = Table(unbound=[3, 17]).answers()
    bad = [measure for measure, answer in answers.items() if isinstance(answer, Failed)]
    assert (set(bad), scans) == ({MEASURES[3], MEASURES[17]}, 1)


@pytest.mark.parametrize("broken", [[0], [19], [3, 4], list(range(20))])
def test_what_breaks_while_it_runs_costs_only_itself(broken: list[int]) -> None:
    answers, scans = Table(broken=broken).answers()
    assert {measure for measure, answer in answers.items() if isinstance(answer, Failed)} == {
        MEASURES[place] for place in broken
    }
    assert scans <= 2 * 20 - 1


def test_what_ran_out_of_time_is_not_run_again() -> None:
    answers, scans = Table(slow=True).answers()
    assert (set(answers.values()), scans) == ({error("out of time")}, 1)


def test_of_nothing_nothing_is_asked() -> None:
    table = Table()
    assert FusedQuery(table.bind, table.run).answers([]) == {}
    assert table.bound == 0
