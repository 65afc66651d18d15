"""What the names of columns in a SELECT stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from ingestion.domain.pipelines.affected.not_followed import NotFollowed
from ingestion.domain.pipelines.affected.shapes import InputTable, MissingColumn, Place, column_of
from lakehub.kernel.suggest import did_you_mean

Made = Mapping[str, exp.Expr]
"""Columns of the SELECT itself, by name, for which a name without a table may stand as well."""
MAX_COPIED = 10_000
"""Parts of expressions that are written in the place of names for them."""


@dataclass
class Names:
    """`places`: whose `on` is not looked at. `missing`: the names that stood for nothing."""

    places: Sequence[Place]
    missing: list[MissingColumn] = field(default_factory=list)
    copied: int = 0

    def qualified(self, expression: exp.Expr, made: Made | None = None) -> exp.Expr:
        """The same with the alias of its place before each column, where it can be of one only."""

        def resolved(node: exp.Expr) -> exp.Expr:
            is_column = isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
            return self._resolved(node, made or {}) if is_column else node

        return expression.transform(resolved)

    def _resolved(self, column: exp.Expr, made: Made) -> exp.Expr:
        parts = [part.name for part in column.parts]  # type: ignore[attr-defined]
        alias = parts[0].lower()
        if len(parts) > 1 and (place := self.by_alias(alias)) is not None:
            _, name, *fields = parts
            if not fields:
                self._note_missing(name, place)
            return _with_fields(column_of(alias, name), fields)
        name, *fields = parts
        places = self.places_with(name)
        if not places and name.lower() in made:
            return _with_fields(self._copy(made[name.lower()]), fields)
        if not places and fields:
            raise NotFollowed(
                f"`{'.'.join((name, *fields))}` is of no table that its SELECT reads: a query in brackets sees the columns of the one around it only in the WHERE of EXISTS."
            )
        if not places:
            self._note_missing(name)
        return _with_fields(column_of(places[0].alias, name), fields) if len(places) == 1 else column

    def _copy(self, value: exp.Expr) -> exp.Expr:
        self.copied += sum(1 for _ in value.walk())
        if self.copied > MAX_COPIED:
            raise NotFollowed(
                "Its columns are computed from each other too often: write them in a WITH, one step after another."
            )
        is_one_word = isinstance(value, exp.Column | exp.Literal | exp.Paren)
        return value.copy() if is_one_word else exp.Paren(this=value.copy())

    def by_alias(self, alias: str) -> Place | None:
        return next((place for place in self.places if place.alias == alias.lower()), None)

    def places_with(self, column: str) -> list[Place]:
        """Those that it may be of, where no table stands before it."""
        name = column.lower()
        return [
            place
            for place in self.places
            if not place.is_hidden and name not in place.using and has_column(place, name) is not False
        ]

    def _note_missing(self, name: str, place: Place | None = None) -> None:
        reached = self.places if place is None else [place]
        columns = [each.source.columns for each in reached]
        known = sorted({name for names in columns for name in names or ()})
        if None not in columns and name.lower() not in (each.lower() for each in known):
            self.missing.append(
                MissingColumn(name, "" if place is None else _name_of(place), did_you_mean(name, known))
            )


def has_column(place: Place, name: str) -> bool | None:
    """None: it is not known."""
    columns = place.source.columns
    return None if columns is None else name.lower() in {column.lower() for column in columns}


def _name_of(place: Place) -> str:
    return place.source.name if isinstance(place.source, InputTable) else place.alias


def _with_fields(value: exp.Expr, fields: Sequence[str]) -> exp.Expr:
    """Parts of a value that is a struct."""
    for name in fields:
        value = exp.Dot(this=value, expression=exp.to_identifier(name, quoted=True))
    return value
