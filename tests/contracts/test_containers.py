"""The Containerfile and compose.yaml, as far as can be seen without a container engine: they name what exists, and the shell lines
of the build work in a folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from lakehub.processes.commands import process_commands
from lakehub.processes.supervisor.run import GRACE_S
from lakehub.setup.artifacts import SPARK_JARS, ArtifactNotFetched, artifact_path

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "deploy" / "containers"
PINNED = re.compile(r"[a-z]+:\d+\.\d+(\.\d+)?-[a-z-]+")
OURS = ("migrate", "web", "worker", "incidents", "spark", "follow", "tap", "beat")
OTHERS_SETTINGS = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
"""Of PostgreSQL's image."""


def instructions() -> list[tuple[str, str]]:
    """(instruction, argument) in order, continued lines joined."""
    lines = [line for line in (FOLDER / "Containerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace("\\\n", "")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def arguments(instruction: str) -> list[str]:
    return [argument for word, argument in instructions() if word == instruction]


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return loaded


def service(name: str) -> dict[str, Any]:
    definition: dict[str, Any] = compose()["services"][name]
    return definition


def copied() -> list[str]:
    """What COPY takes from the checkout."""
    words = [argument.split() for argument in arguments("COPY") if not argument.startswith("--from=")]
    return [source for *sources, _ in words for source in sources]


def test_every_base_image_has_an_exact_tag() -> None:
    bases = [argument.split()[0] for argument in arguments("FROM")]
    assert len(bases) == 2
    assert len(set(bases)) == 1, "a virtual environment runs on the Python that made it"
    assert all(PINNED.fullmatch(each) for each in bases), bases


def test_the_python_is_the_one_that_the_package_needs() -> None:
    assert all(argument.startswith("python:3.11.") for argument in arguments("FROM"))


def test_it_does_not_run_as_root() -> None:
    (user,) = arguments("USER")
    assert user.isdecimal()
    assert int(user) > 0
    assert f"--uid {user} " in " ".join(arguments("RUN"))
    assert [word for word, _ in instructions()].index("USER") > max(
        number for number, (word, _) in enumerate(instructions()) if word == "RUN"
    )


@pytest.mark.parametrize("source", copied())
def test_whatever_is_copied_is_in_the_repository_and_sent_to_the_engine(source: str) -> None:
    listed = subprocess.run(["git", "ls-files", source], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert listed
    assert f"!{source}" in (FOLDER / "Containerfile.dockerignore").read_text().splitlines()


def test_all_packages_are_copied() -> None:
    folders = {path.parent.name for path in PROJECT.glob("*/__init__.py")} - {"tests", "bench"}
    assert folders <= set(copied())


def test_the_health_check_asks_an_endpoint_that_exists() -> None:
    (check,) = arguments("HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    assert command == service("web")["healthcheck"]["test"][1:]
    compile(command[2], "HEALTHCHECK", "exec")
    assert "'http://127.0.0.1:8000/health'" in command[2]
    assert arguments("EXPOSE") == ["8000"]


def test_a_secret_is_in_no_layer() -> None:
    assert not re.search(r"SECRET|PASSWORD|ENCRYPTION|TOKEN", " ".join(arguments("ENV") + arguments("ARG")))


@pytest.mark.parametrize("line", arguments("RUN"))
def test_shell_lines_are_well_formed(line: str) -> None:
    subprocess.run(["sh", "-n", "-c", line], check=True)


def test_the_build_makes_an_environment_that_has_the_command(tmp_path: Path) -> None:
    """All RUN lines of the first stage but the one that needs a package index; what that installs is this environment's."""
    root, source = tmp_path / "opt", tmp_path / "src"
    for name in copied():
        copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(PROJECT / name, source / name)
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
        "HOME": str(tmp_path),
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
    }
    stages = [number for number, (word, _) in enumerate(instructions()) if word == "FROM"]
    folder = source
    for word, argument in instructions()[: stages[1]]:
        if word == "WORKDIR":
            folder = {"/src": source, "/opt/lakehub": root}[argument]
        if word == "RUN" and "requirements.txt" not in argument and (have_the_jars(root) or "setup" not in argument):
            line = argument.replace("/opt/lakehub", str(root))
            subprocess.run(["sh", "-c", line], cwd=folder, env=env, check=True, capture_output=True, text=True)
    command = [root / "bin" / "lakehub", "--version"]
    assert subprocess.run(command, cwd=root, env=env, capture_output=True, check=True).stdout.startswith(b"lakehub ")


def have_the_jars(root: Path) -> bool:
    """Put the jars that were fetched for the tests where the image's line looks for them; False where one is missing."""
    try:
        fetched = [artifact_path(jar) for jar in SPARK_JARS]
    except ArtifactNotFetched:
        return False
    for jar in fetched:
        target = root / "cache" / "jars" / jar.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(jar)
    return True


def test_there_is_a_service_for_every_process() -> None:
    assert set(process_commands()) | {"migrate"} == set(OURS)
    assert set(compose()["services"]) == {*OURS, "postgres", "redis"}
    assert [service(name)["command"][-1] for name in OURS[1:]] == list(OURS[1:])


@pytest.mark.parametrize("name", OURS)
def test_a_service_runs_a_command_that_exists_in_the_image_that_is_built(name: str) -> None:
    program, command, *_ = service(name)["command"]
    assert program == "lakehub"
    assert command in get_commands()
    assert service(name)["image"] == service("migrate")["image"]
    build = service("migrate")["build"]
    context = (FOLDER / build["context"]).resolve()
    assert context == PROJECT
    assert (context / build["dockerfile"]).is_file()


def test_the_database_is_up_to_date_before_anything_else_starts() -> None:
    for name in OURS[1:]:
        assert service(name)["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert "--no-migrate" in service("web")["command"]


def test_the_servers_have_exact_tags() -> None:
    assert all(PINNED.fullmatch(service(name)["image"]) for name in ("postgres", "redis"))


def test_every_variable_is_documented() -> None:
    configuration = (PROJECT / "docs" / "configuration.md").read_text()
    here = (PROJECT / "docs" / "containers.md").read_text()
    named = {name for name in OURS for name in service(name)["environment"]}
    named |= {name for each in compose()["services"].values() for name in each.get("environment", ())}
    named |= set(re.findall(r"\$\{(\w+)", (FOLDER / "compose.yaml").read_text()))
    named |= set(re.findall(r"\b(LAKEHUB_\w+)=", (FOLDER / "Containerfile").read_text()))
    unknown = {each for each in named if f"`{each}`" not in configuration} - OTHERS_SETTINGS
    assert unknown == set()
    assert "`POSTGRES_PASSWORD`" in here


def test_the_example_lists_every_variable_that_compose_reads() -> None:
    read = set(re.findall(r"\$\{(\w+)", (FOLDER / "compose.yaml").read_text()))
    listed = set(re.findall(r"^#?(\w+)=", (FOLDER / "example.env").read_text(), re.MULTILINE))
    assert listed == read


def test_volumes_and_dependencies_are_declared() -> None:
    loaded = compose()
    for name, each in loaded["services"].items():
        for volume in each.get("volumes", ()):
            assert volume.split(":")[0] in loaded["volumes"], name
        assert set(each.get("depends_on", ())) <= set(loaded["services"]), name


def test_services_are_given_the_time_that_up_takes_to_stop() -> None:
    """Longer, or what it has not yet killed would be killed with it."""
    unit = (PROJECT / "deploy" / "systemd" / "lakehub@.service").read_text()
    stop_s = int(unit.partition("TimeoutStopSec=")[2].split()[0])
    graces = {int(service(name)["stop_grace_period"].removesuffix("s")) for name in OURS}
    assert graces == {stop_s}
    assert stop_s >= GRACE_S + 5
