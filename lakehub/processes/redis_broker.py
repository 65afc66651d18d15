"""Redis as Celery's broker: kombu's transport, whose workers outlive a server that is killed while they have taken a task.

Celery closes a lost connection twice. The second time kombu wants to hand back what was taken, over a connection that has no address
any more; that raises AttributeError, which nobody expects, and the worker ends, and with it the instance.
"""

from __future__ import annotations

from kombu.transport import redis


class Channel(redis.Channel):
    def close(self) -> None:
        if self.connection is not None and self.connection.client is None:
            # A wake-up that is lost is sent again: what is due is in the database.
            self.do_restore = False
        super().close()  # type: ignore[no-untyped-call]  # kombu's has no types


class Transport(redis.Transport):
    Channel = Channel
