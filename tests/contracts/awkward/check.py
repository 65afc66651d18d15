"""What the product says of a copy is what the oracle says: of each test and bucket, in incidents, findings and at the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb
import pandas as pd
import pyarrow as pa

from tests.contracts.awkward.oracle import WHOLE, Bucket, Oracle, Question, Truth
from tests.contracts.awkward.product import LAST, Product
from tests.contracts.awkward.shape import HUDI, Shape
from tests.factories import NOW


def check_copy(
    shape: Shape, kind: str, product: Product, copies: Mapping[str, pa.Table], upstream: pa.Table | None
) -> None:
    at = pd.Timestamp(LAST)
    oracle = Oracle(*asked(shape, kind, product.center, copies, upstream))
    truth = oracle.truth(at)
    if product.dataset.ingested and upstream is not None:
        # What names no partition stays behind at the source: the lake has none of it.
        source = Oracle(*asked(shape, kind, product.center, {product.center: upstream}, None))
        truth = replace(truth, unreadable=source.truth(at).unreadable)
    assert product.causes() == set(shape.errors.items())
    answers = product.outcomes()
    left_out = {*shape.errors, *needless(answers, truth)}
    outcomes = {asked: outcome for asked, outcome in truth.outcomes.items() if asked[0] not in left_out}
    assert {asked: outcome for asked, outcome in answers.items() if asked[0] not in left_out} == outcomes
    fresh = oracle.freshness(truth, at)
    freshness, front = product.freshness()
    assert freshness == fresh
    if fresh == "fail":
        assert front == truth.front
    kinds = {"partition_unreadable": {WHOLE} if truth.unreadable else set(), "partition_ahead": set(truth.ahead)}
    assert product.findings() == {kind: buckets for kind, buckets in kinds.items() if buckets}
    check_incidents(product, truth, fresh)
    check_gate(product, truth, fresh)


def needless(answers: Mapping[tuple[str, Bucket], str], truth: Truth) -> set[str]:
    """Tests of keys that need not be: what they look for cannot come, so that none of them fails."""
    return {
        test
        for test in ("null_keys", "repeated_keys")
        if test not in dict(answers.keys()) and not truth.failing([test])
    }


CATEGORIES = {
    "completeness": ("volume", "completeness", "sample"),
    "others": ("groups",),
    "duplicates": ("duplicates", "null_keys", "repeated_keys"),
    "consistency": tuple(
        f"{test}@{center}" for test in ("row_count", "bloom", "difference") for center in ("dc1", "dc2")
    ),
}


def check_incidents(product: Product, truth: Truth, fresh: str) -> None:
    """Each failing bucket is in an open incident of its category, and nothing else is."""
    expected = {category: truth.failing(tests) for category, tests in CATEGORIES.items()}
    expected["ingestion"] = ({WHOLE} if truth.unreadable else set()) | set(truth.ahead)
    expected["freshness"] = {WHOLE} if fresh == "fail" else set()
    assert product.incidents() == {category: buckets for category, buckets in expected.items() if buckets}


def check_gate(product: Product, truth: Truth, fresh: str) -> None:
    """Of each bucket by itself: fail is blocked, pass is allowed, all else is unknown and blocked."""
    by_bucket: dict[object, set[str]] = {}
    for (test, bucket), outcome in truth.outcomes.items():
        if test == "repeated_keys":
            continue  # it does not gate
        by_bucket.setdefault(bucket, set()).add(outcome)
    for bucket, outcomes in list(by_bucket.items())[-30:]:
        start, end = truth.ends.get(bucket, (pd.Timestamp(2000, 1, 1, tz="UTC"), pd.Timestamp(2040, 1, 1, tz="UTC")))
        stale = fresh != "pass" and (truth.front is None or end > truth.front)
        outcomes |= {fresh} if stale else set()
        verdict = "fail" if "fail" in outcomes else "pass" if outcomes == {"pass"} else "unknown"
        answer = product.gate(start.to_pydatetime(), end.to_pydatetime(), now=LAST)
        assert answer == (verdict, verdict == "pass"), (bucket, outcomes)


def asked(
    shape: Shape, kind: str, center: str, copies: Mapping[str, pa.Table], upstream: pa.Table | None
) -> tuple[duckdb.DuckDBPyConnection, Question]:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    db.register("here", copies[center])
    other = next((name for name in copies if name != center), "")
    if other:
        db.register("there", copies[other])
    if upstream is not None:
        db.register("upstream", upstream)
    question = Question(
        grain=shape.grain, zone=shape.zone, key=shape.key, local=shape.local, offset=shape.offset, event=shape.event,
        upstream_local=shape.upstream_cut[3] if shape.upstream_cut else "", other=other,
        has_upstream=upstream is not None, external_upstream=kind != HUDI, onboarded=pd.Timestamp(NOW), comparable=shape.comparable,
        by=shape.by,
    )  # fmt: skip
    return db, question
