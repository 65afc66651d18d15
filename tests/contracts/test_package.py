"""The package: what its wheel holds, and that the commands run from it, away from the checkout. The wheel is unpacked and runs on
the packages of this environment; `.ci/run` installs it into an empty one."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

import lakehub
from lakehub.demo.instance import free_address
from tests.polling import scaled, wait_until

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("lakehub", "lakehub_client", "ingestion", "quality", "incidents", "frontend")
BUILT_FROM = ("pyproject.toml", "requirements.txt", "README.md", "LICENSE")
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy, so that nothing is left in the checkout."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in PACKAGES:
        shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*BUILT_FROM, "manage.py"):
        shutil.copy(PROJECT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(target), str(source)], check=True, stdin=subprocess.DEVNULL)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, as in an environment's `site-packages`."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def environment(site: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    return own | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}


def run(site: Path, folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The `lakehub` command in `folder`; its exit code must be 0."""
    done = subprocess.run(
        [sys.executable, "-m", "lakehub", *words],
        cwd=folder,
        env=environment(site) | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=scaled(120),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_wheel_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    files = {
        file.relative_to(PROJECT).as_posix()
        for name in PACKAGES
        for file in (PROJECT / name).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == files


def test_the_version_is_written_once(wheel: Path) -> None:
    assert wheel.name == f"lakehub-{lakehub.__version__}-py3-none-any.whl"
    assert "version" in PYPROJECT["project"]["dynamic"]
    assert f"## [{lakehub.__version__}]" in (PROJECT / "CHANGELOG.md").read_text()


def test_the_packages_dependencies_are_the_pinned_requirements(site: Path) -> None:
    needed = dependencies(site)
    lines = (line.partition("#")[0].strip() for line in (PROJECT / "requirements.txt").read_text().splitlines())
    assert needed == [line for line in lines if line]
    assert all("==" in each for each in needed)


NOT_INSTALLED_WITH_IT = {"airflow"}
"""`lakehub_client.airflow` runs where Airflow is."""


def test_whatever_the_packages_import_is_a_dependency(site: Path) -> None:
    given = {requirement_name(each) for each in dependencies(site)}
    distributions = packages_distributions()
    missing = {
        name
        for name in imported(site) - set(PACKAGES) - sys.stdlib_module_names - NOT_INSTALLED_WITH_IT
        if not given & {requirement_name(each) for each in distributions.get(name, ())}
    }
    assert missing == set()


def imported(site: Path) -> set[str]:
    """The top-level name of every module that is imported anywhere, except for type checking only."""
    names = set()
    for file in site.rglob("*.py"):
        for node in runtime_nodes(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {each.name.split(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    return names


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from runtime_nodes(node)


def requirement_name(requirement: str) -> str:
    return canonicalize_name(re.split(r"[\[=]", requirement)[0])


def dependencies(site: Path) -> list[str]:
    (metadata,) = site.glob("*.dist-info/METADATA")
    return re.findall(r"^Requires-Dist: (.+)$", metadata.read_text(), re.MULTILINE)


def test_the_build_backend_is_the_pinned_one() -> None:
    (backend,) = PYPROJECT["build-system"]["requires"]
    assert backend in (PROJECT / "requirements.txt").read_text().split()


def test_the_installed_command_is_ours(site: Path) -> None:
    (entry_points,) = site.glob("*.dist-info/entry_points.txt")
    assert entry_points.read_text().split("\n")[:2] == ["[console_scripts]", "lakehub = lakehub.cli:entry_point"]


@pytest.mark.parametrize("word", ["version", "--version"])
def test_the_version_needs_no_instance(site: Path, tmp_path: Path, word: str) -> None:
    assert run(site, tmp_path, word).stdout == f"lakehub {lakehub.__version__}\n"
    assert list(tmp_path.iterdir()) == []


def test_manage_py_says_the_same(tmp_path: Path) -> None:
    command = [sys.executable, str(PROJECT / "manage.py"), "version"]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out == f"lakehub {lakehub.__version__}\n"


def test_setup_finds_the_jars_that_the_cache_has(site: Path, tmp_path: Path) -> None:
    from lakehub.setup.artifacts import SPARK_JARS, ArtifactNotFetched, artifact_path

    try:
        jars = [artifact_path(jar) for jar in SPARK_JARS]
    except ArtifactNotFetched:
        pytest.skip("The table format's jars were not fetched: make setup")
    cache = tmp_path / "xdg" / "lakehub" / "jars"
    cache.mkdir(parents=True)
    for jar in jars:
        (cache / jar.name).symlink_to(jar)
    out = run(site, tmp_path, "setup", XDG_CACHE_HOME=str(tmp_path / "xdg")).stdout
    assert all(str(cache / jar.name) in out for jar in jars)


def test_every_command_of_the_checkout_is_there(site: Path, tmp_path: Path) -> None:
    from django.core.management import get_commands

    ours = {name for name, app in get_commands().items() if app.split(".")[0] in PACKAGES}
    listed = run(site, tmp_path, "help", "--commands").stdout.split()
    assert ours <= set(listed)


def test_the_demo_explains_itself(site: Path, tmp_path: Path) -> None:
    assert "--no-serve" in run(site, tmp_path, "demo", "--help").stdout
    assert list(tmp_path.iterdir()) == []


def test_templates_are_found(site: Path, tmp_path: Path) -> None:
    program = "from django.template.loader import get_template as get; print(get('ui/templates/base.html').origin.name)"
    assert run(site, tmp_path, "shell", "--verbosity", "0", "-c", program).stdout.strip().startswith(str(site))


def test_a_job_for_a_cluster_is_packed_from_the_package(site: Path, tmp_path: Path) -> None:
    program = "from pathlib import Path; from ingestion.launchers.spark_submit import build_code_zip; print(build_code_zip(Path('out')))"
    run(site, tmp_path, "shell", "--verbosity", "0", "-c", program)
    (packed,) = (tmp_path / "out").glob("*.zip")
    with zipfile.ZipFile(packed) as archive:
        assert "ingestion/spark/__main__.py" in archive.namelist()


def test_an_instance_serves_from_the_current_directory(site: Path, tmp_path: Path) -> None:
    bind, log = free_address(), tmp_path / "log"
    env = environment(site) | {"LAKEHUB_WEB_WORKERS": "1"}
    command = [sys.executable, "-m", "lakehub", "up", "web", "--bind", bind]
    with log.open("wb") as out:
        processes = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_until(lambda: reads(bind, "/health"), within_s=60, otherwise=log.read_text)
        assert reads(bind, "/ready")
        assert reads(bind, "/static/frontend/css/base.css")
        assert reads(bind, "/static/plotly/plotly.min.js")
    finally:
        processes.send_signal(signal.SIGTERM)
        processes.wait(scaled(60))
    assert (tmp_path / ".lakehub" / "lakehub.db").is_file()


def reads(bind: str, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{bind}{path}", timeout=scaled(5)) as answer:
            return bool(answer.read(10) and answer.status == 200)
    except OSError:
        return False
