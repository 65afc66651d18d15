"""The fuzz: each query's claim is taken, what lies outside of it is changed, the answer must stay."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

from incidents.domain.gate.sql_names import UnsupportedSql
from incidents.domain.gate.sql_reads import parse_query, tables_read
from incidents.domain.gate.sql_times import QueryClock
from tests.contracts.random_queries.dialects import Dialect
from tests.contracts.random_queries.engines import BadValue, DoesNotRun, Engine
from tests.contracts.random_queries.grammar import RandomQuery
from tests.contracts.random_queries.tables import SHAPES, Claim, Row, changed_rows, random_rows

CLOCK = QueryClock(datetime(2026, 11, 17, 19, 32, tzinfo=UTC), ZoneInfo("UTC"))


class Overlooked(AssertionError):
    """A query reads what the gate does not claim."""


@dataclass
class Outcome:
    """How many queries did what. `narrowed`: the claim leaves rows out; `sensitive`: other changes do change the answer."""

    queries: int = 0
    refused: int = 0
    ran: int = 0
    narrowed: int = 0
    compared: int = 0
    watched: int = 0
    sensitive: int = 0
    unsure: int = 0
    forms: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        counts = f"{self.queries:,} queries, {self.refused:,} refused by the gate, {self.ran:,} ran, {self.narrowed:,} with less than whole tables"
        return f"{counts}, {self.compared:,} comparisons; {self.sensitive:,} of {self.watched:,} answers changed with what is claimed"


def fuzz(engine: type[Engine], *, seed: str, queries: int, favourites: Sequence[str] = ()) -> Outcome:
    """Raises Overlooked with what repeats it. The same seed gives the same queries, rows and changes. Each of the forms in turn, or
    of the favourites, is looked for until a query has it.
    """
    outcome, forms = Outcome(), favourites or engine.dialect.forms
    with closing(_engine(engine, seed)) as made:
        for number in range(queries):
            _try(made, f"{seed}/{engine.dialect.name}/{number}", forms[number % len(forms)], outcome)
    return outcome


def random_seed() -> str:
    """Printed, and in the report of what fails."""
    seed = os.environ.get("LAKEHUB_FUZZ_SEED") or secrets.token_hex(4)
    print(f"LAKEHUB_FUZZ_SEED={seed}")
    return seed


def number_of_queries(usual: int) -> int:
    return int(os.environ.get("LAKEHUB_FUZZ_QUERIES") or usual)


def check_worth(outcome: Outcome, dialect: Dialect) -> None:
    """A fuzz that compares little, or claims the whole each time, or never sees a form, finds nothing. The shares lie three
    deviations of the smallest run below what is usual: 75 to 85% run, 23 to 30% are narrowed, 35 to 40% are sensitive.
    """
    print(f"{dialect.name}: {outcome}")
    assert outcome.ran >= 0.6 * outcome.queries
    assert outcome.narrowed >= 0.12 * outcome.ran
    assert outcome.compared >= 0.8 * outcome.ran
    assert outcome.unsure <= 0.02 * outcome.ran + 2
    assert outcome.sensitive >= 0.1 * outcome.watched
    turns = outcome.queries // len(dialect.forms)
    rare = {form: outcome.forms[form] for form in dialect.forms if outcome.forms[form] < turns // 4}
    by_chance = 0 if turns >= 20 else 2  # every other query with a form runs: of 7 none does once in 100 forms
    assert len(rare) <= by_chance, f"of {turns} queries that were made for each of these forms, so many ran: {rare}"


def _engine(engine: type[Engine], seed: str) -> Engine:
    random = Random(f"{seed}/{engine.dialect.name}/tables")
    as_text = engine.dialect.has_text_times
    return engine({table: random_rows(table, random, as_text=as_text) for table in SHAPES})


def _query(seed: str, dialect: Dialect, favourite: str) -> RandomQuery:
    for turn in range(_TURNS):
        query = RandomQuery(Random(f"{seed}/{turn}"), dialect, favourite)
        if favourite in query.forms:
            break
    return query


_TURNS = 50


def _try(engine: Engine, seed: str, favourite: str, outcome: Outcome) -> None:
    query = _query(seed, engine.dialect, favourite)
    sql, random = query.sql, query.random
    outcome.queries += 1
    claim = claim_of(sql, engine.dialect.name)
    if claim is None:
        outcome.refused += 1
        return
    try:
        before = engine.answer(sql)
    except DoesNotRun:
        return
    outcome.ran += 1
    outcome.forms.update(query.forms)
    is_narrow = any(not span.is_everything for ranges in claim.values() for span in ranges)
    outcome.narrowed += is_narrow
    changes = _changes(engine, claim, random)
    if changes:
        outcome.compared += 1
        try:
            after = engine.answer_after(sql, changes)
        except BadValue:
            return
        except DoesNotRun as problem:
            after = [str(problem)]
        if after != before:
            raise Overlooked(_report(seed, outcome.queries, sql, claim, changes, before, after))
    if outcome.ran % 4 == 0:
        _watch(engine, sql, claim, before, random, outcome)


def claim_of(sql: str, dialect: str) -> Claim | None:
    """None: the gate refuses, or names a table that is no dataset."""
    try:
        query = parse_query(sql, dialect)
    except UnsupportedSql:
        return None
    if query.functions or not {name.lower() for name in query.names} <= set(SHAPES):
        return None
    return {reads.dataset: reads.ranges for reads in tables_read(query, SHAPES, CLOCK)}


def _changes(engine: Engine, claim: Claim, random: Random) -> Mapping[str, list[Row] | None]:
    """What is not claimed at all is not there any more."""
    changed = changed_rows(engine.rows, claim, random, as_text=engine.dialect.has_text_times)
    return {table: rows if table in claim else None for table, rows in changed}


def _watch(engine: Engine, sql: str, claim: Claim, before: list[str], random: Random, outcome: Outcome) -> None:
    """Does the answer depend on the rows that are claimed?"""
    outcome.watched += 1
    try:
        outcome.sensitive += engine.answer_after(sql, _changes(engine, dict.fromkeys(claim, ()), random)) != before
    except DoesNotRun:
        outcome.sensitive += 1


def _is_unsure(engine: Engine, sql: str, changes: Mapping[str, list[Row] | None], before: list[str]) -> bool:
    """The answer differs where nothing does: the query leaves it to the database."""
    same = {table: engine.rows[table] for table in changes}
    return any(engine.answer_after(sql, rows) != before for rows in ({}, same))


def _report(
    seed: str,
    number: int,
    sql: str,
    claim: Claim,
    changes: Mapping[str, list[Row] | None],
    before: list[str],
    after: list[str],
) -> str:
    claimed = {
        table: [f"{span.start:%m-%d %H:%M} to {span.end:%m-%d %H:%M}" for span in ranges]
        for table, ranges in claim.items()
    }
    changed = "\n".join(
        f"  {table}: {'dropped' if rows is None else [row.values for row in rows]}" for table, rows in changes.items()
    )
    return f"query {number}, {seed}:\n{sql}\nclaimed: {claimed}\nchanged:\n{changed}\nbefore: {before[:8]}\nafter: {after[:8]}"
