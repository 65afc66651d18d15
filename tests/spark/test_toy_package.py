"""A package from outside the tree brings a storage, a source, an engine, a check and a channel; all are used as our own are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.polling import scaled

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The package, installed by pip away from this environment."""
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(PROJECT / "tests" / "toy_package", source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    only_this = ["--no-deps", "--no-build-isolation", "--no-index", "--no-compile", "--target", str(site), str(source)]
    subprocess.run([*pip, *only_this], check=True, stdin=subprocess.DEVNULL)
    return site


def test_a_package_from_outside_is_used_from_onboarding_to_message(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "story"
    (folder / "home").mkdir(parents=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    kept = {name: value for name, value in os.environ.items() if name in ("LAKEHUB_JAVA_HOME", "LAKEHUB_CACHE")}
    played = subprocess.run(
        [sys.executable, "-m", "tests.spark.toy_story", str(folder)],
        cwd=PROJECT,
        env=own | kept | {"PYTHONPATH": str(site), "LAKEHUB_HOME": str(folder / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=scaled(300),
        check=False,
    )
    assert played.returncode == 0, played.stderr
    story = json.loads(played.stdout.splitlines()[-1])
    assert (story["run"], story["applied"]) == (["succeeded", ""], 50)
    assert {"ledger_balance", "completeness", "sample"} <= story["before"].keys()
    assert set(story["before"].values()) == {"pass"}
    assert story["after"]["ledger_balance"] == "fail"
    assert story["incidents"] == ["completeness"]
    assert "payments" in story["notes"]
    assert "Entries of the ledger" in story["notes"]
