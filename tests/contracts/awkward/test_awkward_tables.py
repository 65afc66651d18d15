"""Every awkward table goes through onboarding, tests, incidents and the gate, and what is said of it is true.

The shapes are tables of data beside this file; the oracle says what is true. `LAKEHUB_AWKWARD=all` runs each shape on every kind
of source that it names, else on the one of which there are fewest so far.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehub.kernel.errors import Refused
from tests.contracts.awkward import events, keys, losses, names, oracle, partitions, sizes, zones
from tests.contracts.awkward.check import check_copy
from tests.contracts.awkward.product import LAST, LATER, Product, onboard, watch, write_group_test
from tests.contracts.awkward.shape import Shape
from tests.contracts.awkward.sources import Sources, query

pytestmark = pytest.mark.django_db

SHAPES: dict[str, Shape] = {
    name: shape
    for part in (losses, events, partitions, zones, keys, names, sizes)
    for name, shape in part.SHAPES.items()
}
SERVERS = {"postgresql": "postgresql_url", "mariadb": "mariadb_url"}


def cases() -> Iterator[object]:
    shares: Counter[str] = Counter()
    for name, shape in SHAPES.items():
        rarest = min(shape.kinds, key=lambda kind: shares[kind])
        kinds = shape.kinds if os.environ.get("LAKEHUB_AWKWARD") == "all" else (rarest,)
        shares.update(kinds)
        yield from (pytest.param(shape, kind, id=f"{name}-{kind}") for kind in kinds)


@pytest.fixture
def sources(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sources]:
    server = request.getfixturevalue(SERVERS[kind]) if kind in SERVERS else ""
    made = Sources(kind, tmp_path, server)
    yield made
    made.close()


@pytest.mark.parametrize(("shape", "kind"), list(cases()))
def test_what_is_said_of_it_is_true(shape: Shape, kind: str, sources: Sources) -> None:
    copies = {"dc1": sources.write(shape, query(shape.rows), "dc1")}
    if shape.other:
        copies["dc2"] = sources.write(shape, query(shape.other), "dc2")
    upstream = sources.write(shape, query(shape.upstream), "upstream") if shape.upstream else None
    if shape.refused:
        with pytest.raises(Refused) as refused:
            onboard(shape, copies, upstream)
        field, sentence = shape.refused
        assert sentence in refused.value.fields[field]
        return
    dataset = onboard(shape, copies, upstream)
    if shape.by:
        write_group_test(dataset, shape.by)
    for now in (LATER, LAST):
        watch(now=now)
    rows = {center: written.rows for center, written in copies.items()}
    for center in copies:
        check_copy(shape, kind, Product(dataset, center), rows, upstream and upstream.rows)


@pytest.mark.parametrize("kind", ["parquet", "hudi", "sqlite", "postgresql", "mariadb"])
def test_two_copies_of_one_place_are_refused(kind: str, sources: Sources) -> None:
    shape = losses.SHAPES["all well"]
    written = sources.write(shape, query(shape.rows), "dc1")
    with pytest.raises(Refused) as refused:
        onboard(shape, {"dc1": written, "dc2": written})
    assert "dc1 and dc2 would read the same" in refused.value.fields["copies"]


def test_the_oracle_knows_nothing_of_the_product() -> None:
    tree = ast.parse(Path(oracle.__file__).read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "dataclasses", "datetime", "duckdb", "pandas"}


def test_there_are_sixty_shapes_and_every_kind_of_source_has_its_share() -> None:
    kinds = [case.values[1] for case in cases()]  # type: ignore[attr-defined]
    assert len(SHAPES) >= 60
    assert {
        kind: kinds.count(kind) >= 8 for kind in ("parquet", "hudi", "sqlite", "postgresql", "mariadb")
    } == dict.fromkeys(("parquet", "hudi", "sqlite", "postgresql", "mariadb"), True)
