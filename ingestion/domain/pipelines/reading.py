"""The three files of a pipeline, read together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ingestion.domain.column_types import is_certain_key
from ingestion.domain.pipelines.affected.affected_keys import check_followed
from ingestion.domain.pipelines.affected.not_followed import NotFollowed
from ingestion.domain.pipelines.affected.query_shape import Columns, QueryShape
from ingestion.domain.pipelines.definition import INSERT_OVERWRITE, PipelineDefinition, PipelineInput
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE, PipelineFile, read_pipeline_file
from ingestion.domain.pipelines.problems import BadPipeline, Problem
from ingestion.domain.pipelines.table_file import TABLE_FILE, partitioned_by, read_table_file
from ingestion.domain.pipelines.transform import TRANSFORM_FILE, line_naming, mark_problems, read_transform_file
from ingestion.domain.schema import Schema
from lakehub.kernel.partitions import Grain
from lakehub.kernel.suggest import did_you_mean

_PARTITION_TYPES = ("string", "int", "long", "date")
FILES = (TABLE_FILE, PIPELINE_FILE, TRANSFORM_FILE)
_ALL_ROWS = "SELECT * FROM <SRC>"
"""Of a pipeline that has transformers in place of a SELECT."""


def inputs_of(texts: Mapping[str, str]) -> tuple[PipelineInput, ...]:
    """Those that the files name, whatever else is wrong in them."""
    return read_pipeline_file(texts.get(PIPELINE_FILE, ""), []).inputs


def read_pipeline(
    texts: Mapping[str, str], columns: Columns | None = None, *, is_strict: bool = False, is_registered: bool = False
) -> PipelineDefinition:
    """`texts`: by the name of the file. `columns`: of the inputs, where they are known. `is_strict`: columns that none of them has are wrong; a table of the lake may have
    some that its source has lost. `is_registered`: the files were accepted before, perhaps by an earlier version, so only what stops a run is wrong. Raises BadPipeline with all that is wrong."""
    if read_pipeline_file(texts.get(PIPELINE_FILE, ""), []).facts.get("transformers"):
        texts = {TRANSFORM_FILE: _ALL_ROWS, **texts}
    texts = {name: text.removeprefix("\ufeff") for name, text in texts.items()}  # some editors begin files with it
    problems = [Problem(name, 0, "The file is missing.") for name in FILES if name not in texts]
    if problems:
        raise BadPipeline(problems)
    file = read_pipeline_file(texts[PIPELINE_FILE], problems)
    target = read_table_file(texts[TABLE_FILE], problems)
    transform = (
        read_transform_file(texts[TRANSFORM_FILE], file.source, [each.name for each in file.inputs], problems)
        if file.source  # else nothing is known of what it may read
        else ""
    )
    problems += _problems_between(file, target)
    if not is_registered:
        problems += _partition_problems(file, partitioned_by(texts[TABLE_FILE]))
        problems += mark_problems(texts[TRANSFORM_FILE], file.source) if file.source else ()
    if not problems:
        problems += _shape_problems(file, target, transform, columns, texts[TRANSFORM_FILE] if is_strict else "")
    if problems:
        raise BadPipeline(problems)
    return PipelineDefinition(source=file.source, inputs=file.inputs, columns=target, transform=transform, **file.facts)


def _problems_between(file: PipelineFile, target: Schema) -> Iterator[Problem]:
    facts = file.facts
    lines: Mapping[str, int] = facts.get("lines", {})
    named = [("record_key", name) for name in facts.get("record_key", ())]
    named += [(field, facts[field]) for field in ("precombine", "partition") if facts.get(field)]
    for field, name in named if len(target.names) else ():
        if name not in target:
            yield Problem(
                PIPELINE_FILE,
                lines.get(field, 0),
                f"`{field}` names `{name}`, which {TABLE_FILE} lacks.{did_you_mean(name, target.names)}",
            )
        elif field == "record_key" and not is_certain_key(target.types[name]):
            yield Problem(
                PIPELINE_FILE,
                lines.get(field, 0),
                f"`record_key` names `{name}`, a {target.types[name]}: a key has texts, whole numbers or dates. Cast it in the SELECT.",
            )
    partition = facts.get("partition")
    if partition and partition in target and target.types[partition] not in _PARTITION_TYPES:
        yield Problem(
            PIPELINE_FILE,
            lines.get("partition", 0),
            f"`partition` names `{partition}`, a {target.types[partition]}: the names of partitions are texts, whole numbers or dates. Cast it in the SELECT.",
        )
    if facts.get("operation") == INSERT_OVERWRITE and partition not in facts.get("record_key", ()):
        yield Problem(
            PIPELINE_FILE,
            lines.get("operation", 0),
            f"`operation` is `{INSERT_OVERWRITE}`, which recomputes whole partitions: name the column of the partition in `partition`, and in `record_key` too, so that no key lies in two. "
            "Or leave it out.",
        )
    elif facts.get("operation") == INSERT_OVERWRITE and (
        dates := [name for name in facts["record_key"] if target.types.get(name) == "date"]
    ):
        yield Problem(
            PIPELINE_FILE,
            lines.get("operation", 0),
            f"`operation` is `{INSERT_OVERWRITE}`, and `record_key` has `{dates[0]}`, a date, whose text in a key others may write otherwise. Make it a text: cast it to STRING in the SELECT and in {TABLE_FILE}.",
        )
    if facts.get("grain", "none") != Grain.NONE and not facts.get("partition"):
        yield Problem(
            PIPELINE_FILE,
            lines.get("grain", 0),
            "`grain` says how wide a partition is: name its column in `partition`, or leave `grain` out.",
        )
    for each in file.inputs:
        if each.dataset and each.dataset == facts.get("name"):
            yield Problem(PIPELINE_FILE, each.line, f"The input `{each.name}` is the target itself.")


def _partition_problems(file: PipelineFile, declared: Sequence[str]) -> Iterator[Problem]:
    """A table that is made without the partitions that its DDL has would surprise its readers, and that cannot be changed later."""
    partition = file.facts.get("partition", "")
    if declared and [name.casefold() for name in declared] != [partition.casefold()]:
        yield Problem(
            TABLE_FILE,
            0,
            f"It is `PARTITIONED BY ({', '.join(declared)})`, and `partition` in {PIPELINE_FILE} is {f'`{partition}`' if partition else 'not given'}. A table is partitioned by one of its columns: "
            f"name the same one in both files, or leave PARTITIONED BY out.",
        )


def _columns_of_select(file: PipelineFile, target: Schema) -> Collection[str]:
    """Others are made by transformers, where it has any."""
    facts = file.facts
    if not facts["transformers"]:
        return target.names
    return [*dict.fromkeys((*facts["record_key"], *filter(None, (facts["partition"], facts["precombine"]))))]


def _shape_problems(
    file: PipelineFile, target: Schema, transform: str, columns: Columns | None, strict_text: str
) -> Iterator[Problem]:
    """`strict_text`: `transform` as the file has it, where columns that no input has are wrong; empty: they are not."""
    try:
        ignored = [each.name for each in file.inputs if not each.is_followed]
        shape = QueryShape.of(transform, columns, ignored)
        missing = shape.missing_columns() if strict_text else []
        for each in missing:
            whose = f"`{each.owner}` has no" if each.owner else "No input has a"
            line = line_naming(strict_text, each.name)
            yield Problem(TRANSFORM_FILE, line, f"{whose} column `{each.name}`.{each.hint}")
        if missing:
            return
        for name in _columns_of_select(file, target):
            shape.value_of(name)
        check_followed(shape, file.facts["record_key"], [each.name for each in file.inputs if each.is_followed])
    except NotFollowed as problem:
        yield Problem(TRANSFORM_FILE, 0, f"What a change reaches cannot be said. {problem}")
