"""The fault rounds know which rows cells make, and which cells a changelog is to have."""

from __future__ import annotations

from decimal import Decimal

from tests.soak.capture.cells import Cell, cell_problems, merged

OLD, NEW, OTHER = Cell("r1", "base", 9), Cell("r1", "base", 10), Cell("r1", "contact", 3)


def test_the_newest_cell_of_a_column_replaces_the_whole_body_before_it() -> None:
    bodies = {NEW: '{"trips": 5}', OLD: '{"trips": 4, "city": "Ulm"}', OTHER: '{"is_open": true, "score": 0.5}'}
    assert merged(bodies) == {
        ("r1",): {
            "row_key": "r1", "base__city": None, "base__trips": Decimal(5), "base__ref_key": Decimal(10),
            "contact__mail": None, "contact__score": 0.5, "contact__is_open": 1, "contact__ref_key": Decimal(3),
        }
    }  # fmt: skip


def test_a_body_that_is_null_deletes_what_its_column_has() -> None:
    for nothing in (None, "null"):
        rows = merged({OLD: '{"trips": 4}', NEW: nothing})
        assert rows[("r1",)] == {"row_key": "r1", "base__city": None, "base__trips": None, "base__ref_key": Decimal(10)}


def test_cells_that_are_lost_doubled_or_invented_are_told() -> None:
    assert [*cell_problems([NEW, OTHER], [OLD, NEW, OTHER], [NEW])] == []
    problems = [*cell_problems([NEW, NEW, OTHER], [OLD, NEW], [OLD])]
    ends = ("has too often 1 cells", "has invented 1 cells", "lacks 1 cells")
    assert [problem.removeprefix("the changelog of profiles ") for problem in problems] == [*ends]
