"""The servers of the tests: each has a script, and CI, the test runner and the documentation know it."""

from __future__ import annotations

import os
import re
import subprocess
from urllib.parse import urlsplit

import pytest

from tests.__main__ import SERVERS
from tests.architecture.imports import ROOT
from tests.requirements import Service

FOLDER = ROOT / "deploy/services"


def test_the_test_runner_starts_each_that_has_a_script() -> None:
    assert {file.name for file in FOLDER.iterdir() if os.access(file, os.X_OK)} == set(SERVERS)


@pytest.mark.parametrize("name", SERVERS)
def test_ci_starts_each_on_a_port_of_its_own_and_stops_it(name: str) -> None:
    script = (ROOT / ".ci/run").read_text()
    variable, usual, _ = Service[name.upper()].value
    assert f"\ndeploy/services/{name} start" in script
    assert f"\n    deploy/services/{name} stop || true\n" in script
    assert f"{variable}=" in script, "without it, its tests take a developer's server"
    assert f"LAKEHUB_TEST_{name.upper()}_PORT=" in script
    assert not re.search(rf"\b{urlsplit(usual).port}\b", script)


@pytest.mark.parametrize("name", SERVERS)
def test_each_is_documented_with_its_port(name: str) -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    assert f"`LAKEHUB_TEST_{name.upper()}_PORT`" in page
    assert f"`{Service[name.upper()].value[0]}`" in page


@pytest.mark.parametrize("name", SERVERS)
def test_each_script_says_how_it_is_called(name: str) -> None:
    usage = subprocess.run([FOLDER / name], capture_output=True, text=True, check=False)
    assert usage.returncode == 2
    assert re.fullmatch(rf"usage: {name} start( \[[a-z ]+\])?\|stop\|status(\|.+)?\n", usage.stderr)
