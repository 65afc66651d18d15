"""The files of a pipeline in a folder, such as one that is kept in git."""

from __future__ import annotations

from pathlib import Path

from ingestion.domain.pipelines.problems import BadPipeline, Problem
from ingestion.domain.pipelines.reading import FILES
from ingestion.domain.pipelines.yaml_nodes import MAX_LENGTH


def read_folder(folder: Path) -> dict[str, str]:
    """By name the texts of the files that are there. Raises BadPipeline for one that is no text, or too long, and where the folder is none."""
    if not folder.is_dir():
        raise BadPipeline([Problem(str(folder), 0, "There is no folder of that name.")])
    problems, texts = list[Problem](), dict[str, str]()
    for name in FILES:
        if (folder / name).is_file():
            texts[name] = _read(folder / name, problems)
    if problems:
        raise BadPipeline(problems)
    return texts


def read_text(folder: Path, name: str) -> str:
    """One more file of it. Raises BadPipeline."""
    problems = [] if (folder / name).is_file() else [Problem(name, 0, "The file is missing.")]
    text = "" if problems else _read(folder / name, problems)
    if problems:
        raise BadPipeline(problems)
    return text


def _read(path: Path, problems: list[Problem]) -> str:
    content = path.open("rb").read(MAX_LENGTH * 4 + 1)
    if len(content) > MAX_LENGTH:
        problems.append(Problem(path.name, 0, f"It has more than {MAX_LENGTH:,} bytes."))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.append(Problem(path.name, 0, "It is no text in UTF-8."))
        return ""
