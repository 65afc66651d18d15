"""What is installed is what was locked, and an audit finds what a folder of advisories knows of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.supply_chain.advisories import is_affected, read_advisories
from tests.supply_chain.audit import main as audit

PROJECT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(
    r"^(?P<requirement>[A-Za-z0-9][^\\\n]*?) \\\n(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\\n|\n|$))+)",
    re.MULTILINE,
)


def pins(name: str) -> dict[str, str]:
    """(name, normalised) -> requirement of a requirements file and of those that it names."""
    named: dict[str, str] = {}
    for line in (PROJECT / name).read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r"):
            named |= pins(text.removeprefix("-r").strip())
        elif text:
            named |= entry(text)
    return named


def entry(text: str) -> dict[str, str]:
    requirement = Requirement(text)
    return {requirement.name.lower().replace("_", "-").replace(".", "-"): str(requirement.specifier)}


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_every_version_stands_in_the_lock_with_hashes_and_nothing_else_does(name: str) -> None:
    text = (PROJECT / f"{name}.lock").read_text()
    locked: dict[str, str] = {}
    for match in ENTRY.finditer(text):
        locked |= entry(match["requirement"])
    assert locked == pins(f"{name}.txt"), "run `make lock`"
    assert re.sub(r"^#.*\n", "", ENTRY.sub("", text), flags=re.MULTILINE).strip() == ""


def test_the_environment_is_installed_by_hash() -> None:
    (install,) = re.findall(r"pip install .*-r (\S+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert install == "requirements-dev.lock"
    assert "--require-hashes -r requirements-dev.lock" in (PROJECT / "Makefile").read_text()


def spans(*events: tuple[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": [{kind: at} for kind, at in events]}]}


@pytest.mark.parametrize(
    ("version", "affected", "expected"),
    [
        ("5.0.7", spans(("introduced", "5.0"), ("fixed", "5.0.8")), True),
        ("5.0.8", spans(("introduced", "5.0"), ("fixed", "5.0.8")), False),
        ("4.9", spans(("introduced", "5.0"), ("fixed", "5.0.8")), False),
        ("5.0.8", spans(("introduced", "0"), ("last_affected", "5.0.8")), True),
        ("5.0.9", spans(("introduced", "0"), ("last_affected", "5.0.8")), False),
        ("4.2.14", spans(("introduced", "5.0"), ("fixed", "5.0.8"), ("introduced", "4.2"), ("fixed", "4.2.15")), True),
        ("4.10", spans(("introduced", "4.9")), True),
        ("1.0", {"versions": ["1.0"]}, True),
        ("1.0.1", {"versions": ["1.0"]}, False),
        ("1.0", {"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, False),
    ],
)
def test_whether_a_version_is_affected(version: str, affected: dict[str, Any], expected: bool) -> None:
    assert is_affected(version, affected) is expected


def advisory(**fields: Any) -> dict[str, Any]:
    package = {"package": {"ecosystem": "PyPI", "name": "py_spark"}, **spans(("introduced", "0"), ("fixed", "9"))}
    return {"id": "PYSEC-0000-1", "modified": "2026-01-02T03:04:05Z", "affected": [package], **fields}


def test_findings_name_the_package_the_advisory_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(advisory(details="One\nthing.")))
    (tmp_path / "b.yaml").write_text("id: PYSEC-0000-2\nmodified: 2026-02-03T00:00:00Z\naffected: []\n")
    (tmp_path / "c.json").write_text(json.dumps(advisory(id="PYSEC-0000-3", withdrawn="2026-01-03T00:00:00Z")))
    advisories = read_advisories(tmp_path)
    (finding,) = advisories.of({"Py.Spark": "3.5.9", "other": "1"})
    assert (finding.package, finding.version, finding.advisory) == ("py-spark", "3.5.9", "PYSEC-0000-1")
    assert (finding.summary, finding.fixed_in) == ("One thing.", ("9",))
    assert advisories.newest == "2026-01-02"


def test_the_audit_ends_by_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit([str(tmp_path)]) == 2
    assert "has no advisory" in capsys.readouterr().err
    harmless = advisory()
    (tmp_path / "a.json").write_text(json.dumps(harmless))
    assert audit([str(tmp_path)]) == 0
    harmless["affected"][0]["package"]["name"] = "pytest"
    harmless["affected"][0]["ranges"][0]["events"] = [{"introduced": "0"}]
    (tmp_path / "a.json").write_text(json.dumps(harmless))
    assert audit([str(tmp_path)]) == 1
    assert "PYSEC-0000-1  not fixed yet" in capsys.readouterr().out
    (tmp_path / "a.json").write_text("{ [")
    assert audit([str(tmp_path)]) == 2
    assert str(tmp_path / "a.json") in capsys.readouterr().err
