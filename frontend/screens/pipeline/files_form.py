"""The files of a pipeline as they are typed or uploaded, what is wrong in them, and the plan that was made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from ingestion.domain.pipelines.cases_file import TESTS_FILE
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE, read_pipeline_file
from ingestion.domain.pipelines.plan import digest_of
from ingestion.domain.pipelines.problems import BadPipeline, Problem
from ingestion.domain.pipelines.reading import FILES
from ingestion.domain.pipelines.yaml_nodes import MAX_LENGTH
from ingestion.models import Pipeline
from ingestion.pipelines.checking import check_pipeline
from ingestion.pipelines.planning import Plan, plan_of
from ingestion.pipelines.rights import require_registration
from ingestion.runs.modelled_tables.serializers import PipelineFilesSerializer
from lakehub.accounts.models import User

ROWS = {"table.sql": 10, "pipeline.yaml": 16, "transform.sql": 14}
HINTS = {
    "table.sql": "A CREATE TABLE with the columns of the table.",
    "pipeline.yaml": "What the table is and what it is made from: name, team, tier, record_key, source and inputs.",
    "transform.sql": "One SELECT that makes the rows; <SRC> stands for the source.",
}
EXAMPLES = {
    "table.sql": "CREATE TABLE flights_by_day (\n  day STRING,\n  flights BIGINT\n)",
    "pipeline.yaml": "name: flights-by-day\nteam: flight-ops\ntier: 2\nrecord_key: day\nsource: flights",
    "transform.sql": "SELECT day, count(*) AS flights\nFROM <SRC>\nGROUP BY day",
}
"""What an empty form shows in each."""
UPLOADS = "uploads"
_MAX_QUOTED = 200


@dataclass(frozen=True)
class ShownProblem:
    """With the line that it is about, as it was typed; empty: it is about the file as a whole."""

    line: int
    text: str
    quoted: str


@dataclass(frozen=True)
class FileField:
    """One file on the form."""

    name: str
    text: str
    rows: int
    hint: str
    example: str
    problems: list[ShownProblem]


@dataclass(frozen=True)
class FilesForm:
    """`texts`: by the name of the file; empty: it has none. `kept`: files of the pipeline that the form does not show. `opened`: when the files were changed last
    that the form began with. `planned`: a digest of the texts of the plan that was shown, and `basis` what that was made against; empty: none was."""

    texts: Mapping[str, str]
    kept: Mapping[str, str] = field(default_factory=dict)
    opened: str = ""
    planned: str = ""
    basis: str = ""
    problems: tuple[Problem, ...] = ()

    @property
    def given(self) -> dict[str, str]:
        """The files that are registered: an empty one is none."""
        return {**self.kept, **{name: text for name, text in self.texts.items() if text.strip()}}

    @property
    def is_as_planned(self) -> bool:
        return self.planned == digest_of(self.given)

    @property
    def fields(self) -> list[FileField]:
        return [
            FileField(name, self.texts.get(name, ""), ROWS[name], HINTS[name], EXAMPLES[name], self._of_file(name))
            for name in FILES
        ]

    @property
    def other_problems(self) -> list[Problem]:
        """Of files that the form does not have."""
        return [problem for problem in self.problems if problem.file not in FILES]

    def _of_file(self, name: str) -> list[ShownProblem]:
        lines = self.texts.get(name, "").split("\n")
        return [
            ShownProblem(
                each.line, each.text, lines[each.line - 1].strip()[:_MAX_QUOTED] if 0 < each.line <= len(lines) else ""
            )
            for each in self.problems
            if each.file == name
        ]


def form_of(registered: Pipeline) -> FilesForm:
    """The files as they are registered."""
    return FilesForm(
        {name: registered.files.get(name, "") for name in FILES},
        _kept(registered),
        registered.changed_at.isoformat(),
    )


def form_from(request: HttpRequest, registered: Pipeline | None = None) -> FilesForm:
    """A file that was uploaded stands for the text of its name."""
    # Browsers send each end of a line as two characters.
    texts = {name: request.POST.get(name, "").replace("\r\n", "\n") for name in FILES}
    problems = list[Problem]()
    texts |= _uploaded(request.FILES.getlist(UPLOADS), problems)
    opened, planned, basis = (request.POST.get(name, "") for name in ("opened", "planned", "basis"))
    form = FilesForm(texts, {} if registered is None else _kept(registered), opened, planned, basis)
    return replace(form, problems=(*problems, *_size_problems(form.given)))


def with_plan(form: FilesForm, user: User, dataset: str = "") -> tuple[FilesForm, Plan | None]:
    """`dataset`: as of `with_name_checked`. None: what is wrong is in the form. Raises PermissionDenied."""
    form = with_name_checked(form, dataset)
    if form.problems:
        return form, None
    try:
        checked = check_pipeline(form.given)
        require_registration(user, checked)
        plan = plan_of(checked)
    except BadPipeline as bad:
        return replace(form, problems=bad.problems), None
    return replace(form, planned=digest_of(form.given), basis=plan.basis), plan


def with_name_checked(form: FilesForm, dataset: str) -> FilesForm:
    """`dataset`: the one whose pipeline is changed; empty: any."""
    name = read_pipeline_file(form.texts.get(PIPELINE_FILE, ""), []).facts.get("name", "")
    if form.problems or not dataset or name in ("", dataset):
        return form
    text = f"`name` is `{name}`, and this page changes the pipeline `{dataset}`. Leave the name as it was, or register a new pipeline."
    return replace(form, problems=(Problem(PIPELINE_FILE, 0, text),))


def with_refusal(form: FilesForm, denied: PermissionDenied) -> FilesForm:
    """The person may not onboard in the team that the files name, or not see rows of an input."""
    return replace(form, problems=(Problem(PIPELINE_FILE, 0, str(denied)),))


def _kept(registered: Pipeline) -> dict[str, str]:
    return {name: text for name, text in registered.files.items() if name not in FILES}


def _uploaded(files: Iterable[UploadedFile[Any]], problems: list[Problem]) -> dict[str, str]:
    texts = {}
    for file in files:
        name = file.name or ""
        if name == TESTS_FILE:
            continue  # `manage.py pipelines test` reads it; it is not registered
        if name not in FILES:
            problems.append(Problem(name[:_MAX_QUOTED], 0, f"A pipeline has no such file: upload {', '.join(FILES)}."))
        elif (file.size or 0) > MAX_LENGTH * 4:
            problems.append(Problem(name, 0, f"It has more than {MAX_LENGTH:,} characters: shorten it."))
        else:
            try:
                texts[name] = file.read().decode("utf-8-sig").replace("\r\n", "\n")
            except UnicodeDecodeError:
                problems.append(Problem(name, 0, "It is not UTF-8 text: save the file in UTF-8 and upload it again."))
    return texts


def _size_problems(texts: Mapping[str, str]) -> list[Problem]:
    """As of the API."""
    body = PipelineFilesSerializer(data={"files": dict(texts)})
    if body.is_valid():
        return []
    of_files = body.errors.get("files", {})
    return [Problem(name, 0, str(text)) for name, errors in of_files.items() for text in errors]
