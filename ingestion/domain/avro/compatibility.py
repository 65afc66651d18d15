"""Which schemas may follow each other in a subject: can those who read by one read what was written by the other?

Names and the promotions of numbers are those of the Avro specification (Schema Resolution); beyond it decimals and times are compared, as a reader that takes
milliseconds for microseconds reads without an error and wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Avro = Any
"""A schema as JSON."""
_PROMOTIONS = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip
"""What was written as the first may be read as the second."""
_NAMED = ("record", "error", "enum", "fixed")


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


def refusals(rule: Compatibility, proposed: Avro, older_ones: Iterable[tuple[int, Avro]]) -> Iterator[Refusal]:
    """`older_ones`: the versions that count, with their numbers: the newest, or all if the rule is transitive. None: `proposed` may follow."""
    for version, older in older_ones:
        if rule.looks_backward:
            yield from (Refusal(version, problem, True) for problem in incompatibilities(proposed, older))
        if rule.looks_forward:
            yield from (Refusal(version, problem, False) for problem in incompatibilities(older, proposed))


def incompatibilities(reader: Avro, writer: Avro) -> tuple[Incompatibility, ...]:
    """Why what was written by `writer` cannot be read by `reader`; none: it can."""
    return tuple(_Comparison(_Names(reader), _Names(writer)).compare(reader, writer, ""))


class _Names:
    """The named types of a schema, which it mentions by name after their definition."""

    def __init__(self, schema: Avro) -> None:
        self._types: dict[str, Mapping[str, Any]] = {}
        self._collect(schema, "")

    def resolved(self, schema: Avro) -> Avro:
        if isinstance(schema, str):
            return self._types.get(schema) or self._types.get(schema.rpartition(".")[2]) or {"type": schema}
        return schema

    def _collect(self, schema: Avro, namespace: str) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch, namespace)
        if not isinstance(schema, dict):
            return
        if schema.get("type") in _NAMED:
            namespace = schema.get("namespace", namespace)
            self._types |= dict.fromkeys((schema["name"], f"{namespace}.{schema['name']}"), schema)
        for part in ("items", "values", "type"):
            self._collect(schema.get(part), namespace)
        for each in schema.get("fields", ()):
            self._collect(each["type"], namespace)


@dataclass
class _Comparison:
    reader_names: _Names
    writer_names: _Names
    _compared: set[tuple[int, int]] = field(default_factory=set)
    """Named types that hold themselves are compared once."""

    def compare(self, reader: Avro, writer: Avro, path: str) -> Iterator[Incompatibility]:
        reader, writer = self.reader_names.resolved(reader), self.writer_names.resolved(writer)
        if isinstance(writer, list):
            yield from self._all_branches(reader, writer, path)
        elif isinstance(reader, list):
            yield from self._any_branch(reader, writer, path)
        else:
            yield from self._same_kind(reader, writer, path)

    def _all_branches(self, reader: Avro, writer: Sequence[Avro], path: str) -> Iterator[Incompatibility]:
        for branch in writer:
            yield from self.compare(reader, branch, path)

    def _any_branch(self, reader: Sequence[Avro], writer: Avro, path: str) -> Iterator[Incompatibility]:
        """What is wrong is said of the branch that is meant, if there is one of its kind."""
        problems = [(branch, [*self.compare(branch, writer, path)]) for branch in reader]
        if any(not reasons for _, reasons in problems):
            return
        kind = _kind(writer)
        meant = [reasons for branch, reasons in problems if _kind(self.reader_names.resolved(branch)) == kind]
        if meant:
            yield from meant[0]
        else:
            kinds = " or ".join(_kind(self.reader_names.resolved(branch)) for branch in reader)
            yield Incompatibility(path, f"was written as {_shown(writer)}, and is read as {kinds}")

    def _same_kind(self, reader: Avro, writer: Avro, path: str) -> Iterator[Incompatibility]:
        kinds = (_kind(writer), _kind(reader))
        if kinds[0] != kinds[1]:
            if kinds not in _PROMOTIONS:
                yield Incompatibility(path, f"was written as {_shown(writer)}, and is read as {_shown(reader)}")
            return
        if kinds[0] in _NAMED and not _has_name_of(reader, writer):
            yield Incompatibility(
                path, f"was written as the {kinds[0]} {writer['name']}, and is read as {reader['name']}"
            )
            return
        yield from _logical_problems(reader, writer, path)
        match kinds[0]:
            case "array":
                yield from self.compare(reader["items"], writer["items"], f"{path}[]")
            case "map":
                yield from self.compare(reader["values"], writer["values"], f"{path}[]")
            case "enum":
                yield from _symbol_problems(reader, writer, path)
            case "fixed":
                if reader["size"] != writer["size"]:
                    yield Incompatibility(
                        path, f"was written with {writer['size']} bytes, and is read with {reader['size']}"
                    )
            case "record" | "error":
                yield from self._fields(reader, writer, path)

    def _fields(self, reader: Avro, writer: Avro, path: str) -> Iterator[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair in self._compared:
            return
        self._compared.add(pair)
        written = {each["name"]: each for each in writer["fields"]}
        for each in reader["fields"]:
            inner = f"{path}.{each['name']}".lstrip(".")
            names = (each["name"], *each.get("aliases", ()))
            twin = next((written[name] for name in names if name in written), None)
            if twin is not None:
                yield from self.compare(each["type"], twin["type"], inner)
            elif "default" not in each:
                yield Incompatibility(inner, "is not there in what was written, and has no default")


def _has_name_of(reader: Avro, writer: Avro) -> bool:
    """By the name without its namespace, or by an alias."""
    names = (reader["name"], *reader.get("aliases", ()))
    return _unqualified(writer["name"]) in map(_unqualified, names)


def _unqualified(name: str) -> str:
    return name.rpartition(".")[2]


def _logical_problems(reader: Avro, writer: Avro, path: str) -> Iterator[Incompatibility]:
    read, written = _logical(reader), _logical(writer)
    if read is None or written is None or read == written:
        return
    is_wider = read[0] == written[0] == "decimal" and read[2] == written[2] and read[1] >= written[1]
    if not is_wider:
        yield Incompatibility(path, f"was written as {_shown(writer)}, and is read as {_shown(reader)}")


def _symbol_problems(reader: Avro, writer: Avro, path: str) -> Iterator[Incompatibility]:
    missing = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
    if missing and "default" not in reader:
        named = ", ".join(missing[:5])
        yield Incompatibility(path, f"was written with symbols that are not read ({named}), and has no default")


def _kind(schema: Avro) -> str:
    """Of what is no union."""
    inner = schema["type"] if isinstance(schema, dict) else schema
    return _kind(inner) if isinstance(inner, dict) else str(inner)


def _logical(schema: Avro) -> tuple[Any, ...] | None:
    name = schema.get("logicalType")
    if name == "decimal":
        return (name, schema["precision"], schema.get("scale", 0))
    return None if name is None else (name,)


def _shown(schema: Avro) -> str:
    logical = _logical(schema)
    if logical is None:
        return _kind(schema)
    name, *parameters = logical
    return f"{name}({', '.join(map(str, parameters))})" if parameters else str(name)
