"""Everything that a round has at hand, set up and taken down."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from lakehub.demo.instance import free_address
from tests.soak.stand import machine, servers
from tests.soak.stand.clock import Clock, has_compiler
from tests.soak.stand.forwarder import Forwarder
from tests.soak.stand.instance import Instance, environment_of
from tests.soak.stand.prices import Prices
from tests.soak.stand.source import Source
from tests.soak.stand.waiting import wait_until
from tests.webhook_receiver import Receiver, web_server

DATABASES = ("sqlite", "postgresql")
HOME_SIZE = "1g"
"""Of the file system that the instance's folder is on, where it can be mounted."""
REST_WITHIN_S = 180.0
"""On an idle machine."""


@dataclass(frozen=True)
class Stage:
    database: str
    folder: Path
    instance: Instance
    source: Source
    forwarder: Forwarder
    prices: Prices
    receiver: Receiver
    servers: Mapping[str, servers.Server]
    """Of the instance: its PostgreSQL and its Redis, or none."""
    has_own_disk: bool
    clock: Clock | None
    """Of the instance, where there is a compiler for it."""
    slowness: float
    judged_incidents: set[int] = field(default_factory=set)
    """Their times were right when they were new; a clock that is set back changes them later."""

    def wait_until(self, holds: Callable[[], bool], what: str, *, within_s: float = REST_WITHIN_S) -> None:
        """Raises NotInTime. `within_s`: on an idle machine."""
        wait_until(holds, what, within_s * self.slowness)


@contextmanager
def stage(database: str, folder: Path, rng: Random) -> Iterator[Stage]:
    """The servers, the source with its first rows, and the settings of an instance that does not run yet."""
    slowness = machine.slowness()
    with ExitStack() as stack:
        # PostgreSQL runs as a user of its own, who has to get to its folder.
        folder.chmod(0o755)
        home, scratch = folder / "home", folder / "tmp"
        for each in (home, scratch):
            each.mkdir()
        has_own_disk = machine.can_mount()
        if has_own_disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={HOME_SIZE}", "soak", home], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", home], check=True)
        source_server = stack.enter_context(servers.running("postgresql", folder / "source"))
        own_servers: dict[str, servers.Server] = {}
        if database == "postgresql":
            for kind in ("postgresql", "redis"):
                own_servers[kind] = stack.enter_context(servers.running(kind, folder / f"own-{kind}"))
        receiver = stack.enter_context(web_server())
        source = Source(source_server.url, rng)
        stack.enter_context(source.writer())
        forwarder = Forwarder(source_server.port)
        stack.callback(forwarder.close)
        clock = Clock(folder) if has_compiler() else None
        bind = free_address()
        environment = _environment(home, scratch, bind, own_servers, clock)
        yield Stage(
            database=database,
            folder=folder,
            instance=Instance(home, folder / "log", bind, environment),
            source=source,
            forwarder=forwarder,
            prices=Prices(folder / "prices", source.days, source.quiet_days),
            receiver=receiver,
            servers=own_servers,
            has_own_disk=has_own_disk,
            clock=clock,
            slowness=slowness,
        )


def _environment(
    home: Path, scratch: Path, bind: str, own_servers: Mapping[str, servers.Server], clock: Clock | None
) -> dict[str, str]:
    settings = {"LAKEHUB_ALLOW_PRIVATE_WEBHOOKS": "1"}
    if own_servers:
        settings |= {
            "LAKEHUB_DATABASE_URL": own_servers["postgresql"].url,
            "LAKEHUB_BROKER_URL": own_servers["redis"].url,
        }
    return environment_of(home, scratch, bind, settings | (clock.environment if clock is not None else {}))
