"""What is wrong in the files of a pipeline: all of it at once, each with its file and line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """`line`: from 1 on; 0: the file as a whole."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


MAX_PROBLEMS = 100
"""That are told; of more their number."""


class BadPipeline(ValueError):
    """Files that make no pipeline."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = (*sorted(problems)[:MAX_PROBLEMS], *_rest(problems))
        super().__init__("\n".join(map(str, self.problems)))


def _rest(problems: list[Problem]) -> list[Problem]:
    more = len(problems) - MAX_PROBLEMS
    return (
        [Problem(max(problems).file, 0, f"{more:,} more problems are not shown: mend these first.")] if more > 0 else []
    )
