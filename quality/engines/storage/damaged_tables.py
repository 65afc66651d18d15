"""What is damaged of a Hudi table that cannot be read: its properties, a commit of its timeline, or a file of its rows."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lakehub.catalog.metadata.damaged_files import MAX_FILES, explain_damage, fault_line, file_fault
from lakehub.kernel.avro_files import AvroFile

REMEDY = (
    "Restore it from a backup; or load the copy again from its source: ask for a bootstrap with `replace`, "
    "or drop the copy first where that cannot read the table either."
)
_AVRO_MARK = b"Obj\x01"
_COMMIT_ENDINGS = (".commit", ".deltacommit", ".replacecommit")


def explain_damaged_table(problem: Exception, table: Path | None, uri: str) -> str:
    """For a person. `table`: its folder, where it is on this machine."""
    damage = next(_damages(table), None) if table is not None else None
    if damage is None:
        return explain_damage(problem, (), shown=f"The Hudi table at {uri}")
    file, fault = damage
    return f"The file {file} cannot be read: {fault}. {REMEDY}"


def _damages(table: Path) -> Iterator[tuple[Path, str]]:
    """Of the files that a reader needs, the first ones first."""
    properties = table / ".hoodie" / "hoodie.properties"
    if fault := _properties_fault(properties):
        yield properties, fault
    for commit in sorted((table / ".hoodie").rglob("*")):
        if commit.suffix in _COMMIT_ENDINGS and "metadata" not in commit.parts and (fault := _commit_fault(commit)):
            yield commit, fault
    rows = (path for path in table.rglob("*.parquet") if ".hoodie" not in path.parts)
    for path in islice(rows, MAX_FILES):
        if fault := file_fault(path):
            yield path, fault


def _properties_fault(file: Path) -> str:
    try:
        text = file.read_text()
    except (OSError, ValueError) as problem:
        return fault_line(problem)
    return "" if "hoodie.table.name" in text else "it does not name the table (hoodie.table.name)"


def _commit_fault(file: Path) -> str:
    """As version 8 and later write them, in Avro, or as JSON."""
    content = file.read_bytes()
    if not content:
        return "it is empty"
    try:
        record = (
            list(AvroFile(io.BytesIO(content)).records()) if content.startswith(_AVRO_MARK) else json.loads(content)
        )
    except Exception as problem:  # whatever a decoder raises for bytes that mean nothing
        return f"it is not the record of a commit: {fault_line(problem)}"
    return "" if record else "it is the record of a commit without anything in it"
