"""Which file is damaged where files cannot be read: its name, the fault, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from lakehub.kernel.avro_files import AvroFile, BadAvro

MAX_FILES = 10_000
"""So many are looked at; the fault of a later one is told without its name."""
REMEDY = "Write that file again, or take it away."
_PARQUET_MARK = b"PAR1"
SQLITE_MARK = b"SQLite format 3\0"


def explain_damage(problem: Exception, paths: Iterable[str | Path], *, shown: str, remedy: str = REMEDY) -> str:
    """What is wrong, for a person. `shown` names all the files; it stands alone where none of them is known to be at fault."""
    files = [Path(path) for path in islice(paths, MAX_FILES)]
    fault = fault_line(problem)
    named = [file for file in files if str(file) in str(problem)]
    if named:
        # The longest: `/a/b.csv` is part of `/a/b.csv.parquet`.
        file = max(named, key=lambda file: len(str(file)))
        return _sentence(file, file_fault(file) or fault, remedy)
    for file in files:
        if fault_of_file := file_fault(file):
            return _sentence(file, fault_of_file, remedy)
    return f"{shown} cannot be read: {fault}"


def file_fault(file: Path) -> str:
    """Why a file is not what its ending says, as far as is seen without reading all of it; empty: nothing is seen."""
    try:
        size = file.stat().st_size
        if size == 0 and file.suffix != ".csv":
            return "it is empty"
        return _FAULTS.get(file.suffix, _no_fault)(file)
    except OSError as problem:
        return str(problem.strerror or problem)


def fault_line(problem: Exception) -> str:
    """The first line, without the kind of error in front of it: below it drivers show values and our own SQL."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0].strip()
    return line.removeprefix("Invalid Input Error: ").removeprefix("IO Error: ").rstrip(".")


def _sentence(file: Path, fault: str, remedy: str) -> str:
    shown = "" if str(file) in fault else f"The file {file} cannot be read: "
    return f"{shown}{fault}. {remedy}"


def _parquet_fault(file: Path) -> str:
    with file.open("rb") as source:
        head = source.read(len(_PARQUET_MARK))
        source.seek(max(0, file.stat().st_size - len(_PARQUET_MARK)))
        tail = source.read()
    if head != _PARQUET_MARK:
        return "it is not a Parquet file"
    return "" if tail == _PARQUET_MARK else "it was cut off, or is still being written: Parquet's end is missing"


def _avro_fault(file: Path) -> str:
    """By the heads of its blocks."""
    try:
        with file.open("rb") as source:
            AvroFile(source).row_count()
    except BadAvro as problem:
        return fault_line(problem)
    return ""


def _sqlite_fault(file: Path) -> str:
    with file.open("rb") as source:
        return "" if source.read(len(SQLITE_MARK)) == SQLITE_MARK else "it is not an SQLite database"


def _no_fault(_file: Path) -> str:
    return ""


_FAULTS: dict[str, Callable[[Path], str]] = {
    ".parquet": _parquet_fault,
    ".avro": _avro_fault,
    ".db": _sqlite_fault,
    ".sqlite": _sqlite_fault,
}
