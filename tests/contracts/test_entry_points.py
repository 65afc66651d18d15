"""Entry points make the instance's folder; what is only imported, or only explains itself, makes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from lakehub.cli import is_command
from lakehub.instance import KEY_FILES

PROJECT = Path(__file__).resolve().parents[2]

WATCH = """
import sys
made = []
def watch(event, details):
    writes = event == "open" and (details[2] or 0) & 3
    if writes or event in ("os.mkdir", "os.rename", "os.link", "sqlite3.connect", "socket.connect", "subprocess.Popen"):
        made.append((event, *map(str, details[:1])))
sys.addaudithook(watch)
"""
READ_SETTINGS = """
from django.conf import settings
assert settings.INSTALLED_APPS and settings.LAKEHUB_ENCRYPTION_KEY == ""
"""
IMPORT_ALL = """
import django, pkgutil, importlib
import lakehub, ingestion, quality, incidents, frontend
django.setup()
ENTRY_POINTS = ("lakehub.celery", "lakehub.wsgi")
for package in (lakehub, ingestion, quality, incidents, frontend):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name not in ENTRY_POINTS and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
import threading
assert threading.active_count() == 1, threading.enumerate()
"""


@pytest.mark.parametrize("program", [READ_SETTINGS, IMPORT_ALL], ids=["settings", "all modules"])
def test_an_import_makes_no_file_and_connects_to_nothing(tmp_path: Path, program: str) -> None:
    made = run(tmp_path, "-c", f"{WATCH}{program}print(made)")
    assert made.stdout == "[]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("version",), ("--help",), ("help",), ("migrate", "--help")])
def test_a_command_that_only_explains_makes_no_instance(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert run(tmp_path, str(PROJECT / "manage.py"), *words).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_command_makes_no_instance(tmp_path: Path) -> None:
    assert "Unknown command: 'hlep'" in run(tmp_path, str(PROJECT / "manage.py"), "hlep", check=False).stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_knows_every_command() -> None:
    assert [name for name in get_commands() if not is_command(name)] == []


def test_a_command_does_not_replace_the_key_of_a_database(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "lakehub.db").touch()
    ended = run(tmp_path, str(PROJECT / "manage.py"), "check", check=False)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert not (tmp_path / "home" / "encryption_key").exists()


def test_a_command_that_works_makes_its_instance(tmp_path: Path) -> None:
    assert run(tmp_path, str(PROJECT / "manage.py"), "check").returncode == 0
    assert all((tmp_path / "home" / name).is_file() for name in KEY_FILES.values())


def test_a_command_says_in_one_line_why_the_instance_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    ended = run(tmp_path, str(PROJECT / "manage.py"), "check", check=False)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert f"The folder {tmp_path / 'home'} cannot be made" in ended.stderr


@pytest.mark.parametrize("module", ["lakehub.wsgi", "lakehub.celery"])
def test_an_entry_point_makes_its_instance_before_the_settings_are_read(tmp_path: Path, module: str) -> None:
    program = f"import {module}; from django.conf import settings; print(settings.SECRET_KEY)"
    assert run(tmp_path, "-c", program).stdout == (tmp_path / "home" / "secret_key").read_text()


def run(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """This Python in `folder`, as an instance at `home`, which is not there."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    settings = {"LAKEHUB_HOME": str(folder / "home"), "DJANGO_SETTINGS_MODULE": "lakehub.settings"}
    paths = {"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=own | settings | paths,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or ended.returncode == 0, ended.stderr
    return ended
