"""A connection whose tables are to be captured, and a table of it, are looked at before anybody waits for the tap: by an account of a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from lakehub.accounts.models import Role
from lakehub.catalog import connections
from lakehub.catalog.models import Connection, Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import Grain
from tests import factories as given
from tests.factories import NOW
from tests.services.tapped_server import TappedServer, tapped_server

pytestmark = pytest.mark.django_db(transaction=True)
DATABASE = "lakehub_onboarding"
RIGHTS = ("REPLICATION SLAVE", "BINLOG MONITOR")


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        tapped.execute("CREATE OR REPLACE USER reader@'127.0.0.1' IDENTIFIED BY 'hunter2'")
        tapped.execute(f"GRANT SELECT, SHOW VIEW ON {DATABASE}.* TO reader@'127.0.0.1'")
        tapped.execute("CREATE TABLE trips (id int PRIMARY KEY, n int)", "INSERT INTO trips VALUES (1, 1)")
        yield tapped
        tapped.execute("DROP USER reader@'127.0.0.1'")


def connect(server: TappedServer) -> Connection:
    url = f"mysql://reader:hunter2@127.0.0.1:{server.url.port}/{DATABASE}"
    team = given.team("shop").name
    return connections.add_connection(
        name="ops", plugin="mysql", url=url, team=team, actor="ana", now=NOW, by_operator=True
    )


def onboard(table: str, **fields: Any) -> Dataset:
    given.data_center("dc1")
    application = OnboardingRequest(
        team="shop", tier=2, connection="ops", table=table, data_centers=["dc1"], grain=Grain.NONE,
        **{"name": table, "primary_key": ["id"], "record_key": ["id"], **fields},
    )  # fmt: skip
    return onboard_dataset(application, actor="ana", now=NOW).dataset


def test_an_account_that_may_not_read_the_binlog_is_refused_with_the_grants_that_it_lacks(server: TappedServer) -> None:
    with pytest.raises(Refused) as refused:
        connect(server)
    assert all(f"GRANT {right} ON *.* TO" in str(refused.value) for right in RIGHTS)
    assert "hunter2" not in str(refused.value)
    server.execute(f"GRANT {', '.join(RIGHTS)} ON *.* TO reader@'127.0.0.1'")
    assert connect(server).plugin == "mysql"


def test_a_table_that_cannot_be_captured_is_refused_with_what_to_do(server: TappedServer) -> None:
    server.execute(f"GRANT {', '.join(RIGHTS)} ON *.* TO reader@'127.0.0.1'")
    server.execute(
        "CREATE TABLE legs (id int PRIMARY KEY, trip int, FOREIGN KEY (trip) REFERENCES trips (id) ON DELETE CASCADE)",
        "CREATE TABLE old (id int PRIMARY KEY) ENGINE=MyISAM",
        "INSERT INTO legs VALUES (1, 1)",
        "INSERT INTO old VALUES (1)",
    )
    connect(server)
    for table, reason in (("legs", "ON DELETE CASCADE"), ("old", "MyISAM")):
        with pytest.raises(Refused, match=reason):
            onboard(table)
    assert onboard("old", ingested=False).ingested is False  # where it lies, it may be what it is


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("id datetime(6) PRIMARY KEY", "`id` is timestamp in the lake and cannot be a part"),
        ("id uuid PRIMARY KEY", "`id` is binary"),
        ("id decimal(9,2) PRIMARY KEY", r"`id` is decimal\(9,2\) in the lake"),
        ("id double PRIMARY KEY", "`id` is double in the lake"),
        ("id int PRIMARY KEY, odd varchar(9) COMPRESSED", "`odd` is a column of the binlog's type COMPRESSED_VARCHAR"),
        ("id int PRIMARY KEY, odd point", "`odd` is a column of the binlog's type GEOMETRY"),
        ("id int PRIMARY KEY, odd text CHARACTER SET armscii8", "`odd` has the character set armscii8"),
    ],
)
def test_a_column_that_no_load_could_bring_is_refused_before_it_begins(
    server: TappedServer, columns: str, reason: str
) -> None:
    server.execute(f"GRANT {', '.join(RIGHTS)} ON *.* TO reader@'127.0.0.1'", f"CREATE TABLE t ({columns}, n int)")
    connect(server)
    with pytest.raises(Refused, match=reason):
        onboard("t")
    if "odd" in columns:
        assert onboard("t", columns_left_out=["odd"]).feed.object == "t"


def test_a_captured_table_needs_no_reference_key_and_gets_an_index_that_knows_its_partitions(
    server: TappedServer,
) -> None:
    server.execute(f"GRANT {', '.join(RIGHTS)} ON *.* TO reader@'127.0.0.1'")
    connect(server)
    assert onboard("trips").feed.options == {"index": "memory"}
    named = onboard("trips", feed_options={"index": "record_index"}, name="again")
    assert named.feed.options == {"index": "record_index"}


def test_the_page_shows_rows_and_asks_for_nothing_that_a_capture_does_not_need(server: TappedServer) -> None:
    """Of a table with the most awkward columns: values are cut by the server, bytes are not sent, and a view that fails says why."""
    server.execute(
        f"GRANT {', '.join(RIGHTS)} ON *.* TO reader@'127.0.0.1'",
        "CREATE TABLE odd (id int PRIMARY KEY, `a``b%s:c` varchar(9), doc json, bits bit(3), raw blob, place point, none int, long_one longtext, updated_at datetime)",
        "INSERT INTO odd VALUES (1, '<i>', '{\"a\": 1}', b'101', x'ff00', Point(1, 2), NULL, REPEAT('é', 1000000), '2026-11-17 10:00:00')",
        "CREATE DEFINER = nobody@nowhere VIEW broken AS SELECT id FROM trips",
    )
    connect(server)
    person = given.user("ana")
    given.member(person, given.team("shop"), Role.OWNER)
    page = Client()
    page.force_login(person)
    text = page.get("/onboarding?connection=ops&table=odd").content.decode()
    rows = text.partition('id="rows"')[2].partition("</section>")[0]
    values = re.findall(r"<td>(.*?)</td>", rows)
    assert values == ["1", "&lt;i&gt;", "{&quot;a&quot;: 1}", "…", "…", "…", "", "é" * 59 + "…", "2026-11-17 10:00:00"]
    assert 'name="kind"' in text
    assert not re.search('name="(reference_key|cursor_column)"', text)
    assert 'name="columns_hashed"' in text
    assert "No rows can be shown" in page.get("/onboarding?connection=ops&table=broken").content.decode()


def test_tables_are_onboarded_by_a_pattern_with_a_line_for_each(
    server: TappedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.execute(f"GRANT {', '.join(RIGHTS)} ON *.* TO reader@'127.0.0.1'")
    server.execute(
        "CREATE TABLE sales_orders (id int PRIMARY KEY, n int)",
        "CREATE TABLE sales_lines (order_id int, line int, PRIMARY KEY (order_id, line))",
        "CREATE TABLE sales_log (n int)",
        "CREATE TABLE sales_old (id int PRIMARY KEY) ENGINE=MyISAM",
        "INSERT INTO sales_orders VALUES (1, 1)",
    )
    connect(server)
    onboard("sales_orders", name="orders")
    asked = ("onboard", "--connection", "ops", "--tables", "sales_*", "--team", "shop", "--tier", "2")
    with pytest.raises(CommandError, match=r"2 of 4 were refused: .*sales_log"):
        call_command(*asked)
    shown = capsys.readouterr().out
    assert re.search(r"^exists    orders$", shown, re.MULTILINE)
    assert re.search(r"^created   sales_lines", shown, re.MULTILINE)
    assert re.search(r"^refused   sales_log  \(primary_key: The table has no primary key", shown, re.MULTILINE)
    assert re.search(r"^refused   sales_old .*MyISAM", shown, re.MULTILINE)
    lines = Dataset.objects.get(name="sales_lines")
    assert (lines.record_key, lines.tier, lines.team.name) == (["order_id", "line"], 2, "shop")
    assert set(Dataset.objects.values_list("name", flat=True)) == {"orders", "sales_lines"}
    with pytest.raises(CommandError):
        call_command(*asked)
    assert "exists    sales_lines" in capsys.readouterr().out
