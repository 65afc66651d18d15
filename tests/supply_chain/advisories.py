"""Advisories in the Open Source Vulnerability format, and which of them concern a set of installed packages.

Read from a folder of YAML or JSON files, as a checkout of an advisory database has them: nothing is asked over the network.
Format: https://ossf.github.io/osv-schema/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import Version

ECOSYSTEM = "PyPI"


@dataclass(frozen=True)
class Finding:
    package: str
    version: str
    advisory: str
    summary: str
    fixed_in: tuple[str, ...]
    """Empty: there is no version without it yet."""


@dataclass(frozen=True)
class Advisories:
    entries: tuple[dict[str, Any], ...]

    @property
    def newest(self) -> str:
        """The latest day on which one of them was changed, `YYYY-MM-DD`."""
        return max(str(entry["modified"])[:10] for entry in self.entries)

    def of(self, installed: Mapping[str, str]) -> list[Finding]:
        """Those that concern `installed` (name to version), by package."""
        versions = {canonicalize_name(name): version for name, version in installed.items()}
        return sorted(_findings(self.entries, versions), key=lambda finding: (finding.package, finding.advisory))


def read_advisories(folder: Path) -> Advisories:
    """All below the folder that are of PyPI and not withdrawn.

    Raises:
        ValueError: There is none, or a file is not an advisory.
    """
    files = sorted(path for ending in ("yaml", "json") for path in folder.rglob(f"*.{ending}"))
    entries = tuple(entry for path in files if (entry := _read(path)) is not None)
    if not entries:
        raise ValueError(
            f"{folder} has no advisory of {ECOSYSTEM}. Name the folder of an advisory database's YAML or JSON files."
        )
    return Advisories(entries)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        # JSON is YAML. The C parser, where it is there, takes a tenth of the time for thousands of files.
        entry = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} can't be read as YAML or JSON: {error}") from error
    if not isinstance(entry, dict) or not {"id", "modified", "affected"} <= entry.keys():
        return None
    ours = any(affected.get("package", {}).get("ecosystem") == ECOSYSTEM for affected in entry["affected"])
    return entry if ours and not entry.get("withdrawn") else None


def _findings(entries: Iterable[dict[str, Any]], versions: Mapping[str, str]) -> Iterator[Finding]:
    for entry in entries:
        for affected in entry["affected"]:
            package = canonicalize_name(str(affected.get("package", {}).get("name", "")))
            version = versions.get(package)
            if version is not None and is_affected(version, affected):
                text = entry.get("summary") or entry.get("details") or ""
                yield Finding(package, version, entry["id"], " ".join(text.split()), _fixes(affected))


def is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    """Whether the list of versions has it, or one of the ranges does."""
    if version in map(str, affected.get("versions", ())):
        return True
    ranges = (span for span in affected.get("ranges", ()) if span.get("type") == "ECOSYSTEM")
    return any(_is_in(Version(version), span["events"]) for span in ranges)


def _is_in(version: Version, events: Iterable[Mapping[str, Any]]) -> bool:
    """`introduced` opens a range, `fixed` closes it before, `last_affected` after its version."""
    inside = False
    for kind, at in sorted(
        ((kind, str(at)) for event in events for kind, at in event.items()), key=lambda event: Version(event[1])
    ):
        if kind == "introduced" and version >= Version(at):
            inside = True
        elif (kind == "fixed" and version >= Version(at)) or (kind == "last_affected" and version > Version(at)):
            inside = False
    return inside


def _fixes(affected: Mapping[str, Any]) -> tuple[str, ...]:
    spans = (span for span in affected.get("ranges", ()) if span.get("type") == "ECOSYSTEM")
    return tuple(str(event["fixed"]) for span in spans for event in span["events"] if "fixed" in event)
