"""Rows that were fetched from two sides, matched with each other: which records are missing, surplus, doubled or changed, and where."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from quality.domain.difference.sums import KEY_SHIFT, Claim, Kind

Texts: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True)
class Row:
    """A row of one side: its hashes, its values as canonical texts by the compared columns, and how often it is there."""

    key_hash: int
    row_hash: int
    values: Texts
    count: int = 1

    @property
    def key_bits(self) -> int:
        return self.key_hash >> KEY_SHIFT


@dataclass(frozen=True)
class Difference:
    """A record that differs; `here` and `there` are its values, None where it is not. `count`: so many rows of it."""

    kind: Kind
    here: Texts | None = None
    there: Texts | None = None
    count: int = 1


@dataclass
class MatchedClaims:
    """What fetched rows made of claims: the records, and the claims that they do not bear out."""

    differences: list[Difference] = field(default_factory=list)
    refuted: list[Claim] = field(default_factory=list)


def match_claims(claims: Iterable[Claim], here: Iterable[Row], there: Iterable[Row]) -> MatchedClaims:
    """The record of each claim. `here` has the rows of the surplus and changed keys, `there` of the missing and changed ones."""
    rows_here, rows_there = _by_key_bits(here), _by_key_bits(there)
    matched = MatchedClaims()
    for claim in claims:
        mine, theirs = rows_here[claim.key_bits], rows_there[claim.key_bits]
        if claim.kind is Kind.CHANGED:
            _add_whole_key(claim, mine, theirs, matched)
        else:
            _add_single_row(claim, mine if claim.kind is Kind.SURPLUS else theirs, matched)
    return matched


def match_keys(claims: Iterable[Claim], here: Iterable[Row], there: Iterable[Row]) -> MatchedClaims:
    """The same with all rows of the claimed keys on both sides: several rows of one key may look like a single record."""
    rows_here, rows_there = _by_key_bits(here), _by_key_bits(there)
    matched = MatchedClaims()
    for claim in claims:
        _add_whole_key(claim, rows_here[claim.key_bits], rows_there[claim.key_bits], matched)
    return matched


def _by_key_bits(rows: Iterable[Row]) -> Mapping[int, list[Row]]:
    by_bits: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_bits[row.key_bits].append(row)
    return by_bits


def _add_whole_key(claim: Claim, here: Sequence[Row], there: Sequence[Row], matched: MatchedClaims) -> None:
    """The rows of a key explain its cell where they differ by just what the cell does."""
    change = sum(row.row_hash * row.count for row in here) - sum(row.row_hash * row.count for row in there)
    claimed = -claim.row if claim.kind is Kind.MISSING else claim.row
    differences = list(compare_rows(here, there)) if (change - claimed) % (1 << 64) == 0 else []
    if differences:
        matched.differences += differences
    else:
        matched.refuted.append(claim)


def _add_single_row(claim: Claim, rows: Sequence[Row], matched: MatchedClaims) -> None:
    row = next((row for row in rows if row.row_hash == claim.row), None)
    if row is None:
        matched.refuted.append(claim)
        return
    # All else of the cell is the same on both sides: what remains of the key on this one, the other one has.
    more = sum(other.count for other in rows if other.key_hash == row.key_hash) > 1
    matched.differences.append(_one_sided(claim.kind, more, row.values))


def _one_sided(kind: Kind, has_key: bool, values: Texts, count: int = 1) -> Difference:
    if kind is Kind.SURPLUS:
        return Difference(Kind.DOUBLED if has_key else Kind.SURPLUS, here=values, count=count)
    return Difference(Kind.DOUBLED_THERE if has_key else Kind.MISSING, there=values, count=count)


def compare_rows(here: Collection[Row], there: Collection[Row]) -> Iterator[Difference]:
    """All differences between rows that are there completely: those of whole cells."""
    keys_here, keys_there = _by_key(here), _by_key(there)
    for key in dict.fromkeys((*keys_here, *keys_there)):
        yield from _compare_key(keys_here[key], keys_there[key])


_HashedTexts: TypeAlias = tuple[int, Texts]
"""Rows are the same where their hashes are; texts are for people."""


def _by_key(rows: Iterable[Row]) -> Mapping[int, Counter[_HashedTexts]]:
    by_key: dict[int, Counter[_HashedTexts]] = defaultdict(Counter)
    for row in rows:
        by_key[row.key_hash][row.row_hash, row.values] += row.count
    return by_key


def _compare_key(here: Counter[_HashedTexts], there: Counter[_HashedTexts]) -> Iterator[Difference]:
    """Rows that are the same go first; those that are left over on both sides are changed, the most alike with each other."""
    in_both = bool(here and there)
    more_here, more_there = here - there, there - here
    for mine in list(more_here):
        while more_here[mine] and more_there:
            theirs = max(more_there, key=lambda other: _alike(mine, other))
            count = min(more_here[mine], more_there[theirs])
            yield Difference(Kind.CHANGED, mine[1], theirs[1], count)
            more_here, more_there = more_here - Counter({mine: count}), more_there - Counter({theirs: count})
    for (_, values), count in more_here.items():
        yield _one_sided(Kind.SURPLUS, in_both, values, count)
    for (_, values), count in more_there.items():
        yield _one_sided(Kind.MISSING, in_both, values, count)


def _alike(row: _HashedTexts, other: _HashedTexts) -> int:
    """How many columns have the same value."""
    return sum(value == other_value for value, other_value in zip(row[1], other[1], strict=True))
