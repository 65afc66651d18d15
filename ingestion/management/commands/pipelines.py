"""`manage.py pipelines check|test|register flights-by-day`"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.domain.pipelines.cases_file import TESTS_FILE
from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.lake.files.table_sizes import TableSize
from ingestion.pipelines.checking import check_pipeline
from ingestion.pipelines.folder import read_folder, read_text
from ingestion.pipelines.planning import Plan, TableWrite, plan_of
from ingestion.runs.modelled_tables.registration import register
from ingestion.spark.job import JobError
from lakehub import wiring
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.output.terminal import printable

_ACTOR = "manage.py"
_MAX_SHOWN = 100


class Command(BaseCommand):
    help = "Says what is wrong with the files of a pipeline, by file and line, and what registering them would do; tests it by the rows of its tests.yaml; or registers it: a worker then makes its table."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["check", "test", "register"])
        parser.add_argument(
            "folder", type=Path, help="with table.sql, pipeline.yaml and transform.sql; to test it, tests.yaml"
        )

    def handle(self, *, action: str, folder: Path, **options: Any) -> None:
        try:
            texts = read_folder(folder)
            if action == "check":
                self._tell_plan(texts)
                return
            if action == "test":
                self._test(folder, texts)
                return
            done = register(texts, actor=_ACTOR, now=wiring.clock.now())
        except (BadPipeline, Refused, Conflict, JobError) as problem:
            raise CommandError(printable(str(problem))) from problem
        change = "registered" if done.is_new else "changed"
        are = "is" if done.rebuilds == 1 else "are"
        recomputed = f"; {done.rebuilds} of its tables {are} recomputed, as rows may differ" if done.rebuilds else ""
        self.stdout.write(f"The pipeline {done.dataset} is {change}{recomputed}.")

    def _test(self, folder: Path, texts: dict[str, str]) -> None:
        from ingestion.pipelines.rehearsal import read_tests, run_tests  # they bring Spark, which takes seconds to load

        checked, failed = check_pipeline(texts), 0
        tests = read_tests(read_text(folder, TESTS_FILE), checked)
        for rehearsed in run_tests(checked, tests):
            self.stdout.write(printable(f"{'ok' if rehearsed.passes else 'FAILED':6}  {rehearsed.test}"))
            for title, rows in (
                ("expected, not made", rehearsed.missing),
                ("made, not expected", rehearsed.unexpected),
            ):
                for row in rows:
                    values = ", ".join(f"{name}: {value}" for name, value in zip(rehearsed.columns, row, strict=True))
                    self.stdout.write(printable(f"        {title}: {values}"))
            failed += not rehearsed.passes
        if failed:
            raise CommandError(f"{failed} of {len(tests)} tests failed.")

    def _tell_plan(self, texts: dict[str, str]) -> None:
        for line in plan_lines(plan_of(check_pipeline(texts))):
            self.stdout.write(printable(line))


def plan_lines(plan: Plan) -> Iterator[str]:
    pipeline = plan.checked.pipeline
    yield f"{pipeline.name}: {plan.sentence}"
    for change in plan.changes:
        before, after = (_on_one_line(text) or "nothing" for text in (change.before, change.after))
        yield f"  {change.what}: {before} -> {after} ({change.effect})"
    for each in plan.reads:
        yield f"  reads {each.dataset}: {_size(each.size)}"
    yield f"  {_written(plan.writes)}"
    for given in pipeline.inputs if plan.is_new else ():
        if not given.is_followed:
            yield f"  changes of {given.dataset} are not followed: a row sees them when it is recomputed for another reason"
    for reader in plan.readers:
        yield f"  {reader.dataset} reads it{'' if reader.is_direct else ' through others'}"
        yield from (f"    {problem}" for problem in reader.problems)


def _written(writes: TableWrite) -> str:
    if writes.size is None:
        return f"writes: size unknown. {writes.reason}"
    if not writes.is_estimate:
        return "reads nothing and writes 0 rows"
    return f"writes about {_size(writes.size)}: as many as the table holds now, which they replace"


def _size(size: TableSize | None) -> str:
    if size is None:
        return "size unknown"
    return f"{_counted(size.rows, 'row')}, {size.bytes / 2**20:,.1f} MiB in {_counted(size.files, 'file')}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _on_one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}..."
