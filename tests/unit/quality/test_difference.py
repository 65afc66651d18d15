"""Two copies are reconciled by sums of cells: against a model that holds both completely, for random tables and random damage."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import md5
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import settings

from quality.domain.difference.agreement import CannotCompare, ColumnForm, agree
from quality.domain.difference.kept_sums import KeptSums, WithinCells
from quality.domain.difference.reconcile import Bounds, Reconciled, WantedRows, reconcile
from quality.domain.difference.records import Difference, Row
from quality.domain.difference.sums import CellSums, Claim, Hashes, Kind, claims_of

DECIDING = (Kind.MISSING, Kind.CHANGED, Kind.DOUBLED)
Record = tuple[str | None, str | None]
"""A key and a value."""
SEEDS = settings().max_examples
"""As many as any property has examples: few at every change, many in CI."""


@cache
def row_of(record: Record, count: int) -> Row:
    key, value = record
    return Row(hashed(str(key)), hashed(f"{key}/{value}"), record, count)


def hashed(text: str) -> int:
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:8])


class Table(KeptSums):
    """A side that is a list of records; `scans` is how often it was gone through."""

    def __init__(self, records: Iterable[Record], depth: int) -> None:
        super().__init__(self._scan_sums, depth)
        self._rows = [row_of(record, count) for record, count in Counter(records).items()]
        times = [row.count for row in self._rows]
        self._keys, self._hashes = (
            np.repeat(np.array(values, np.uint64), times)
            for values in ([row.key_hash for row in self._rows], [row.row_hash for row in self._rows])
        )
        self.scans = 0

    def _scan_sums(self, depth: int, within: WithinCells | None) -> CellSums:
        self.scans += 1
        if within is None:
            return CellSums.of_rows(self._keys, self._hashes, depth)
        wanted = np.isin(self._keys >> np.uint64(64 - within.depth), within.prefixes)
        return CellSums.of_rows(self._keys[wanted], self._hashes[wanted], depth)

    def rows(self, wanted: WantedRows) -> Sequence[Row]:
        self.scans += 1
        bits, prefixes = set(wanted.key_bits.tolist()), set(wanted.prefixes.tolist())
        return [row for row in self._rows if row.key_bits in bits or row.key_hash >> (64 - wanted.depth) in prefixes]


def compared(
    here: Sequence[Record], there: Sequence[Record], depth: int = 10, bounds: Bounds | None = None
) -> Reconciled:
    return reconcile(Table(here, depth), Table(there, depth), bounds)


def model(here: Sequence[Record], there: Sequence[Record]) -> Counter[tuple[Kind, str | None]]:
    """How many records of each key differ how, by holding everything at once."""
    by_key: dict[str | None, tuple[Counter[Record], Counter[Record]]] = defaultdict(lambda: (Counter(), Counter()))
    for place, side in enumerate((here, there)):
        for record in side:
            by_key[record[0]][place][record] += 1
    wrong: Counter[tuple[Kind, str | None]] = Counter()
    for key, (mine, theirs) in by_key.items():
        if mine == theirs:
            continue
        more, fewer = (mine - theirs).total(), (theirs - mine).total()
        changed = min(more, fewer)
        wrong[Kind.CHANGED, key] += changed
        wrong[Kind.DOUBLED if theirs else Kind.SURPLUS, key] += more - changed
        wrong[Kind.DOUBLED_THERE if mine else Kind.MISSING, key] += fewer - changed
    return +wrong


def named(differences: Iterable[Difference]) -> Counter[tuple[Kind, str | None]]:
    wrong: Counter[tuple[Kind, str | None]] = Counter()
    for difference in differences:
        wrong[difference.kind, (difference.here or difference.there or ("",))[0]] += difference.count
    return wrong


def random_pair(seed: int) -> tuple[list[Record], list[Record]]:
    """A table of up to 3,000 rows, with null and doubled keys, and a damaged copy of it."""
    chance = random.Random(seed)
    size = chance.choice([0, 1, 2, 10, 300, 3_000])
    keys = chance.choice([size * 100 + 1, size // 3 + 1])
    there: list[Record] = [(str(chance.randrange(keys)), str(chance.randrange(5))) for _ in range(size)]
    there += [(None, "x")] * chance.randrange(3)
    here = list(there)
    for _ in range(chance.choice([0, 1, 3, 40, 400])):
        place = chance.randrange(len(here)) if here else 0
        damage = chance.randrange(4)
        if damage == 0 and here:
            del here[place]
        elif damage == 1 and here:
            here.append(here[place])
        elif damage == 2 and here:
            here[place] = (here[place][0], f"changed {chance.randrange(9)}")
        else:
            here.append((f"new {chance.randrange(1_000)}", None))
    chance.shuffle(here)
    return here, there


@pytest.mark.parametrize("seed", range(SEEDS))
def test_it_names_exactly_the_records_that_differ(seed: int) -> None:
    here, there = random_pair(seed)
    reconciled = compared(here, there, depth=random.Random(seed).choice([6, 8, 12]))
    assert (reconciled.estimate, reconciled.unexplained) == (None, 0)
    assert named(reconciled.differences) == model(here, there)
    assert Counter({kind: reconciled.count(kind) for kind in Kind}) == Counter(
        {kind: sum(count for (of, _), count in model(here, there).items() if of is kind) for kind in Kind}
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_side_sees_the_other_way_round(seed: int) -> None:
    here, there = random_pair(seed)
    forth, back = (named(compared(*pair).differences) for pair in ((here, there), (there, here)))
    mirrored = {
        Kind.MISSING: Kind.SURPLUS,
        Kind.SURPLUS: Kind.MISSING,
        Kind.DOUBLED: Kind.DOUBLED_THERE,
        Kind.DOUBLED_THERE: Kind.DOUBLED,
        Kind.CHANGED: Kind.CHANGED,
    }
    assert forth == Counter({(mirrored[kind], key): count for (kind, key), count in back.items()})


def records(count: int) -> list[Record]:
    return [(str(number), f"value {number}") for number in range(count)]


def test_what_travels_grows_with_the_difference_and_not_with_the_table() -> None:
    sizes = {}
    for rows in (1_000, 8_000):
        there = records(rows)
        here = [*there[5:], *there[-5:], ("1", "other")]
        sizes[rows] = compared(here, there, depth=12).bytes_moved
    assert sizes[8_000] < 1.2 * sizes[1_000]
    assert sizes[8_000] < 12_000


def test_the_same_tables_are_told_by_one_look_at_few_cells() -> None:
    here, there = Table(records(5_000), 10), Table(records(5_000)[::-1], 10)
    reconciled = reconcile(here, there)
    assert (reconciled.differences, reconciled.rounds, reconciled.bytes_moved) == ([], 1, 64 * 28)
    assert (here.scans, there.scans) == (1, 1)


def test_some_differences_take_two_scans_a_side() -> None:
    there = records(5_000)
    sides = Table([*there[30:], *there[-30:]], 12), Table(there, 12)
    assert len(reconcile(*sides).differences) == 60
    assert [side.scans for side in sides] == [2, 2]


def test_cells_of_many_rows_are_read_again_and_cut_finer() -> None:
    there = records(5_000)
    sides = Table(there[1_000:], 6), Table(there, 6)
    reconciled = reconcile(*sides, Bounds(rows_of_cells=50))
    assert named(reconciled.differences) == model(there[1_000:], there)
    assert all(2 < side.scans < 8 for side in sides)


def test_too_many_differences_are_estimated_and_some_are_named() -> None:
    there = records(10_000)
    here = [(key, "changed") if int(key or 0) % 4 == 0 else (key, value) for key, value in there]
    reconciled = compared(here, there, depth=12, bounds=Bounds(open_cells=400, rows_of_cells=400))
    assert reconciled.estimate is not None
    assert 2_000 < reconciled.estimate < 3_125
    assert reconciled.bytes_moved < 100_000
    assert 0 < len(reconciled.differences) < 400
    assert {difference.kind for difference in reconciled.differences} == {Kind.CHANGED}
    assert named(reconciled.differences) <= model(here, there)


def test_of_a_table_that_shares_nothing_everything_differs() -> None:
    here, there = ([(f"{name}{number}", "") for number in range(2_000)] for name in ("a", "b"))
    reconciled = compared(here, there, bounds=Bounds(open_cells=300))
    assert reconciled.estimate == pytest.approx(4_000, rel=0.02)
    assert reconciled.count_against(DECIDING) == pytest.approx(2_000, rel=0.05)


def damaged(
    there: Sequence[Record], lost_here: int, lost_there: int, changed: int
) -> tuple[list[Record], list[Record]]:
    """Each record is damaged on one side at most."""
    order = list(there)
    random.Random(lost_here + lost_there + changed).shuffle(order)
    only_there, only_here = order[:lost_here], order[lost_here : lost_here + lost_there]
    rest = order[lost_here + lost_there :]
    mine = [(key, "changed") if place < changed else (key, value) for place, (key, value) in enumerate(rest)]
    return mine + only_here, rest + only_there


AS_EXAMPLES = {"no examples": 0, "examples of few cells": 1_000}


@pytest.mark.parametrize("rows_of_cells", AS_EXAMPLES.values(), ids=AS_EXAMPLES)
@pytest.mark.parametrize("lost_there", [0, 3, 1_500])
@pytest.mark.parametrize("lost_here", [0, 3, 1_500])
@pytest.mark.parametrize("changed", [0, 1_250])
def test_of_too_many_differences_no_side_is_green_by_chance_and_none_answers_for_the_other(
    lost_here: int, lost_there: int, changed: int, rows_of_cells: int
) -> None:
    here, there = damaged(records(5_000), lost_here, lost_there, changed)
    reconciled = compared(here, there, depth=8, bounds=Bounds(open_cells=100, rows_of_cells=rows_of_cells))
    if reconciled.estimate is None:
        assert lost_here + lost_there + changed < 100
        return
    against, truth = reconciled.count_against(DECIDING), lost_here + changed
    assert reconciled.fewer_here <= lost_here
    assert against is None or against > 0
    assert truth or against is None
    assert rows_of_cells == 0 or reconciled.estimate == pytest.approx(truth + lost_there, rel=0.25)
    assert truth < 1_000 or rows_of_cells == 0 or against == pytest.approx(truth, rel=0.35)
    if not lost_there and not changed:
        assert (reconciled.fewer_here, reconciled.even_cells, against) == (lost_here, 0, max(lost_here, against or 0))


def test_few_losses_are_not_hidden_by_many_of_the_other_side() -> None:
    """The other side lost 30%, and this one 50 records, of which no cell that is fetched has one: it said 0."""
    here, there = damaged(records(20_000), 50, 6_000, 0)
    reconciled = compared(here, there, depth=8, bounds=Bounds(open_cells=100, rows_of_cells=300))
    assert set(reconciled.counts) == {Kind.SURPLUS}
    assert reconciled.count_against(DECIDING) is None


def test_rows_that_are_doubled_there_are_not_missing_here() -> None:
    whole = records(20_000)
    bounds = Bounds(open_cells=100, rows_of_cells=600)
    assert compared(whole, whole + whole[:9_000], depth=8, bounds=bounds).count_against(DECIDING) is None
    doubled = compared(whole + whole[:9_000], whole, depth=8, bounds=bounds).count_against(DECIDING)
    assert doubled == pytest.approx(9_000, rel=0.25)


def test_where_everything_is_changed_and_nothing_fetched_it_counts_against_both() -> None:
    there = records(20_000)
    here = [(key, "changed") for key, _ in there]
    reconciled = compared(here, there, depth=8, bounds=Bounds(open_cells=100, rows_of_cells=0))
    assert reconciled.even_cells == 1
    assert reconciled.count_against(DECIDING) == reconciled.estimate


def test_a_key_that_thousands_of_rows_have_is_said_to_differ_without_fetching_them() -> None:
    there = [*records(50), *((None, str(number)) for number in range(5_000))]
    here = [*there[:-3], ("50", "new")]
    reconciled = compared(here, there, bounds=Bounds(rows_of_cells=1_000))
    assert reconciled.unexplained == 1
    assert named(reconciled.differences) == {(Kind.SURPLUS, "50"): 1}


def test_of_more_records_than_may_be_named_all_are_counted() -> None:
    there = records(4_000)
    reconciled = compared(there[900:], there, depth=14, bounds=Bounds(named=100))
    assert reconciled.count(Kind.MISSING) == 900
    assert 100 <= len(reconciled.differences) < 400


def test_sums_do_not_depend_on_order_and_add_up_over_depths() -> None:
    chance = np.random.default_rng(1)
    keys, rows = chance.integers(0, 2**64, (2, 5_000), np.uint64)
    order = chance.permutation(5_000)
    whole = CellSums.of_rows(keys, rows, 12)
    for same in (
        CellSums.of_rows(keys[order], rows[order], 12),
        CellSums.of_rows(keys[:999], rows[:999], 12).plus(CellSums.of_rows(keys[999:], rows[999:], 12)),
    ):
        assert np.array_equal(same.prefixes, whole.prefixes)
        assert np.array_equal(same.sums, whole.sums)
    for fine, coarse in pairwise((12, 9, 6, 1)):
        assert np.array_equal(
            CellSums.of_rows(keys, rows, fine).coarser(coarse).sums, CellSums.of_rows(keys, rows, coarse).sums
        )


def test_a_row_that_is_there_twice_does_not_cancel_itself_out() -> None:
    record = ("1", "a")
    assert named(compared([record, record, record], [record]).differences) == {(Kind.DOUBLED, "1"): 2}


def cell(*pairs: tuple[int, int]) -> Hashes:
    keys, rows = (np.array(values, np.uint64) for values in zip(*pairs, strict=True))
    return CellSums.of_rows(keys, rows, 0).sums


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_difference_of_a_cell_is_the_record_that_makes_it(seed: int) -> None:
    chance = random.Random(seed)
    key, row, other = (chance.randrange(2**64) for _ in range(3))
    prefixes = np.array([key >> 54], np.uint64)
    (surplus,) = claims_of(10, prefixes, cell((key, row)))
    (missing,) = claims_of(10, prefixes, -cell((key, row)))
    (changed,) = claims_of(10, prefixes, cell((key, row)) - cell((key, other)))
    assert surplus == Claim(Kind.SURPLUS, key >> 54, 10, key >> 25, row)
    assert missing == Claim(Kind.MISSING, key >> 54, 10, key >> 25, row)
    assert changed == Claim(Kind.CHANGED, key >> 54, 10, key >> 25, (row - other) % 2**64)


INTEGER, TEXT, FLOAT = ColumnForm("integer", True), ColumnForm("text", True), ColumnForm("DOUBLE", False)


def test_columns_of_one_side_only_and_inexact_ones_are_left_out_and_said() -> None:
    here = {"id": INTEGER, "name": TEXT, "ratio": FLOAT, "loaded_at": TEXT}
    there = {"id": INTEGER, "ratio": FLOAT, "name": INTEGER, "more": TEXT, "loaded_at": TEXT}
    agreed = agree(("id",), here, there, native=False, excluded=("loaded_at",))
    assert agreed.names == ("id", "name")
    assert agreed.left_out == {
        "ratio": "DOUBLE, which engines write differently",
        "more": "only on the other side",
        "loaded_at": "not compared, as the test says",
    }
    natively = agree(("id",), here, there, native=True)
    assert natively.names == ("id", "name", "ratio", "loaded_at")
    assert [column.by_text for column in natively.columns] == [False, True, False, False]


def test_a_key_that_one_side_lacks_or_that_is_inexact_is_refused() -> None:
    with pytest.raises(CannotCompare, match=r"There is no column `id` on the other side\. Did you mean `idd`"):
        agree(("id",), {"id": INTEGER}, {"idd": INTEGER}, native=True)
    with pytest.raises(CannotCompare, match="`id` cannot be part of a key: it is DOUBLE here"):
        agree(("id",), {"id": FLOAT}, {"id": FLOAT}, native=True)
