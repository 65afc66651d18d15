"""What every suite shares: repeatable random tests, and servers that may be missing."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lakehub.setup.machine import scaled, slowness
from tests import brief_jvms
from tests.requirements import Service, missing_service
from tests.rounds import EVERYDAY_EXAMPLES

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Playwright's loop and Django's ORM share the thread in e2e
brief_jvms.configure(os.environ)

pytest.register_assert_rewrite("tests.contracts.engine_answers", "tests.contracts.awkward.check")

settings.register_profile(
    "repeatable",
    derandomize=True,
    max_examples=EVERYDAY_EXAMPLES,  # the suite is run at every change; CI looks longer (thorough, the same each time), search longest and at random
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", parent=settings.get_profile("repeatable"), max_examples=50)
settings.register_profile("search", parent=settings.get_profile("repeatable"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("LAKEHUB_HYPOTHESIS", "repeatable"))

SUITES = ("unit", "contracts", "golden", "web", "spark", "services", "e2e")
SERVED = ("services", "e2e")
"""Suites that start servers and processes on the database of the tests."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """`--ds` stands in pyproject.toml, and is understood, for nothing, where a suite runs without Django as well."""
    if not pluginmanager.hasplugin("django"):
        parser.addoption("--ds")


def pytest_report_header() -> str:
    speed = f"deadlines: those of a quiet machine x {slowness():.2f} (LAKEHUB_SLOWNESS)"
    profile = os.environ.get("LAKEHUB_HYPOTHESIS", "repeatable")
    return f"hypothesis profile: {profile} (derandomized: {settings().derandomize}); instance folder: {os.environ.get('LAKEHUB_HOME')}; {speed}"


def pytest_configure(config: pytest.Config) -> None:
    """Measured before anything else runs, and by one process: those that it starts take it over."""
    slowness()


def pytest_collection_finish() -> None:
    """What is imported stays: to look at all of it at each collection of garbage takes a fifth of the pure suite's time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """As it was: extensions tell of what nobody collects at the end."""
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Suites run from the cheapest to the dearest, and what a folder needs is marked on its tests.

    How long a test may take is meant for a quiet machine.
    """
    usual = float(config.getini("timeout") or 0) if config.pluginmanager.hasplugin("timeout") else 0
    marks = {"spark": pytest.mark.spark, "services": pytest.mark.service, "e2e": pytest.mark.e2e}
    for item in items:
        suite = _suite(item)
        if suite in marks:
            item.add_marker(marks[suite])
        own = item.get_closest_marker("timeout")
        if seconds := float(own.args[0]) if own else usual:
            item.add_marker(pytest.mark.timeout(scaled(seconds)), append=False)
    items.sort(key=lambda item: SUITES.index(_suite(item)) if _suite(item) in SUITES else len(SUITES))


def _suite(item: pytest.Item) -> str:
    parts = Path(item.path).relative_to(Path(__file__).parent).parts
    return parts[0] if parts else ""


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    request: pytest.FixtureRequest,
    django_db_modify_db_settings_parallel_suffix: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """In memory, unless a test of this run starts a server: then a file, in which each of its threads has a connection of its own, as
    in production, and which another process can open by its path. Threads would share the connection of a database in memory,
    and wait for each other for ever: one holds SQLite's lock and needs Python's, another the other way round.

    Of the whole run, since it has one database, which the first test that needs it makes.
    """
    if any(_suite(item) in SERVED for item in request.session.items):
        from django.db import connection

        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "served.db")


def require(need: Service) -> str:
    """The address of what a test needs; where it is missing the test is skipped by name, with how to get it."""
    problem = missing_service(need)
    if problem is None:
        return need.address()
    if os.environ.get("LAKEHUB_REQUIRE_SERVICES") == "1":
        pytest.fail(f"LAKEHUB_REQUIRE_SERVICES=1, but {problem}")
    pytest.skip(problem)


@pytest.fixture(scope="session")
def redis_url() -> str:
    return require(Service.REDIS)


@pytest.fixture(scope="session")
def postgresql_url() -> str:
    return require(Service.POSTGRESQL)


@pytest.fixture(scope="session")
def mariadb_url() -> str:
    return require(Service.MARIADB)


@pytest.fixture(scope="session")
def kafka_url() -> str:
    return require(Service.KAFKA)


@pytest.fixture(scope="session")
def hbase_url() -> str:
    """Host and port are Thrift's, and `quorum` says where ZooKeeper is."""
    return require(Service.HBASE)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the machine's own browser."""
    return require(Service.CHROMIUM)
