"""The instance's folder: its keys are made once, whole, and what cannot be used is named."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from lakehub.environment import InvalidSetting
from lakehub.instance import KEY_FILES, UnusableInstance, prepare_instance, read_key


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"LAKEHUB_HOME": str(home), **more}


def contents(home: Path) -> set[str]:
    return {path.relative_to(home).as_posix() for path in home.rglob("*")}


def test_what_is_missing_is_made(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    assert prepare_instance(environ(home)) == home
    assert contents(home) == {"broker", "broker/control", "broker/queue", "static", "secret_key", "encryption_key"}
    for name in KEY_FILES.values():
        assert len((home / name).read_text()) > 40
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600


def test_what_is_there_stays(tmp_path: Path) -> None:
    prepare_instance(environ(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    prepare_instance(environ(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_reads_what_is_made(tmp_path: Path, umask: int) -> None:
    home, before = tmp_path / "home", os.umask(umask)
    try:
        prepare_instance(environ(home))
        (home / "later").write_text("made by this process afterwards")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.rglob("*"))}
    assert modes == {
        name: 0o700 if (home / name).is_dir() or name in ("home", "queue", "control") else 0o600 for name in modes
    }


def test_an_older_folder_is_closed_to_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    prepare_instance(environ(home))
    (home / "lakehub.db").write_text("")
    home.chmod(0o755)
    (home / "lakehub.db").chmod(0o644)
    prepare_instance(environ(home))
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home, home / "lakehub.db")] == [0o700, 0o600]


def test_a_folder_that_all_users_share_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    prepare_instance(environ(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_the_mask_can_let_a_group_read(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        prepare_instance(environ(tmp_path, LAKEHUB_UMASK="027"))
        assert os.umask(before) == 0o027
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", ["9", "rwx", "-1", "0777", "0o27x", "700"])
def test_a_mask_that_shuts_the_owner_out_is_refused(tmp_path: Path, mask: str) -> None:
    with pytest.raises(InvalidSetting, match="LAKEHUB_UMASK"):
        prepare_instance(environ(tmp_path, LAKEHUB_UMASK=mask))


def test_what_is_given_is_not_made(tmp_path: Path) -> None:
    given = {"LAKEHUB_SECRET_KEY": "a", "LAKEHUB_ENCRYPTION_KEY": "b", "LAKEHUB_BROKER_URL": "redis://127.0.0.1/0"}
    prepare_instance(environ(tmp_path, **given))
    assert contents(tmp_path) == {"static"}
    assert read_key("LAKEHUB_SECRET_KEY", tmp_path, given) == "a"


def test_processes_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    with ProcessPoolExecutor(8) as pool:
        keys = set(pool.map(_start, [str(tmp_path)] * 32))
    assert len(keys) == 1
    assert contents(tmp_path) == {"broker", "broker/control", "broker/queue", "static", "secret_key", "encryption_key"}


def _start(home: str) -> tuple[str, ...]:
    prepare_instance({"LAKEHUB_HOME": home})
    return tuple(read_key(variable, Path(home), {}) for variable in KEY_FILES)


def test_a_key_is_not_there_before_it_is_made(tmp_path: Path) -> None:
    assert read_key("LAKEHUB_SECRET_KEY", tmp_path / "none", {}) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [{}, {"LAKEHUB_DATABASE_URL": "sqlite:///{}/lakehub.db"}])
def test_no_encryption_key_is_made_beside_a_database(tmp_path: Path, given: dict[str, str]) -> None:
    named = {name: value.format(tmp_path) for name, value in given.items()}
    (tmp_path / "lakehub.db").touch()
    with pytest.raises(
        UnusableInstance, match=r"/encryption_key is missing\. .*lakehub\.db .* or set LAKEHUB_ENCRYPTION_KEY"
    ):
        prepare_instance(environ(tmp_path, **named))
    assert not (tmp_path / "encryption_key").exists()
    prepare_instance(environ(tmp_path, LAKEHUB_ENCRYPTION_KEY="restored", **named))


@pytest.mark.parametrize(
    ("will_migrate", "why"),
    [(False, "where `lakehub migrate` of a new database makes it"), (True, "does not say whether")],
)
def test_no_encryption_key_is_made_for_a_server_that_may_have_one(tmp_path: Path, will_migrate: bool, why: str) -> None:
    """Nothing listens on this port: whether its database is new is not known."""
    server = environ(tmp_path, LAKEHUB_DATABASE_URL="postgresql://u:hush@127.0.0.1:1/x")
    with pytest.raises(UnusableInstance, match=r"encryption_key is missing\. LAKEHUB_DATABASE_URL ") as refused:
        prepare_instance(server, will_migrate=will_migrate)
    assert why in str(refused.value)
    assert "hush" not in str(refused.value)
    assert not (tmp_path / "encryption_key").exists()


@pytest.mark.parametrize(("used", "made"), [(False, True), (True, False)])
def test_who_migrates_a_server_makes_the_key_of_a_new_database_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: bool, made: bool
) -> None:
    server = MagicMock()
    server.__enter__.return_value.execute.return_value.fetchone.return_value = ("django_migrations" if used else None,)
    monkeypatch.setattr("psycopg.connect", lambda *_, **__: server)
    with nullcontext() if made else pytest.raises(UnusableInstance, match="has tables of Lakehub"):
        prepare_instance(environ(tmp_path, LAKEHUB_DATABASE_URL="postgresql://db/lakehub"), will_migrate=True)
    assert (tmp_path / "encryption_key").exists() == made


def test_an_empty_key_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "encryption_key").touch()
    with pytest.raises(UnusableInstance, match=r"encryption_key is empty\. Restore it .* set LAKEHUB_ENCRYPTION_KEY"):
        prepare_instance(environ(tmp_path))
    assert (tmp_path / "encryption_key").read_text() == ""


def test_a_home_that_is_a_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(UnusableInstance, match=r"home cannot be made: File exists\. Set LAKEHUB_HOME"):
        prepare_instance(environ(tmp_path / "home"))


def test_a_home_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableInstance, match=r"home cannot be made: Not a directory\. Set LAKEHUB_HOME"):
        prepare_instance(environ(tmp_path / "file" / "home"))


def test_a_key_that_cannot_be_read_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "secret_key").mkdir()
    with pytest.raises(UnusableInstance, match=r"secret_key cannot be read: .*, or set LAKEHUB_SECRET_KEY"):
        prepare_instance(environ(tmp_path))


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"\0" * 65, "Schlüssel".encode()], ids=["no text", "zeros", "no ASCII"]
)
@pytest.mark.parametrize("file_name", ["encryption_key", "secret_key"])
def test_a_key_that_is_damaged_is_named_with_the_remedy(content: bytes, file_name: str, tmp_path: Path) -> None:
    prepare_instance(environ(tmp_path))
    (tmp_path / file_name).write_bytes(content)
    with pytest.raises(UnusableInstance, match=rf"{tmp_path / file_name} is damaged: it holds no text\. Restore it"):
        prepare_instance(environ(tmp_path))
    assert (tmp_path / file_name).read_bytes() == content


def _no_database(file: Path) -> None:
    file.write_bytes(b"\x8f" * 4096)


def _folder(file: Path) -> None:
    file.mkdir()


def _no_folder(file: Path) -> None:
    file.parent.rmdir()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_no_database, "is not an SQLite database, or is damaged"),
        (_folder, "is not a file"),
        (_no_folder, "cannot be made, as its folder is missing"),
    ],
)
def test_a_database_file_that_cannot_be_used_is_named_with_the_remedy(
    spoil: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    file = tmp_path / "place" / "lakehub.db"
    file.parent.mkdir()
    spoil(file)
    given = environ(tmp_path / "home", LAKEHUB_DATABASE_URL=f"sqlite:///{file}")
    with pytest.raises(UnusableInstance, match=rf"{file} {why}\. .* LAKEHUB_DATABASE_URL"):
        prepare_instance(given)


def test_a_database_that_may_not_be_read_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_instance(environ(tmp_path))
    file = tmp_path / "lakehub.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE some (id INTEGER)")
    prepare_instance(environ(tmp_path))
    # Whoever runs the tests as root may read and write all files.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UnusableInstance, match=f"{file} cannot be written to by this user"):
        prepare_instance(environ(tmp_path))

    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UnusableInstance, match=f"{file} cannot be read: Permission denied"):
        prepare_instance(environ(tmp_path))
