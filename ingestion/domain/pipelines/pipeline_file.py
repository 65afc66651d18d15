"""`pipeline.yaml`: what the target is, what it is made from, and how often. Hudi's names of options are taken for ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ingestion.domain.pipelines.definition import DEFAULT_EVERY, OPERATIONS, UPSERT, Audit, PipelineInput
from ingestion.domain.pipelines.fields.resources import read_resources
from ingestion.domain.pipelines.fields.transformers import read_transformers
from ingestion.domain.pipelines.problems import Problem
from ingestion.domain.pipelines.view_names import OWN
from ingestion.domain.pipelines.yaml_nodes import Fields, Items, Text, Value, parse_yaml
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.zones import UnknownZone, zone_named
from lakehub.kernel.suggest import HintBudget, did_you_mean

PIPELINE_FILE = "pipeline.yaml"
FIELDS = (
    "name", "team", "tier", "description", "record_key", "precombine", "partition", "grain", "partition_tz",
    "operation", "source", "inputs", "every", "audits", "transformers", "resources",
)  # fmt: skip
_NEEDED = ("name", "team", "tier", "record_key", "source")
HUDI_NAMES = {
    "hoodie.table.name": "name",
    "hoodie.datasource.write.recordkey.field": "record_key",
    "hoodie.datasource.write.precombine.field": "precombine",
    "hoodie.table.ordering.fields": "precombine",
    "hoodie.datasource.write.partitionpath.field": "partition",
    "hoodie.datasource.write.operation": "operation",
}
FOLLOWED, IGNORED = "followed", "ignored"
EVERY_COMMIT = "commit"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_INPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_DURATION = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LEAST_EVERY, _MOST_EVERY = timedelta(seconds=30), timedelta(days=366)
MAX_INPUTS = 20
MAX_AUDITS = 50
_MAX_AUDIT_NAME = 60
_MAX_SHOWN_NAME = 80


@dataclass(frozen=True)
class PipelineFile:
    """What the file says, with a value of the right kind for each field, also where it was wrong."""

    facts: Mapping[str, Any]
    source: str
    inputs: tuple[PipelineInput, ...]


def read_pipeline_file(text: str, problems: list[Problem]) -> PipelineFile:
    """What is wrong is added to `problems`."""
    parsed = parse_yaml(text, PIPELINE_FILE, problems)
    if not isinstance(parsed, Fields):
        if not problems:
            problems.append(
                Problem(PIPELINE_FILE, 1, f"It has no fields: write `name: ...`, and {', '.join(_NEEDED[1:])}.")
            )
        return PipelineFile({}, "", ())
    return _Reader(parsed, problems).read()


class _Reader:
    def __init__(self, parsed: Fields, problems: list[Problem]) -> None:
        self._problems = problems
        self._values, self._lines, hints = dict[str, Value](), dict[str, int](), HintBudget()
        for written, value in parsed.fields.items():
            name = HUDI_NAMES.get(written, written)
            if name not in FIELDS:
                hint = did_you_mean(written, FIELDS) if hints.take() else ""
                self._refuse(parsed.lines[written], f"There is no field `{written[:_MAX_SHOWN_NAME]}`.{hint}")
            elif name in self._values:
                self._refuse(parsed.lines[written], f"`{written}` says `{name}` once more.")
            else:
                self._values[name], self._lines[name] = value, parsed.lines[written]
        for name in _NEEDED:
            if name not in self._values:
                self._refuse(0, f"`{name}` is missing.")

    def read(self) -> PipelineFile:
        texts = {name: self._text(name) for name in ("team", "description", "precombine", "partition")}
        inputs = tuple(self._inputs())
        source = inputs[0].name if inputs and "source" in self._values else ""
        is_on_commit = self._text("every") == EVERY_COMMIT
        facts = {
            "name": self._matching("name", _NAME, "small letters, digits, - and _ (63 at most)"),
            "tier": self._tier(),
            "record_key": self._names("record_key"),
            "grain": self._choice("grain", [grain.value for grain in Grain]) or Grain.NONE.value,
            "partition_tz": self._zone(),
            "operation": self._choice("operation", OPERATIONS) or UPSERT,
            "every": DEFAULT_EVERY if is_on_commit else self._duration("every"),
            "on_commit": is_on_commit,
            "audits": tuple(self._audits()),
            "transformers": tuple(
                read_transformers(self._values.get("transformers"), self._lines.get("transformers", 0), self._refuse)
            ),
        }
        facts["lines"] = self._lines
        facts["resources"], facts["resource_lines"] = read_resources(self._values.get("resources"), self._refuse)
        return PipelineFile(facts | texts, source, inputs)

    def _refuse(self, line: int, text: str) -> None:
        self._problems.append(Problem(PIPELINE_FILE, line, text))

    def _text(self, name: str) -> str:
        value = self._values.get(name)
        if value is None or isinstance(value, Text):
            return "" if value is None else value.text.strip()
        self._refuse(value.line, f"`{name}` is one text.")
        return ""

    def _matching(self, name: str, pattern: re.Pattern[str], rule: str) -> str:
        text = self._text(name)
        if name in self._values and not pattern.fullmatch(text):
            self._refuse(self._lines[name], f"`{name}` is {text[:80]!r}: it has {rule}.")
        return text

    def _choice(self, name: str, choices: list[str]) -> str:
        text = self._text(name)
        if text and text not in choices:
            self._refuse(self._lines[name], f"`{name}` is {text[:80]!r}.{did_you_mean(text, choices)}")
            return ""
        return text

    def _tier(self) -> int:
        text = self._text("tier")
        if text and text not in "012345":
            self._refuse(self._lines["tier"], f"`tier` is {text[:80]!r}: it is a number from 0, the highest, to 5.")
        return int(text) if text and text in "012345" else 5

    def _names(self, name: str) -> tuple[str, ...]:
        """A list, or one text with commas, as Hudi writes it."""
        value = self._values.get(name)
        if isinstance(value, Items):
            texts = [each.text.strip() for each in value.items if isinstance(each, Text)]
            if len(texts) != len(value.items):
                self._refuse(value.line, f"`{name}` is a list of names.")
        else:
            texts = [text.strip() for text in self._text(name).split(",")]
        names = tuple(text for text in texts if text)
        if name in self._values and not names:
            self._refuse(self._lines[name], f"`{name}` is empty.")
        for doubled in dict.fromkeys(text for text in names if names.count(text) > 1):
            self._refuse(self._lines[name], f"`{name}` names `{doubled[:_MAX_SHOWN_NAME]}` more than once.")
        return names

    def _zone(self) -> str:
        text = self._text("partition_tz") or "UTC"
        try:
            zone_named(text)
        except UnknownZone as unknown:
            self._refuse(self._lines.get("partition_tz", 0), str(unknown))
            return "UTC"
        return text

    def _duration(self, name: str) -> timedelta:
        text = self._text(name)
        if not text:
            return DEFAULT_EVERY
        match = _DURATION.fullmatch(text)
        length = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta()
        if not _LEAST_EVERY <= length <= _MOST_EVERY:
            self._refuse(
                self._lines[name],
                f"`{name}` is {text[:80]!r}: write a duration from 30s to 366d, such as 15m or 2h, or `commit`.",
            )
            return DEFAULT_EVERY
        return length

    def _audits(self) -> Iterator[Audit]:
        value = self._values.get("audits")
        if value is not None and not isinstance(value, Fields):
            self._refuse(value.line, "`audits` gives each a name: `no strays: unexpected(this.carrier, 'AA') == 0`.")
            return
        audits = value.fields if value else {}
        for name, test in [*audits.items()][:MAX_AUDITS]:
            if len(name) > _MAX_AUDIT_NAME or not name.isprintable():
                self._refuse(
                    test.line, f"The audit {name[:80]!r} has a name of {_MAX_AUDIT_NAME} printable characters at most."
                )
            elif not isinstance(test, Text) or not test.text.strip():
                self._refuse(test.line, f"The audit `{name}` is one test, such as `rows(this) > 0`.")
            else:
                yield Audit(name, test.text.strip(), test.line)
        if len(audits) > MAX_AUDITS:
            self._refuse(self._lines["audits"], f"It has {len(audits)} audits, {MAX_AUDITS} at most.")

    def _inputs(self) -> Iterator[PipelineInput]:
        """The source first."""
        source, others = self._values.get("source"), self._values.get("inputs")
        seen = set[str]()
        if source is not None:
            dataset = self._matching("source", _NAME, "the name of a dataset") if isinstance(source, Text) else ""
            if not isinstance(source, Text):
                self._refuse(
                    source.line, "`source` is the name of a dataset: what `<SRC>` in transform.sql stands for."
                )
            name = dataset.replace("-", "_")
            self._check_own_name(name, self._lines["source"])
            seen.add(name.casefold())
            yield PipelineInput(name, dataset, line=self._lines["source"])
        if others is not None and not isinstance(others, Fields):
            self._refuse(others.line, "`inputs` names each other input as the SELECT calls it: `planes: planes`.")
            return
        named = others.fields if others else {}
        for name, value in [*named.items()][:MAX_INPUTS]:
            line = others.lines[name] if others else 0
            if not _INPUT_NAME.fullmatch(name):
                self._refuse(
                    line, f"The input {name[:80]!r} is called what no SELECT can call it: use letters, digits and _."
                )
            self._check_own_name(name, line)
            if name.casefold() in seen:
                self._refuse(line, f"The input `{name}` is there more than once.")
            seen.add(name.casefold())
            yield self._input(name, value, line)
        if (count := len(named) + (source is not None)) > MAX_INPUTS:
            self._refuse(0, f"It has {count:,} inputs, {MAX_INPUTS} at most: chain two pipelines.")

    def _check_own_name(self, name: str, line: int) -> None:
        if name.casefold().startswith(OWN):
            self._refuse(line, f"No input is called `{name}`: names that begin with `{OWN}` are Lakehub's own.")

    def _input(self, name: str, value: Value, line: int) -> PipelineInput:
        fields = value.fields if isinstance(value, Fields) else {"dataset": value}
        for field in fields:
            if field not in ("dataset", "changes"):
                its_line = value.lines[field] if isinstance(value, Fields) else value.line
                self._refuse(its_line, f"An input has no field `{field}`.{did_you_mean(field, ('dataset', 'changes'))}")
        dataset, changes = fields.get("dataset"), fields.get("changes", Text(0, FOLLOWED))
        text = dataset.text if isinstance(dataset, Text) else ""
        if not _NAME.fullmatch(text):
            self._refuse(value.line, f"The input `{name}` names no dataset: write `{name}: its-name`.")
        if not (isinstance(changes, Text) and changes.text in (FOLLOWED, IGNORED)):
            self._refuse(changes.line, f"`changes` is `{FOLLOWED}` or `{IGNORED}`.")
        return PipelineInput(name, text, not (isinstance(changes, Text) and changes.text == IGNORED), line)
