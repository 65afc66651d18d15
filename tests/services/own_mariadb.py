"""A MariaDB of a test's own, with a folder, a port and settings that nobody else depends on: to be killed, promoted or given other certificates."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from lakehub.demo.instance import free_address
from tests.polling import scaled, wait_until

_USERS = """CREATE USER IF NOT EXISTS lakehub@'127.0.0.1' IDENTIFIED BY 'lakehub';
GRANT ALL ON *.* TO lakehub@'127.0.0.1' WITH GRANT OPTION;
"""
_TAPPABLE = (
    "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL", "--log-slave-updates=1", "--gtid-strict-mode=1",
    "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1", "--innodb-buffer-pool-size=16M", "--skip-name-resolve",
)  # fmt: skip


@dataclass
class OwnMariaDB:
    """`number`: its `server_id`. `statements`: run before anybody may connect, without entries in the binlog."""

    folder: Path
    number: int
    options: Sequence[str] = ()
    statements: str = ""
    address: str = field(default_factory=free_address)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Of an account that may do everything."""
        return f"mysql://lakehub:lakehub@{self.address}"

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def has_ended(self) -> bool:
        """By itself. What closes its connections may be its end, which takes a moment more."""
        assert self._process is not None
        try:
            self._process.wait(scaled(1))
        except subprocess.TimeoutExpired:
            return False
        return True

    def start(self) -> None:
        data, user = self.folder / "data", ["--user=root"] if os.geteuid() == 0 else []
        if not data.exists():
            own = ["--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
            subprocess.run(["mariadb-install-db", *own, *user], check=True, capture_output=True, timeout=scaled(120))
        users = self.folder / "users.sql"
        users.write_text(f"SET sql_log_bin = 0;\n{_USERS}{self.statements}")
        places = [f"--datadir={data}", f"--socket={self.folder / 's'}", f"--log-bin={data / 'binlog'}"]
        own = [f"--port={self.port}", "--bind-address=127.0.0.1", f"--server-id={self.number}", f"--init-file={users}"]
        self._process = subprocess.Popen(
            ["mariadbd", "--no-defaults", *places, *own, *_TAPPABLE, *user, *self.options],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "mariadb.log").open("ab"),
            start_new_session=True,
        )
        wait_until(self._answers, within_s=60, otherwise=lambda: (self.folder / "mariadb.log").read_text()[-2000:])

    def kill(self) -> None:
        """As a machine that loses its power."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(scaled(30))

    def stop(self) -> None:
        if self._process is not None and self.is_running:
            self._process.terminate()
            self._process.wait(scaled(60))

    def execute(self, *statements: str) -> list[Any]:
        """What the last one answers; each is a transaction."""
        rows: list[Any] = []
        url = self.url.replace("mysql:", "mysql+pymysql:")
        engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                result = connection.exec_driver_sql(statement)
                rows = [*result] if result.returns_rows else []
        return rows

    def gtid(self) -> str:
        return str(self.execute("SELECT @@gtid_binlog_pos")[0][0])

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "mariadb.log").read_text()[-2000:]
        try:
            self.execute("SELECT 1")
        except sa.exc.SQLAlchemyError:
            return False
        return True


@contextmanager
def own_mariadb(folder: Path, number: int, *options: str, statements: str = "") -> Iterator[OwnMariaDB]:
    folder.mkdir(parents=True)
    server = OwnMariaDB(folder, number, options, statements)
    try:
        server.start()
        yield server
    finally:
        server.stop()
