"""A session whose JVM is killed in the middle of a call while a process that it started goes on, with all of its connections.

`python -m tests.spark.killed_jvm kill|spawn`, with `LAKEHUB_JAVA_HOME` a copy of the Java runtime, whose helper for starting programs is
replaced here by one that never answers. `kill` says whether the call has ended; `spawn` starts a program in the way of a session.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from py4j.protocol import Py4JError

from ingestion.spark import session
from lakehub.processes.supervisor.process_tree import descendants
from tests.polling import scaled, wait_until

ENDS_WITHIN_S = 10


def main(what: str) -> None:
    if what == "kill":
        # As a JVM does where it is not told otherwise.
        session.HELPERLESS[:] = ["-Djdk.lang.Process.launchMechanism=POSIX_SPAWN"]
        spark = session.open_session()
        _replace_helper()
        _kill_during_a_call(session.jvm(spark), session.jvm_pid(spark))
    else:
        _replace_helper()
        print(_start_program(session.jvm(session.open_session())).waitFor(), flush=True)


def _kill_during_a_call(java: Any, process: int) -> None:
    call = Thread(target=_asked, args=(lambda: java.java.lang.Thread.sleep(3_600_000),), daemon=True)
    starting = Thread(target=_asked, args=(lambda: _start_program(java),), daemon=True)
    call.start()
    starting.start()
    wait_until(lambda: bool(descendants(process)))
    heirs = descendants(process)
    os.kill(process, signal.SIGKILL)
    call.join(scaled(ENDS_WITHIN_S))
    print("waits" if call.is_alive() else "ended", flush=True)
    for heir in heirs:
        with suppress(ProcessLookupError):
            os.kill(heir, signal.SIGKILL)


def _asked(ask: Any) -> None:
    with suppress(Py4JError, OSError):
        ask()


def _start_program(java: Any) -> Any:
    return java.java.lang.Runtime.getRuntime().exec("true")


def _replace_helper() -> None:
    helper = Path(session.java_home(os.environ)) / "lib" / "jspawnhelper"
    helper.unlink()
    helper.write_text("#!/bin/sh\nexec sleep 3600\n")
    helper.chmod(0o755)


if __name__ == "__main__":
    main(sys.argv[1])
    # Calls that wait for ever keep a process from ending in order.
    os._exit(0)
