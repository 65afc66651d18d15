"""Which schemas may follow each other in a subject: can those who read by one read what was written by the other?

Names and the promotions of numbers are those of the Avro specification (Schema Resolution); beyond it decimals and times are compared, as a reader that takes
milliseconds for microseconds reads without an error and wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from math import inf
from typing import Any

from ingestion.domain.avro.schema_tree import NAMED, Logical, Node, tree_of

Avro = Any
"""A schema as JSON."""
_PROMOTIONS = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip
"""What was written as the first may be read as the second."""
MAX_REASONS = 20
MAX_PAIRS, MAX_PAIRS_OF_ALL = 200_000, 2_000_000
"""Of types that are compared, with one version and with all that count; a usual schema takes a few for each of its fields. Many types of one short name in
two unions would be compared each with each."""
_MAX_NAMED = 5


class TooManyPairs(ValueError):
    """The schemas have more types to be compared than anybody waits for."""


class Compatibility(StrEnum):
    """Of a new version with the one before it, or with all versions (transitive). Backward: by the new one what was written by the old can be read."""

    NONE = "none"
    BACKWARD = "backward"
    BACKWARD_TRANSITIVE = "backward_transitive"
    FORWARD = "forward"
    FORWARD_TRANSITIVE = "forward_transitive"
    FULL = "full"
    FULL_TRANSITIVE = "full_transitive"

    @property
    def is_transitive(self) -> bool:
        return self.value.endswith("_transitive")

    @property
    def looks_backward(self) -> bool:
        return self.value.startswith(("backward", "full"))

    @property
    def looks_forward(self) -> bool:
        return self.value.startswith(("forward", "full"))


@dataclass(frozen=True)
class Incompatibility:
    """`path`: of the field in question, such as `row.stops[].lat`; empty: the schema itself."""

    path: str
    reason: str

    def within(self, name: str) -> Incompatibility:
        """Of the type that has the field `name`, or `[]`."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        return Incompatibility(f"{name}{separator}{self.path}", self.reason)

    def __str__(self) -> str:
        return f"`{self.path}` {self.reason}" if self.path else self.reason


@dataclass(frozen=True)
class Refusal:
    """Why a schema may not follow. `version`: of the older one."""

    version: int
    problem: Incompatibility
    is_backward: bool

    def __str__(self) -> str:
        who = "The new schema cannot read" if self.is_backward else "Readers of"
        what = f" what version {self.version} wrote" if self.is_backward else f" version {self.version} cannot read it"
        return f"{who}{what}: {self.problem}."


def refusals(
    rule: Compatibility, proposed: Avro, older_ones: Iterable[tuple[int, Avro]], *, is_limited: bool = True
) -> Iterator[Refusal]:
    """`older_ones`: the versions that count, with their numbers: the newest, or all if the rule is transitive. None: `proposed` may follow. `is_limited`: to
    MAX_PAIRS_OF_ALL; each version is to MAX_PAIRS in any case. Raises TooManyPairs."""
    budget, new = _Budget(MAX_PAIRS_OF_ALL if is_limited else inf), tree_of(proposed)
    for version, text in older_ones:
        older = tree_of(text)
        if rule.looks_backward:
            yield from (Refusal(version, problem, True) for problem in _incompatibilities(new, older, budget))
        if rule.looks_forward:
            yield from (Refusal(version, problem, False) for problem in _incompatibilities(older, new, budget))


def incompatibilities(reader: Avro, writer: Avro) -> tuple[Incompatibility, ...]:
    """Why what was written by `writer` cannot be read by `reader`, MAX_REASONS at most; none: it can. Raises NotAvro, TooManyPairs."""
    return _incompatibilities(tree_of(reader), tree_of(writer), _Budget(MAX_PAIRS))


def _incompatibilities(reader: Node, writer: Node, budget: _Budget) -> tuple[Incompatibility, ...]:
    comparison = _Comparison(min(budget.left, MAX_PAIRS))
    problems = tuple(comparison.problems(reader, writer))
    budget.left -= comparison.pairs
    return problems


@dataclass
class _Budget:
    """`left`: how many pairs of types may be compared yet."""

    left: float


@dataclass
class _Comparison:
    """By pair of types, `most` at most, what is wrong, with paths from there on; empty while they are compared, as types may hold themselves."""

    most: float
    _known: dict[tuple[int, int], list[Incompatibility]] = field(default_factory=dict)
    _branches: dict[int, dict[str, list[Node]]] = field(default_factory=dict)
    """Of unions by name."""

    @property
    def pairs(self) -> int:
        return len(self._known)

    def problems(self, reader: Node, writer: Node) -> list[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair not in self._known:
            if self.pairs >= self.most:
                raise TooManyPairs
            self._known[pair] = []
            self._known[pair] = [*islice(self._compare(reader, writer), MAX_REASONS)]
        return self._known[pair]

    def _compare(self, reader: Node, writer: Node) -> Iterator[Incompatibility]:
        if writer.kind == "union":
            for branch in writer.types:
                yield from self.problems(reader, branch)
        elif reader.kind == "union":
            yield from self._any_branch(reader, writer)
        elif reader.kind == writer.kind:
            yield from self._same_kind(reader, writer)
        elif (writer.kind, reader.kind) not in _PROMOTIONS or reader.logical or writer.logical:
            yield _mismatch(writer, _shown(reader))

    def _any_branch(self, reader: Node, writer: Node) -> Iterator[Incompatibility]:
        """What is wrong is said of the branch that is meant, if there is one of its kind."""
        meant = self._meant_branches(reader, writer)
        problems = [self.problems(branch, writer) for branch in meant]
        if not any(not reasons for reasons in problems):
            same = [reasons for branch, reasons in zip(meant, problems, strict=True) if branch.kind == writer.kind]
            yield from same[0] if same else [_mismatch(writer, _shown(reader))]

    def _meant_branches(self, reader: Node, writer: Node) -> list[Node]:
        """That may be the one which reads it. Of named types these are those by that name: there may be thousands of them."""
        if writer.kind in NAMED:
            by_name = self._branches.get(id(reader))
            if by_name is None:
                by_name = self._branches[id(reader)] = defaultdict(list)
                for branch in reader.types:
                    for name in branch.names:
                        by_name[name].append(branch)
            return [branch for branch in by_name[_short(writer.name)] if branch.kind == writer.kind]
        return [b for b in reader.types if b.kind == writer.kind or (writer.kind, b.kind) in _PROMOTIONS]

    def _same_kind(self, reader: Node, writer: Node) -> Iterator[Incompatibility]:
        if writer.kind in NAMED and _short(writer.name) not in reader.names:
            yield Incompatibility("", f"was written as the {writer.kind} {writer.name}, and is read as {reader.name}")
            return
        if not _reads_logical(reader.logical, writer.logical):
            yield _mismatch(writer, _shown(reader))
        match writer.kind:
            case "array" | "map":
                yield from (each.within("[]") for each in self.problems(reader.types[0], writer.types[0]))
            case "enum":
                yield from _symbol_problems(reader, writer)
            case "fixed" if reader.size != writer.size:
                yield Incompatibility("", f"was written with {writer.size} bytes, and is read with {reader.size}")
            case "record" | "error":
                yield from self._fields(reader, writer)

    def _fields(self, reader: Node, writer: Node) -> Iterator[Incompatibility]:
        written = {each.name: each for each in writer.fields}
        for each in reader.fields:
            twin = next((written[name] for name in (each.name, *each.aliases) if name in written), None)
            if twin is not None:
                yield from (problem.within(each.name) for problem in self.problems(each.type, twin.type))
            elif not each.has_default:
                yield Incompatibility(each.name, "is not there in what was written, and has no default")


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _reads_logical(read: Logical | None, written: Logical | None) -> bool:
    """Of one type below. A number may be a time, and a time a number; bytes are no decimal."""
    if read == written:
        return True
    if read is None or written is None:
        return "decimal" not in (*(read or ()), *(written or ()))
    return bool(read[0] == written[0] == "decimal" and read[2] == written[2] and read[1] >= written[1])


def _symbol_problems(reader: Node, writer: Node) -> Iterator[Incompatibility]:
    known = frozenset(reader.symbols)
    missing = [symbol for symbol in writer.symbols if symbol not in known]
    if missing and not reader.has_default:
        named = ", ".join(missing[:_MAX_NAMED])
        yield Incompatibility("", f"was written with symbols that are not read ({named}), and has no default")


def _mismatch(writer: Node, read_as: str) -> Incompatibility:
    return Incompatibility("", f"was written as {_shown(writer)}, and is read as {read_as}")


def _shown(node: Node) -> str:
    if node.kind == "union":
        more = " or more" if len(node.types) > _MAX_NAMED else ""
        return " or ".join(_shown(branch) for branch in node.types[:_MAX_NAMED]) + more
    if node.logical is None:
        return node.name or node.kind
    name, *parameters = node.logical
    return f"{name}({', '.join(map(str, parameters))})" if parameters else str(name)
