"""An installed package whose plug-ins cannot be loaded costs nobody else anything, and is named."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from incidents.channels import CHANNELS, redacted_address
from ingestion.sources import SOURCES
from lakehub.catalog.connections import add_connection
from lakehub.catalog.lineage import TableName
from lakehub.catalog.lineage.resolver import Resolver
from lakehub.catalog.metadata.tables import HudiCopy
from lakehub.catalog.models import Connection
from lakehub.catalog.storages import STORAGES
from lakehub.kernel.errors import Refused
from lakehub.kernel.registry import Registry
from lakehub.plugin_checks import installed_plugins_can_be_used
from quality.checks import CHECKS, is_reserved_key
from quality.engines import ENGINES, engine_for
from quality.generation import generate
from quality.models import GenerationStatus, QualityTest, Result
from tests import factories
from tests.factories import HOUR, NOW
from tests.web.quality.conftest import World

REGISTRIES: tuple[Registry[object], ...] = (STORAGES, SOURCES, ENGINES, CHECKS, CHANNELS)  # type: ignore[assignment]  # only read


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """One plug-in `ledger` of every kind, at this target."""
    about = folder / "ledgers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ledgers\nVersion: 1.0\n")
    groups = "".join(f"[{registry.group}]\nledger = {target}\n" for registry in REGISTRIES)
    (about / "entry_points.txt").write_text(groups)
    monkeypatch.syspath_prepend(str(folder))
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "_all", None)


@pytest.fixture(params=["no_such_module:Ledger", "json:Ledger", "json"])
def broken(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A module, an attribute that is not there, or none."""
    install(tmp_path_factory.mktemp("site"), monkeypatch, request.param)
    yield
    monkeypatch.undo()


def test_the_tests_of_all_datasets_are_made_and_run(broken: None, world: World) -> None:
    world.monitored()
    newest = {result.unit.test.key: result.outcome for result in Result.objects.select_related("unit__test")}
    assert newest["completeness"] == newest["duplicates"] == "pass"
    problem = GenerationStatus.objects.get(dataset=world.flights).problem
    assert problem == "ledger: the check failed (UnusablePlugin): see the log"


def test_what_a_check_made_before_stays_while_it_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.monitored()
    monkeypatch.setattr(type(CHECKS.get("duplicates")), "definitions", lambda *_: 1 / 0)
    generate.generate_tests(world.flights, now=NOW + HOUR)
    assert QualityTest.objects.get(dataset=world.flights, key="duplicates").retired_at is None
    problem = GenerationStatus.objects.get(dataset=world.flights).problem
    assert problem == "duplicates: the check failed (ZeroDivisionError): see the log"


def test_a_test_that_asks_for_its_engine_is_run_by_the_usual_one(broken: None, world: World) -> None:
    assert engine_for(HudiCopy("file:///lake/flights"), "ledger") == "duckdb"


def test_the_checks_of_the_installation_load_no_plug_in_of_ours(broken: None, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(
        "lakehub.kernel.registry.import_module", lambda name: loaded.append(name) or import_module(name)
    )
    installed_plugins_can_be_used(None)
    assert {name.partition(".")[0] for name in loaded} <= {"no_such_module", "json"}
    assert loaded


def test_lineage_messages_and_keys_of_others_go_on(broken: None, world: World) -> None:
    factories.connection("books", "ledger:/books", "ledger")
    factories.connection("lake", "file:///lake", "hudi")
    assert Resolver().table(TableName("file", "/lake/orders"))[1] == "orders"
    assert redacted_address("ledger", "secret") == "…"
    assert (is_reserved_key("freshness"), is_reserved_key("mine")) == (True, False)


def test_a_connection_to_it_is_refused_by_name(broken: None, world: World) -> None:
    team = Connection.objects.get(name="ops").team.name
    with pytest.raises(Refused) as refused:
        add_connection(name="books", plugin="ledger", url="ledger:/books", team=team, actor="ann", now=NOW)
    assert "The storage `ledger`" in refused.value.fields["plugin"]
    assert "mend or uninstall the package" in refused.value.fields["plugin"]


def test_the_checks_of_the_installation_name_each(broken: None) -> None:
    problems = [error.msg for error in installed_plugins_can_be_used(None)]
    assert [problem.split("`")[0] for problem in problems] == [
        f"The {kind} " for kind in ("storage", "source", "engine", "check", "channel")
    ]


def test_a_name_that_is_taken_is_an_error_of_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "ledgers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ledgers\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[lakehub.engines]\nduckdb = json:loads\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(ENGINES, "_all", None)
    (problem,) = [error.msg for error in installed_plugins_can_be_used(None)]
    assert problem.startswith("ledgers brings the engine `duckdb`")
