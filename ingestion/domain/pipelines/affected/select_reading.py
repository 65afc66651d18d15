"""One SELECT while it is taken apart: what it reads, what it makes of it, and what its groups and windows go by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp
from sqlglot.helper import ensure_list

from ingestion.domain.pipelines.affected.computed import conjuncts, has_aggregate
from ingestion.domain.pipelines.affected.names import Made, Names, has_column
from ingestion.domain.pipelines.affected.not_followed import NotFollowed, shown
from ingestion.domain.pipelines.affected.partners import (
    conditions_on_partners,
    is_member,
    select_of_exists,
    without_outer_columns,
)
from ingestion.domain.pipelines.affected.shapes import PARTNER, Output, Place, Query, Selection, Source, column_of
from ingestion.domain.pipelines.view_names import OWN


class Definitions(Protocol):
    """What stands behind names and brackets."""

    def query(self, tree: exp.Expr, /) -> Query: ...

    def source(self, tree: exp.Expr, /) -> Source: ...


@dataclass
class SelectReading:
    """One SELECT while it is taken apart."""

    tree: exp.Select
    definitions: Definitions

    def selection(self) -> Selection:
        drafts = self.places()
        names = Names(drafts)
        where, partners = self._where(names)
        drafts += partners
        _refuse_queries_within(self._expressions(where, drafts))
        places = tuple(replace(place, on=None if place.on is None else names.qualified(place.on)) for place in drafts)
        outputs, open_places = _outputs(self.tree, names, places)
        made = {output.name: output.value for output in outputs if output.name}
        grouping = self._grouping(names, outputs)
        windows = tuple(self._windows(names, made))
        for clause in ("having", "order", "qualify"):
            for node in ensure_list(self.tree.args.get(clause)):
                names.qualified(node, made)
        return Selection(
            places,
            tuple(outputs),
            open_places,
            None if where is None else names.qualified(where),
            grouping,
            windows,
            self.tree.args.get("distinct") is not None,
            tuple(names.missing),
        ).checked()

    # Places

    def places(self) -> list[Place]:
        first = self.tree.args.get("from_")
        if first is None:
            raise NotFollowed("It reads no table: write `FROM <SRC>`.")
        places = [Place(self._alias(first.this, 0), self.definitions.source(first.this))]
        for number, join in enumerate(self.tree.args.get("joins") or (), 1):
            places.append(self._joined(join, number, places))
        aliases = [place.alias for place in places]
        if doubled := [alias for alias in aliases if aliases.count(alias) > 1]:
            raise NotFollowed(f"Two tables are called `{doubled[0]}`: give each an alias of its own.")
        return places

    def _alias(self, tree: exp.Expr, number: int) -> str:
        return tree.alias_or_name.lower() or f"{OWN}place_{number}"

    def _joined(self, join: exp.Join, number: int, before: list[Place]) -> Place:
        side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
        is_only_looked_at = kind in ("SEMI", "ANTI")
        if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI") or method:
            words = " ".join(filter(None, (method, side, kind)))
            raise NotFollowed(f"It has a {words} JOIN: write it with JOIN or LEFT JOIN.")
        using = tuple(name.name.lower() for name in join.args.get("using") or ())
        place = Place(
            self._alias(join.this, number),
            self.definitions.source(join.this),
            join.args.get("on"),
            using,
            side == "LEFT" or is_only_looked_at,
            is_only_looked_at,
        )
        return replace(place, on=_by_using(place, using, before)) if using else place

    # Conditions

    def _where(self, names: Names) -> tuple[exp.Expr | None, list[Place]]:
        """Without what asks for a partner elsewhere, and the places where it does."""
        where = self.tree.args.get("where")
        if where is None:
            return None, []
        kept, partners = list[exp.Expr](), list[Place]()
        for condition in conjuncts(where.this):
            asking = [*conditions_on_partners(condition)]
            within = {id(node) for each in asking for node in each.walk()}
            _refuse_queries_within(query for query in condition.find_all(exp.Query) if id(query) not in within)
            partners += [self._partner(each, len(partners) + n, names) for n, each in enumerate(asking)]
            if not asking:
                kept.append(condition)
        return (exp.and_(*kept) if kept else None), partners

    def _partner(self, node: exp.In | exp.Exists, number: int, outer: Names) -> Place:
        alias = f"{PARTNER}{number}"
        if isinstance(node, exp.In):
            query = self.definitions.query(node.args["query"])
            return Place(alias, query, is_member(node, query, alias), is_optional=True, is_hidden=True)
        tree = select_of_exists(node)
        rows, on = without_outer_columns(tree, Names(SelectReading(tree, self.definitions).places()), outer, alias)
        return Place(alias, self.definitions.query(rows), on, is_optional=True, is_hidden=True)

    def _expressions(self, where: exp.Expr | None, places: Iterable[Place]) -> Iterator[exp.Expr]:
        yield from self.tree.expressions
        yield from (place.on for place in places if place.on is not None)
        if where is not None:
            yield where
        for clause in ("group", "having", "order", "qualify", "windows"):
            yield from ensure_list(self.tree.args.get(clause))

    # Groups and windows

    def _grouping(self, names: Names, outputs: list[Output]) -> tuple[exp.Expr, ...] | None:
        group = self.tree.args.get("group")
        if group is None:
            expressions = [output.value for output in outputs]
            if self.tree.args.get("having") is not None or any(map(has_aggregate, expressions)):
                raise NotFollowed("It has an aggregate and no GROUP BY: group by the record key.")
            return None
        is_several = group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
        if is_several or any(group.args.get(kind) for kind in ("all", "totals")):
            raise NotFollowed(
                "GROUP BY has ROLLUP, CUBE, GROUPING SETS or ALL: group by columns, and chain a pipeline for each further level."
            )
        return tuple(self._grouped(each, names, outputs) for each in group.expressions)

    def _grouped(self, expression: exp.Expr, names: Names, outputs: list[Output]) -> exp.Expr:
        """A number or an alias stands for the column that it names."""
        if isinstance(expression, exp.Literal) and expression.is_int and 0 < int(expression.this) <= len(outputs):
            return outputs[int(expression.this) - 1].value
        if isinstance(expression, exp.Column) and not expression.table:
            name = expression.name.lower()
            is_of_place = any(has_column(place, name) for place in names.places)
            aliases = [each.alias.lower() for each in self.tree.expressions if isinstance(each, exp.Alias)]
            if name in aliases and not is_of_place:
                return next(output.value for output in outputs if output.name == name)
        return names.qualified(expression)

    def _windows(self, names: Names, made: Made) -> Iterator[tuple[exp.Expr, ...]]:
        """Of each the expressions of its PARTITION BY. Those that only the order of the result goes by change no row."""
        definitions = {each.name.lower(): each for each in self.tree.args.get("windows") or ()}
        for node in (*self.tree.expressions, *ensure_list(self.tree.args.get("qualify"))):
            for window in node.find_all(exp.Window):
                named = definitions.get(window.alias.lower())
                expressions = window.args.get("partition_by") or (named.args.get("partition_by") if named else None)
                if not expressions:
                    raise NotFollowed(
                        f"It has a window without PARTITION BY, `{shown(window)}`: a row that changes then reaches all others. Partition it by the record key or a part of it."
                    )
                yield tuple(names.qualified(each, made) for each in expressions)


def _by_using(place: Place, using: Iterable[str], before: list[Place]) -> exp.Expr:
    """USING as ON."""
    conditions = []
    for name in using:
        having = Names(before).places_with(name) or before
        conditions.append(exp.EQ(this=column_of(having[0].alias, name), expression=column_of(place.alias, name)))
    return exp.and_(*conditions)


def _refuse_queries_within(expressions: Iterable[exp.Expr]) -> None:
    for expression in expressions:
        query = expression.find(exp.Query)
        if query is not None:
            raise NotFollowed(
                f"It has a query within an expression, `{shown(query)}`: join it, as `LEFT JOIN (SELECT ...)`, or write NOT EXISTS where it stands after NOT IN."
            )


def _outputs(tree: exp.Select, names: Names, places: tuple[Place, ...]) -> tuple[list[Output], tuple[Place, ...]]:
    """The second: places of whose columns not all are known, all of which it makes."""
    outputs, open_places, made = list[Output](), list[Place](), dict[str, exp.Expr]()
    for item in tree.expressions:
        if _is_star(item):
            made_by_star = list[Output]()
            for place in _starred(item, places):
                if place.source.columns is None:
                    open_places.append(place)
                made_by_star += _columns_of_star(item, place)
            outputs += made_by_star if isinstance(item, exp.Column) else _as_joined(made_by_star, places)
            continue
        value = names.qualified(item.unalias(), made)
        is_named = isinstance(item, exp.Alias | exp.Column | exp.Dot)
        outputs.append(Output(item.alias_or_name.lower() if is_named else "", value))
        if isinstance(item, exp.Alias):
            made.setdefault(item.alias.lower(), value)
    return outputs, tuple(open_places)


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _starred(item: exp.Expr, places: tuple[Place, ...]) -> Iterator[Place]:
    if isinstance(item, exp.Star):
        yield from (place for place in places if not place.is_hidden)
    else:
        alias = item.args["table"].name.lower()
        yield from (place for place in places if place.alias == alias)


def _as_joined(outputs: list[Output], places: tuple[Place, ...]) -> list[Output]:
    """In the order of `*`: each USING puts its columns first."""
    for place in places:
        rank = {name: number for number, name in enumerate(place.using)}
        outputs = sorted(outputs, key=lambda output, rank=rank: rank.get(output.name, len(rank)))  # type: ignore[misc]
    return outputs


def _columns_of_star(item: exp.Expr, place: Place) -> Iterator[Output]:
    star = item if isinstance(item, exp.Star) else item.this
    if star.args.get("replace") or star.args.get("rename"):
        raise NotFollowed(f"It has `{shown(item)}`: write the columns out.")
    left_out = {each.name.lower() for each in star.args.get("except_") or ()}
    if isinstance(item, exp.Star):
        left_out |= {*place.using}
    for name in place.source.columns or ():
        if name.lower() not in left_out:
            yield Output(name.lower(), column_of(place.alias, name))
