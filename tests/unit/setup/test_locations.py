from __future__ import annotations

from pathlib import Path

import pytest

from lakehub.setup import locations


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory of a program whose packages are not in a checkout."""
    monkeypatch.setattr(locations, "checkout", lambda: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_checkout_is_known_by_its_files(tmp_path: Path) -> None:
    assert locations.checkout() == Path(__file__).resolve().parents[3]
    assert locations.checkout(tmp_path) is None


def test_a_checkout_keeps_its_files_inside() -> None:
    source = locations.checkout()
    assert source
    assert locations.home_folder({}) == source / ".lakehub"
    assert locations.cache_folder({"XDG_CACHE_HOME": "/x"}) == source / ".cache"
    assert locations.demo_folder() == source / ".demo"


def test_an_installed_instance_lives_in_the_current_directory(installed: Path) -> None:
    assert locations.home_folder({}) == installed / ".lakehub"
    assert locations.demo_folder() == installed / ".demo"


def test_downloads_of_an_installed_package_are_in_the_users_cache(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ines")
    assert locations.cache_folder({}) == Path("/home/ines/.cache/lakehub")
    assert locations.cache_folder({"XDG_CACHE_HOME": "/var/cache"}) == Path("/var/cache/lakehub")
    assert locations.cache_folder({"XDG_CACHE_HOME": "not/absolute"}) == Path("/home/ines/.cache/lakehub")


def test_the_environment_comes_first(installed: Path) -> None:
    assert locations.home_folder({"LAKEHUB_HOME": "/var/lib/lakehub"}) == Path("/var/lib/lakehub")
    assert locations.home_folder({"LAKEHUB_HOME": "here"}) == installed / "here"
    assert locations.cache_folder({"LAKEHUB_CACHE": "/var/cache/jars"}) == Path("/var/cache/jars")
