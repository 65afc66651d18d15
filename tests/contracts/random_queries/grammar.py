"""Random queries of a dialect. They are built from what columns there are, so most of them run; names collide on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

from tests.contracts.random_queries.dialects import Dialect
from tests.contracts.random_queries.tables import COLUMNS, DAYS, FIRST_DAY

_ALIASES = ("f", "g", "h", "F", "x", "ts", "flights", "trips", "planes")
_OUTPUT_NAMES = ("a", "b", "c", "ts", "ts", "flight_date", "id", "carrier", "flights")
_COMPARISONS = ("=", "<", "<=", ">", ">=")
_KINDS = ("time", "time", "day", "int", "text")
_AGGREGATES = {"int": ("count(*)", "sum({0})", "max({0})", "count(DISTINCT {0})"), "*": ("max({0})", "min({0})")}
_WINDOWS = {
    "int": ("rank() OVER (ORDER BY {0})", "count(*) OVER (PARTITION BY {0})", "dense_rank() OVER (ORDER BY {0} DESC)"),
    "*": ("max({0}) OVER (ORDER BY {0})", "min({0}) OVER ()", "last_value({0}) OVER (ORDER BY {0})", "first_value({0}) OVER (ORDER BY {0})"),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    name: str
    kind: str
    source: str = ""
    """The name of what it comes from, as it is written; empty: it has none."""
    is_shared: bool = False
    """Another source of the same FROM has one of its name."""


@dataclass(frozen=True)
class Source:
    sql: str
    columns: tuple[Column, ...]
    name: str = ""


@dataclass
class RandomQuery:
    """One query; `forms` are the names of what stands in it, among them most likely the `favourite`."""

    random: Random
    dialect: Dialect
    favourite: str = ""
    forms: set[str] = field(default_factory=set)
    sql: str = ""
    budget: int = 0
    """How many SELECTs are left: each nested one takes one."""

    def __post_init__(self) -> None:
        self.budget = self.random.choice((1, 1, 1, 2, 2, 3, 5))
        self.sql = self._query(self._some_kinds(), {}, ())

    # Small choices

    def _chance(self, share: float, form: str = "") -> bool:
        """With a name: only where the dialect has that form."""
        if form and form not in self.dialect.features:
            return False
        if self.random.random() >= (max(share, 0.7) if form and form == self.favourite else share):
            return False
        if form:
            self.forms.add(form)
        return True

    def _form(self, forms: Sequence[str]) -> str:
        form = self.favourite if self.favourite in forms and self.random.random() < 0.7 else self.random.choice(forms)
        self.forms.add(form)
        return form

    def _some_kinds(self) -> tuple[str, ...]:
        return tuple(self.random.choices(_KINDS, k=self.random.choice((1, 2, 2, 3))))

    def _day(self) -> str:
        return f"{FIRST_DAY + timedelta(days=self.random.randrange(DAYS)):%Y-%m-%d}"

    def _constant(self, kind: str) -> str:
        if kind in self.dialect.constants:
            return _of_day(self.random.choice(self.dialect.constants[kind]), self._day())
        return str(self.random.randrange(5)) if kind == "int" else self.random.choice(("'AA'", "'flights'"))

    # Queries

    def _query(self, kinds: Sequence[str], ctes: dict[str, tuple[Column, ...]], outer: Sequence[Column]) -> str:
        self.budget -= 1
        if self.budget > 0 and self._chance(0.3, "with"):
            return self._with(kinds, ctes, outer)
        return self._body(kinds, ctes, outer)

    def _body(self, kinds: Sequence[str], ctes: dict[str, tuple[Column, ...]], outer: Sequence[Column]) -> str:
        if self.budget > 0 and self._chance(0.12):
            operation = self._form(self.dialect.set_operations)
            left, right = (self._select(kinds, ctes, outer, is_ordered=False)[0] for _ in range(2))
            return f"{left} {operation} {right}"
        return self._select(kinds, ctes, outer)[0]

    def _with(self, kinds: Sequence[str], ctes: dict[str, tuple[Column, ...]], outer: Sequence[Column]) -> str:
        visible, parts = dict(ctes), list[str]()
        is_recursive = self._chance(0.3, "recursive")
        for _ in range(self.random.choice((1, 1, 2))):
            name = self.random.choice(("flights", "trips", "recent", "planes", "days"))
            if any(part.lower().startswith((name, f'"{name}')) for part in parts):
                continue
            columns = self._cte_columns(name)
            if is_recursive and self._chance(0.5):
                query = self._recursion(name, columns, visible)
            else:
                query = self._query([column.kind for column in columns], visible, ())
            written, seen = name, name
            if self._chance(0.15, "other letters"):
                written = self.random.choice((f'"{name.title()}"', name.upper(), f'"{name}"'))
            listed = ", ".join(column.name for column in columns)
            kept = (
                self.random.choice(("", "MATERIALIZED ", "NOT MATERIALIZED "))
                if self._chance(0.2, "MATERIALIZED")
                else ""
            )
            parts.append(f"{written} ({listed}) AS {kept}({query})")
            if written in (name, name.upper(), f'"{name}"') or self.dialect.name != "postgres":
                visible[seen] = tuple(columns)
        body = self._body(kinds, visible, outer)
        return f"WITH {'RECURSIVE ' if is_recursive else ''}{', '.join(parts)} {body}"

    def _cte_columns(self, name: str) -> list[Column]:
        kinds = COLUMNS.get(name, {"ts": "time", "id": "int"})
        if self._chance(0.4):
            kinds = {column: kind for column, kind in kinds.items() if self._chance(0.7)} or {"ts": "time"}
        return [Column(column, kind) for column, kind in kinds.items()]

    def _recursion(self, name: str, columns: Sequence[Column], ctes: dict[str, tuple[Column, ...]]) -> str:
        """At most as many rows as there are different ones: UNION stops where nothing is new."""
        first = self._select([column.kind for column in columns], ctes, (), is_ordered=False)[0]
        listed = ", ".join(f"r.{column.name}" for column in columns)
        joined = self.random.choice(("", "", " JOIN flights ON r.{0} = flights.id", " JOIN trips ON r.{0} = trips.id"))
        number = next((column.name for column in columns if column.kind == "int"), None)
        return f"{first} UNION SELECT {listed} FROM {name} r{joined.format(number) if number else ''}"

    def _select(
        self,
        kinds: Sequence[str],
        ctes: dict[str, tuple[Column, ...]],
        outer: Sequence[Column],
        *,
        is_ordered: bool = True,
    ) -> tuple[str, list[str]]:
        from_, columns = self._from(ctes)
        is_asof = "ASOF" in from_
        mode = self.random.choices(
            ("plain", "grouped", "window"), (6, 2, 2 if "windows" in self.dialect.features else 0)
        )[0]
        items, names = self._items(kinds, mode, columns)
        distinct = "DISTINCT " if self._chance(0.1) else ""
        if mode == "plain" and not distinct and not is_asof and is_ordered and self._chance(0.1, "DISTINCT ON"):
            distinct = "DISTINCT ON (1) "
        where = f" WHERE {self._condition(columns, ctes, outer)}" if self._chance(0.9) else ""
        sql = f"SELECT {distinct}{', '.join(items)} FROM {from_}{where}"
        if mode == "plain" and not distinct and self._chance(0.05, "FROM first"):
            sql = f"FROM {from_} SELECT {', '.join(items)}{where}"
        if mode == "grouped" and columns and self._chance(0.6):
            grouped = self.random.choice(columns)
            sql += f" GROUP BY {self._written(grouped)}"
            if self._chance(0.5):
                sql += f" HAVING {self._atom(grouped)}"
                self.forms.add("HAVING")
        if mode == "window" and self._chance(0.3, "QUALIFY"):
            sql += f" QUALIFY {self._atom(self.random.choice(columns)) if columns else 'TRUE'} AND count(*) OVER () > 0"
        if self._chance(0.04, "USING SAMPLE"):
            return f"{sql} USING SAMPLE reservoir(3 ROWS) REPEATABLE (7)", names
        if is_ordered and (distinct.startswith("DISTINCT ON") or self._chance(0.15)):
            sql += f" ORDER BY {', '.join(str(place + 1) for place in range(len(items)))}"
            if self._chance(0.8):
                sql += f" LIMIT {self.random.randint(1, 4)}"
                self.forms.add("LIMIT")
            sql = f"SELECT * FROM ({sql}) ordered" if self.random.random() < 0.3 else sql
        return sql, names

    def _items(self, kinds: Sequence[str], mode: str, columns: Sequence[Column]) -> tuple[list[str], list[str]]:
        items, names = list[str](), list[str]()
        for place, kind in enumerate(kinds):
            expression, name = self._expression(kind, mode, columns)
            if not name or name in names or self._chance(0.4):
                name = self.random.choice(_OUTPUT_NAMES)
                name = f"o{place}" if name in names else name
                if name in ("ts", "flight_date"):
                    self.forms.add("shadowing alias")
                is_first = self._chance(0.1, "alias in front")
                expression = f"{name}: {expression}" if is_first else f"{expression} AS {name}"
            items.append(expression)
            names.append(name)
        return items, names

    def _expression(self, kind: str, mode: str, columns: Sequence[Column]) -> tuple[str, str]:
        """And its own name, if it has one."""
        of_kind = [column for column in columns if column.kind == kind]
        if not of_kind:
            return self._typed(kind), ""
        column = self.random.choice(of_kind)
        written = self._written(column)
        if mode == "plain":
            return (self._typed(kind), "") if self._chance(0.06) else (written, column.name)
        forms = _AGGREGATES if mode == "grouped" else _WINDOWS
        if mode == "window":
            self.forms.add("windows")
        return self.random.choice(forms.get(kind, forms["*"])).format(written), ""

    def _typed(self, kind: str) -> str:
        """A constant that is of its kind wherever it stands."""
        if kind == "time" and not self.dialect.has_text_times:
            return f"CAST('{self._day()} 07:00:00' AS {'DATETIME' if self.dialect.name == 'mysql' else 'TIMESTAMP'})"
        return self._constant(kind)

    # FROM

    def _from(self, ctes: dict[str, tuple[Column, ...]]) -> tuple[str, list[Column]]:
        first = self._source(ctes)
        sql, columns, names = first.sql, list(first.columns), {first.name.lower()}
        for _ in range(self.random.choices((0, 1, 2), (5, 4, 1))[0]):
            source = self._source(ctes)
            if source.name.lower() in names:
                continue
            kind = self._form(self.dialect.joins)
            sql, columns = self._joined(kind, sql, columns, source, ctes)
            names.add(source.name.lower())
        if len(names) > 1 and ", " not in sql.split("(", 1)[0] and self._chance(0.06, "parentheses"):
            sql = f"({sql})"
        return sql, _with_shared(columns)

    def _joined(
        self, kind: str, sql: str, columns: list[Column], source: Source, ctes: dict[str, tuple[Column, ...]]
    ) -> tuple[str, list[Column]]:
        right, both = list(source.columns), [*columns, *source.columns]
        if kind == "LATERAL":
            inner = self._select(["time", "int"], ctes, columns, is_ordered=False)[0]
            columns_of_it = [Column("la", "time", "lateral_"), Column("lb", "int", "lateral_")]
            return f"{sql} CROSS JOIN LATERAL ({inner}) lateral_ (la, lb)", [*columns, *columns_of_it]
        if kind in ("CROSS JOIN", "POSITIONAL JOIN", ",") or "NATURAL" in kind:
            return (f"{sql}, {source.sql}" if kind == "," else f"{sql} {kind} {source.sql}"), both
        seen = columns if kind in ("SEMI JOIN", "ANTI JOIN") else both
        if kind.startswith("ASOF"):
            kinds = [(left, column) for left in columns for column in right if left.kind == column.kind == "time"]
            if not kinds:
                return f"{sql} CROSS JOIN {source.sql}", both
            left, column = self.random.choice(kinds)
            return f"{sql} {kind} {source.sql} ON {self._written(left, True)} >= {self._written(column, True)}", both
        shared = {column.name for column in columns} & {column.name for column in right}
        if shared and self._chance(0.15):
            self.forms.add("USING")
            return f"{sql} {kind} {source.sql} USING ({self.random.choice(sorted(shared))})", seen
        return f"{sql} {kind} {source.sql} ON {self._on(columns, right)}", seen

    def _on(self, left: Sequence[Column], right: Sequence[Column]) -> str:
        pairs = [(column, other) for column in left for other in right if column.kind == other.kind]
        condition = "1 = 1"
        if pairs:
            condition = " = ".join(self._written(column, True) for column in self.random.choice(pairs))
        if self._chance(0.5):
            condition += f" {self.random.choice(('AND', 'AND', 'AND', 'OR'))} {self._atom(self.random.choice([*left, *right]), True)}"
        return condition

    def _source(self, ctes: dict[str, tuple[Column, ...]]) -> Source:
        alias = self.random.choice(_ALIASES)
        if self.budget > 0 and self._chance(0.2):
            kinds = self._some_kinds()
            sql, names = self._select_within(kinds, ctes)
            return Source(
                f"({sql}) AS {alias}",
                tuple(Column(name, kind, alias) for name, kind in zip(names, kinds, strict=True)),
                alias,
            )
        if self._chance(0.04, "values"):
            columns = (Column("id", "int", alias), Column("carrier", "text", alias))
            return Source(f"(VALUES (1, 'AA'), (3, 'BB')) AS {alias} (id, carrier)" if self.dialect.name != "sqlite"
                          else f"(SELECT 1 AS id, 'AA' AS carrier) AS {alias}", columns, alias)  # fmt: skip
        if self._chance(0.03, "PIVOT"):
            return Source(f"(PIVOT flights ON id IN (1, 2) USING count(*)) AS {alias}",
                          tuple(Column(name, kind, alias) for name, kind in COLUMNS["flights"].items() if kind != "int"), alias)  # fmt: skip
        return self._table(ctes, alias)

    def _select_within(self, kinds: Sequence[str], ctes: dict[str, tuple[Column, ...]]) -> tuple[str, list[str]]:
        self.budget -= 1
        return self._select(kinds, ctes, ())

    def _table(self, ctes: dict[str, tuple[Column, ...]], alias: str) -> Source:
        name = self.random.choice(
            (
                "flights",
                "flights",
                "flights",
                "flights",
                "trips",
                "trips",
                "trips",
                "planes",
                "cities",
                "stays",
                "nights",
                *ctes,
                *ctes,
            )
        )
        columns = ctes.get(name) or tuple(Column(column, kind) for column, kind in COLUMNS.get(name, {}).items())
        written = name
        if name in COLUMNS and self._chance(0.2):
            form = self._form(self.dialect.table_forms)
            written = form.format(name)
            if "." in form:
                columns = tuple(Column(column, kind) for column, kind in COLUMNS[name].items())
        elif self.dialect.name != "mysql" and self._chance(0.1):
            written = name.upper()
        if "SAMPLE" in written:
            named = (
                written.replace(" TABLESAMPLE", f" AS {alias} TABLESAMPLE")
                if self.dialect.name == "postgres"
                else written
            )
            return Source(
                named, tuple(replace(column, source="") for column in columns), "" if named == written else alias
            )
        if self._chance(0.05, "column aliases"):
            names = [column.name for column in columns]
            self.random.shuffle(names)
            renamed = tuple(Column(new, column.kind, alias) for new, column in zip(names, columns, strict=True))
            return Source(f"{written} AS {alias} ({', '.join(names)})", renamed, alias)
        if written == name and self._chance(0.4):
            return Source(written, tuple(replace(column, source=name) for column in columns), name)
        return Source(f"{written} AS {alias}", tuple(replace(column, source=alias) for column in columns), alias)

    # Conditions

    def _condition(
        self, columns: Sequence[Column], ctes: dict[str, tuple[Column, ...]], outer: Sequence[Column]
    ) -> str:
        if not columns:
            return "1 = 1"
        times = [column for column in columns if column.kind in ("time", "day", "digits", "number")]
        parts = [self._clause(columns, ctes, outer) for _ in range(self.random.choice((0, 0, 1, 1, 2)))]
        if times and self._chance(0.95):
            time = self.random.choice(times)
            parts.append(self._bound(time) if self._chance(0.5) else self._atom(time))
        self.random.shuffle(parts)
        sql = parts[0] if parts else "1 = 1"
        for part in parts[1:]:
            joiner = self.random.choices(("AND", "OR"), (8, 1))[0]
            sql = f"{sql} {joiner} {part}" if self._chance(0.7) else f"({sql}) {joiner} ({part})"
        return sql

    def _bound(self, column: Column) -> str:
        """What bounds, and sometimes on both sides."""
        written = self._written(column)
        low, high = sorted((self._day(), self._day()))
        form = self.random.choice(
            ("{0} = {1}", "{0} BETWEEN {1} AND {2}", "{0} >= {1} AND {0} < {2}", "{0} IN ({1}, {2})", "{0} < {2}")
        )
        typed = self.random.choice(self.dialect.constants[column.kind])
        return f"({form.format(written, _of_day(typed, low), _of_day(typed, high))})"

    def _clause(self, columns: Sequence[Column], ctes: dict[str, tuple[Column, ...]], outer: Sequence[Column]) -> str:
        column = self.random.choice(columns)
        if self.budget > 0 and self._chance(0.3, "correlated"):
            return self._subquery(column, columns, ctes)
        if column.kind == "int" and self._chance(0.25, "IN name"):
            return (
                f"({self._written(column)}, 1) IN ids"
                if self._chance(0.2)
                else f"{self._written(column)} IN {self._id_source()}"
            )
        if outer and self._chance(0.4):
            other = self.random.choice(outer)
            return self._atom(other, True)
        return self._atom(column)

    def _id_source(self) -> str:
        return self.random.choice(("ids", "main.ids", '"ids"', "IDS"))

    def _subquery(self, column: Column, columns: Sequence[Column], ctes: dict[str, tuple[Column, ...]]) -> str:
        self.budget -= 1
        inner = self._select([column.kind], ctes, columns, is_ordered=False)[0]
        written = self._written(column)
        form = self.random.choice(
            ("{0} IN ({1})", "{0} NOT IN ({1})", "EXISTS ({1})", "NOT EXISTS ({1})", "{0} >= ({2})", "{0} = ({2})")
        )
        aggregate = (
            f"SELECT max(m.v) FROM (SELECT * FROM ({inner}) k) m"
            if self.dialect.name == "mysql"
            else f"SELECT max(v) FROM ({inner}) m (v)"
        )
        if self.dialect.name in ("sqlite", "mysql"):
            aggregate = f"{inner} ORDER BY 1 LIMIT 1" if "{2}" in form else aggregate
        return f"{form.format(written, inner, aggregate)}"

    def _atom(self, column: Column, is_qualified: bool = False) -> str:
        written = self._written(column, is_qualified)
        if column.kind not in self.dialect.constants:
            constant = self._constant(column.kind)
            return self.random.choice(
                (
                    f"{written} {self.random.choice(_COMPARISONS)} {constant}",
                    f"{written} IS NULL",
                    f"{written} <> {constant}",
                )
            )
        shape = self.random.random()
        if shape < 0.25:
            odd = self._form(self.dialect.odd_conditions)
            while "{c}" in odd:
                odd = odd.replace("{c}", self._constant(column.kind), 1)
            return f"({odd.format(written)})"
        if shape < 0.6:
            form = self._form(self.dialect.wrapped[column.kind])
            return _of_day(form, self._day(), written, op=self.random.choice(_COMPARISONS))
        sides = [written, self._constant(column.kind)]
        if self._chance(0.2):
            sides.reverse()
        return f" {self.random.choice(_COMPARISONS)} ".join(sides)

    def _written(self, column: Column, is_qualified: bool = False) -> str:
        name = column.name
        if self._chance(0.03):
            name = self.random.choice((name.upper(), f"`{name}`" if self.dialect.name == "mysql" else f'"{name}"'))
        share = 0.97 if column.is_shared else 0.5
        return f"{column.source}.{name}" if column.source and (is_qualified or self._chance(share)) else name


def _of_day(form: str, day: str, *place: str, **parts: str) -> str:
    """With the day as it is written, and as digits only."""
    return form.format(*place, d=day, n=day.replace("-", ""), **parts)


def _with_shared(columns: Sequence[Column]) -> list[Column]:
    count = Counter(column.name for column in columns)
    return [replace(column, is_shared=count[column.name] > 1) for column in columns]
