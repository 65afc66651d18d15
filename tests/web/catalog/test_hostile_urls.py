"""URLs that nobody means well, by the API, the page and the command: refused in words or not reached, never an error of ours.

`LAKEHUB_FUZZ_URLS=100000 python -m pytest tests/web/catalog/test_hostile_urls.py` tries so many; the seed is new each time and is
printed (`LAKEHUB_FUZZ_SEED` repeats it). Nothing answers at any of them.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from lakehub.accounts.models import Role
from lakehub.source_databases import engine
from lakehub.source_databases.drivers import DRIVERS, MYSQL_SESSION
from tests import factories as make
from tests.fuzz_seed import REPEAT, SEED

pytestmark = pytest.mark.django_db

URLS = int(os.environ.get("LAKEHUB_FUZZ_URLS", "300"))
SECRET = "hunter2hunter2"
SCHEMES = (
    *DRIVERS, "oracle", "mssql+pyodbc", "postgresql+asyncpg", "mysql+mysqlconnector", "sqlite+aiosqlite", "sqlite+pysqlcipher", "access",
    "duckdb", "postgres", "PostgreSQL", "file", "s3a", "http", "", "+", "postgresql+", "+psycopg", "postgresql+psycopg+psycopg", "x" * 500,
    "os.path", "../evil", "sqlite+../../x",
)  # fmt: skip
USERS = (
    "",
    "u@",
    f"u:{SECRET}@",
    f"u:{SECRET}%00@",
    f":{SECRET}@",
    "u:@",
    "%@",
    "%zz:%@",
    "\u202eu@",
    "u%40h:p@",
    "é:ß@",
    "a" * 900 + "@",
)
HOSTS = (
    "127.0.0.1", "localhost", "[::1]", "127.1", "0x7f.1", "127.0.0.1,127.0.0.1", "[", "]", "[::1", "[::1%25lo]", "[v1.x]", "", ".", "..",
    "a..b", "-", "h" * 300, "ｌocalhost", "xn--", "bücher.invalid", "%2Ftmp", "/tmp", "@x", "::1", "127.0.0.1%00", "\u0000", "\ud800", "1e9",
)  # fmt: skip
PORTS = (":1", "", ":", ":0", ":99999", ":-1", ":٣", ":1e3", ":" + "9" * 5000, ":0x1", ":1:1", ": 1", ":\n1")
NAMES = (
    "/x", "", "/", "//", "/x/y/z", "/../../etc/passwd", "//etc/passwd", "//etc/passwd%00.db", "/#/../../etc/passwd", "/file:/etc/passwd",
    "/:memory:", "/host=127.0.0.1", "/postgresql://127.0.0.1/x", "/%2e%2e%2fx", "/\ud800", "/" + "a" * 5000, "//proc/self/environ",
    "//dev/stdin", "///x", "/%ff", "/x y", "/'", '/"', "/;", "//tmp/#x", "//tmp/?x",
)  # fmt: skip
OPTIONS = (
    "local_infile", "read_default_file", "read_default_group", "unix_socket", "host", "hostaddr", "port", "service", "passfile", "sslkey",
    "sslcert", "sslrootcert", "ssl_ca", "ssl_key", "ssl", "options", "application_name", "connect_timeout", "read_timeout", "init_command",
    "client_flag", "conv", "cursorclass", "plugin", "plugin_dir", "auth_plugin_map", "bind_address", "charset", "client_encoding", "sslmode",
    "target_session_attrs", "odbc_connect", "driver", "uri", "mode", "vfs", "cache", "timeout", "isolation_level", "factory", "role",
    "credentials_path", "dbname", "user", "password", "defer_connect", "sql_mode", "server_public_key", "__class__", "", "\u0000", "a" * 500,
)  # fmt: skip
VALUES = (
    "", "1", "0", "-1", "true", "utf8", "require", "9" * 5000, "nan", "/etc/passwd", "../x", "-csearch_path=x", "-c statement_timeout=0",
    "-csearch_path=x -c log_min_messages=debug5", "%00", "\ud800", "x" * 2000, "$(id)", "'; DROP TABLE x", "127.0.0.1", "٣", "1e3", "[]", "{}",
)  # fmt: skip
NOISE = "@:/?#[]%&=+;,\\ \t\n\r\0'\"é\u202e\ud800﷽😀"


def hostile_url(chance: random.Random) -> str:
    url = f"{chance.choice(SCHEMES)}://{chance.choice(USERS)}{chance.choice(HOSTS)}{chance.choice(PORTS)}{chance.choice(NAMES)}"
    if chance.random() < 0.6:
        pairs = [f"{chance.choice(OPTIONS)}={chance.choice(VALUES)}" for _ in range(chance.randint(1, 3))]
        url += "?" + "&".join(pairs)
    if chance.random() < 0.3:
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(url) + 1)
            url = url[:place] + chance.choice(("", *NOISE)) + url[place + chance.randint(0, 3) :]
    return url


def reachable_url(chance: random.Random) -> str:
    """One of which only the options are hostile: it gets as far as the driver where they are let through."""
    begin = chance.choice(("postgresql+psycopg", "mysql+pymysql", "mariadb+pymysql"))
    pairs = [f"{chance.choice(OPTIONS)}={chance.choice(VALUES)}" for _ in range(chance.randint(0, 2))]
    return f"{begin}://u:{SECRET}@127.0.0.1:1/x{'?' if pairs else ''}{'&'.join(pairs)}"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of what drivers were given, but for the statement that we give."""
    names, open_raw = set[str](), engine._open_raw

    def recording(dialect: Any, target: Any, timeouts: Any, arguments: Any, keywords: Mapping[str, Any]) -> Any:
        assert not arguments
        names.update(name for name, value in keywords.items() if (name, value) != ("init_command", MYSQL_SESSION))
        return open_raw(dialect, target, timeouts, arguments, keywords)

    monkeypatch.setattr(engine, "_open_raw", recording)
    return names


OUR_ARGUMENTS = {
    "host", "port", "user", "password", "passwd", "db", "database", "dbname", "client_flag", "context",
    "connect_timeout", "read_timeout", "write_timeout", "local_infile", "ssl", "charset",
    "tcp_user_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "passfile", "sslcert", "sslkey", "gssencmode",
    "application_name", "channel_binding", "client_encoding", "options", "sslmode", "sslrootcert", "target_session_attrs",
}  # fmt: skip


def test_no_url_is_answered_with_an_error_of_ours(
    client: Client, given: set[str], settings: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.LAKEHUB_API_RATE = 0
    chance, team, ada = random.Random(SEED), make.team(), make.user("ada")
    make.member(ada, team, Role.ADMIN)
    client.force_login(ada)
    client.raise_request_exception = False
    with capsys.disabled():
        print(f" {URLS} URLs, {REPEAT}", end=" ")
    answers = Counter[str]()
    for number in range(URLS):
        url = hostile_url(chance) if number % 3 else reachable_url(chance)
        way = chance.choice((by_api, by_page, by_command))
        why = f"{way.__name__}({url!r}), {REPEAT}"
        status, answer_text = way(client, team.name, url, monkeypatch)
        answers[f"{way.__name__} {status}"] += 1
        assert status in (400, 422), why
        assert len(answer_text) > 20, why
        assert SECRET not in answer_text, why
    assert len(answers) >= 3, answers
    assert given <= OUR_ARGUMENTS
    assert {"host", "tcp_user_timeout", "local_infile"} <= given


def by_api(client: Client, team: str, url: str, _: pytest.MonkeyPatch) -> tuple[int, str]:
    body = {"plugin": "sql", "url": url, "team": team}
    answer = client.post("/api/v1/connections/test", body, content_type="application/json")
    return answer.status_code, answer.content.decode()


def by_page(client: Client, team: str, url: str, _: pytest.MonkeyPatch) -> tuple[int, str]:
    body = {
        "name": "ops",
        "plugin": "sql",
        "url": url.encode("utf-8", "replace").decode(),
        "team": team,
        "action": "test",
    }
    answer = client.post(reverse("new-connection"), body)
    return answer.status_code, answer.content.decode()


def by_command(_: Client, team: str, url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The operator's own words are judged like everybody's. What an environment cannot hold comes in no other way."""
    monkeypatch.setenv("OPS_URL", url.replace("\0", "").encode("utf-8", "replace").decode() or "x")
    try:
        call_command("connect", "ops", "sql", team=team, url_from="OPS_URL", test=True, stdout=StringIO())
    except CommandError as refused:
        return 422, str(refused)
    return 200, ""
