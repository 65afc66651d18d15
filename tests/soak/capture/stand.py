"""What stands around the instance: the server that is captured, the changelog, and the three datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lakehub.demo.instance import free_address
from tests.soak.capture.accounting.binlog import Accounts
from tests.soak.capture.alterations import Alterations
from tests.soak.capture.cells import add_cells, create_cells
from tests.soak.capture.source import CapturedSource
from tests.soak.capture.tables import TABLES
from tests.soak.capture.topic import ForeignTopic
from tests.soak.stand import machine, servers
from tests.soak.stand.instance import Instance, environment_of
from tests.soak.stand.waiting import wait_until

CHANGELOGS = ("segments", "kafka")
BRIEF = {"LAKEHUB_WORKERS": "1"}
"""Settings for a run so short that starting is most of it."""


@dataclass(frozen=True)
class CaptureStand:
    folder: Path
    instance: Instance
    source: CapturedSource
    servers: dict[str, servers.Server]
    slowness: float
    accounts: Accounts
    alterations: Alterations
    topic: ForeignTopic | None
    """Where there is a Kafka."""

    @property
    def lake(self) -> Path:
        return self.instance.home / "lake"

    def create(self, random: Random) -> None:
        """What is there before anything is captured."""
        self.source.create_tables()
        create_cells(self.source, random)
        if self.topic is not None:
            self.topic.create()

    def resume(self) -> None:
        self.source.resume()
        if self.topic is not None:
            self.topic.resume()

    def pause(self) -> None:
        """Nothing is written when it returns."""
        self.source.pause()
        if self.topic is not None:
            self.topic.pause()

    def wait_until(self, holds: Callable[[], bool], what: str, *, within_s: float) -> None:
        """Raises NotInTime. `within_s`: on an idle machine."""
        wait_until(holds, what, within_s * self.slowness)


@contextmanager
def stand(changelog: str, folder: Path, random: Random, **more: str) -> Iterator[CaptureStand]:
    """The servers, an empty database, and the settings of an instance that does not run yet. `more`: settings besides those."""
    slowness = machine.slowness()
    with ExitStack() as stack:
        folder.chmod(0o755)
        home, scratch, bind = folder / "home", folder / "tmp", free_address()
        for each in (home, scratch):
            each.mkdir()
        own = {"mariadb": stack.enter_context(servers.running("mariadb", folder / "mariadb"))}
        settings = dict(more)
        if changelog == "kafka":
            own["kafka"] = stack.enter_context(servers.running("kafka", folder / "kafka"))
            settings |= {"LAKEHUB_CHANGELOG": "kafka", "LAKEHUB_CHANGELOG_URL": own["kafka"].url}
        source = CapturedSource(own["mariadb"].port, random)
        source.create_database()
        source.guests.append(add_cells)
        topic = None if "kafka" not in own else ForeignTopic(f"127.0.0.1:{own['kafka'].port}", random)
        if topic is not None:
            stack.enter_context(topic.writer())
        stack.enter_context(source.writers())
        environment = environment_of(home, scratch, bind, settings)
        accounts = Accounts(folder / "mariadb/mariadb/binlog", {table.name: len(table.key) for table in TABLES})
        instance = Instance(home, folder / "log", bind, environment)
        yield CaptureStand(
            folder, instance, source, own, slowness, accounts, Alterations(source, random, accounts.gaps), topic
        )
