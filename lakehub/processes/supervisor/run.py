"""Runs the processes of an instance together: one stops, all stop, and nothing is left, however one of them ends.

Two processes: the *guard*, whose id is the one that the operator sees, and its child, the supervisor proper. Each adopts what
others leave behind. Where the guard is killed, the supervisor's end of a pipe closes and it kills all that runs; where
the supervisor is killed, the kernel kills its children and the guard kills theirs: pools of workers, a JVM.
`manage.py up` becomes this program once the database is up to date.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from lakehub import environment as env
from lakehub.processes.commands import process_commands, process_environment
from lakehub.processes.supervisor import nursery
from lakehub.processes.supervisor.log_writer import LogWriter
from lakehub.processes.supervisor.output import Lines, Output
from lakehub.processes.supervisor.process_tree import adopt_orphans, end_with_parent, kill_descendants
from lakehub.setup.locations import working_folder

_PROGRAM = "lakehub.processes.supervisor"
GRACE_S = 10
"""Unless LAKEHUB_STOP_SECONDS says otherwise."""
Launch = Callable[[str, str, int], int]
"""Starts the process `name` with a line of the Procfile, writing to a descriptor; its id."""
_STOPS = (signal.SIGTERM, signal.SIGINT)


def become(names: Sequence[str], bind: str, *, reload: bool, raw: bool, lock: int | None) -> NoReturn:
    """This process goes on as the supervisor of these processes. `lock`: a descriptor that stays open as long as any runs.
    Raises InvalidSetting."""
    options = [*(["--reload"] if reload else []), *(["--raw"] if raw else [])]
    if lock is not None:
        os.set_inheritable(lock, True)
        options += ["--lock", str(lock)]
    options += ["--grace", str(env.number("LAKEHUB_STOP_SECONDS", GRACE_S, least=1))]
    environment = process_environment(bind)
    os.chdir(working_folder())
    command = [sys.executable, "-m", _PROGRAM, "--bind", bind, *options, *names]
    os.execve(sys.executable, command, environment)  # noqa: S606  words of our own


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="lakehub up")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bind", required=True)
    parser.add_argument("--reload", action="store_true")
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--lock", type=int)
    parser.add_argument("--grace", type=int, default=GRACE_S)
    options = parser.parse_args(arguments)
    if options.lock is not None:
        os.set_inheritable(options.lock, False)
    if options.raw:
        from lakehub.logs import configure_logging

        configure_logging()
    commands = process_commands(options.names, reload=options.reload)
    # With `--reload` each reads the code anew.
    launch = launch_shell if options.reload else launch_fork
    prepare = _nothing if options.reload else nursery.preload
    return supervise(commands, launch, prepare=prepare, raw=options.raw, grace_s=options.grace)


def _nothing() -> None: ...


def supervise(
    commands: Mapping[str, str],
    launch: Launch,
    *,
    prepare: Callable[[], None] = _nothing,
    raw: bool = False,
    grace_s: int = GRACE_S,
) -> int:
    """Run all of them until one ends or a signal comes, and end with nothing left. The exit code.

    `grace_s`: how long they may finish what they have. Then they are killed: what they had claimed is claimed again.
    """
    adopt_orphans()
    is_alive, keeps_alive = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    child = os.fork()
    if child == 0:
        os.close(keeps_alive)
        # Away from the terminal and from the guard's group: a signal to these is the guard's to hand on.
        os.setsid()
        output = Output(commands, raw=raw, stream=(writer := LogWriter(sys.stdout.fileno())))
        writer.left_out = output.tell_left_out
        supervisor = _Supervisor(commands, launch, output, is_alive, writer, grace_s)
        os._exit(_supervise(supervisor, prepare, writer))
    os.close(is_alive)
    return _guard(child)


def _supervise(supervisor: _Supervisor, prepare: Callable[[], None], writer: LogWriter) -> int:
    try:
        prepare()
        return supervisor.run()
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        writer.close()


def _guard(child: int) -> int:
    """Hands signals on, waits for the supervisor, and kills what it has left."""

    def hand_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in _STOPS:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    pid, status = os.waitpid(-1, 0)
    while pid != child:  # an orphan that it adopted
        pid, status = os.waitpid(-1, 0)
    kill_descendants()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


class _Supervisor:
    def __init__(
        self,
        commands: Mapping[str, str],
        launch: Launch,
        output: Output,
        is_alive: int,
        writer: LogWriter,
        grace_s: int,
    ) -> None:
        self._writer, self._grace_s = writer, grace_s
        self._commands, self._launch, self._output = commands, launch, output
        self._names: dict[int, str] = {}
        """Of the processes that run."""
        self._lines: list[Lines] = []
        self._kill_at: float | None = None
        """Set once it ends, by the monotonic clock."""
        self._code: int | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(is_alive, selectors.EVENT_READ, self._guard_ended)

    def run(self) -> int:
        adopt_orphans()
        self._listen()
        for name, command in self._commands.items():
            self._start(name, command)
        self._writer.start()
        while self._names and not self._is_overdue():
            timeout = None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
            for key, _ in self._selector.select(timeout):
                key.data()
        for name in self._names.values():
            self._output.say(f"{name} did not end within {self._grace_s} s: it is killed")
        kill_descendants()
        self._drain()
        return self._code or 0

    def _listen(self) -> None:
        """Signals are read from a pipe, in their turn."""
        receiver, sender = os.pipe()
        for end in (receiver, sender):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(sender)
        for number in (*_STOPS, signal.SIGCHLD):
            signal.signal(number, _noticed)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
        self._selector.register(receiver, selectors.EVENT_READ, partial(self._take_signals, receiver))

    def _start(self, name: str, command: str) -> None:
        receiver, sender = os.pipe()
        pid = self._launch(name, command, sender)
        os.close(sender)
        lines = Lines(name, receiver, self._output)
        self._names[pid] = name
        self._lines.append(lines)
        self._selector.register(receiver, selectors.EVENT_READ, partial(self._read, lines))
        self._output.say(f"{name} started (pid={pid})")

    def _take_signals(self, receiver: int) -> None:
        for number in os.read(receiver, 512):
            if number == signal.SIGCHLD:
                self._reap()
            else:
                self._output.say(f"{signal.Signals(number).name} received")
                self._stop(128 + number)

    def _reap(self) -> None:
        while self._names:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid in self._names:
                code = os.waitstatus_to_exitcode(status)
                self._output.say(f"{self._names.pop(pid)} stopped (rc={code})")
                self._stop(code if code >= 0 else 128 - code)

    def _stop(self, code: int) -> None:
        """Asks the processes themselves to end, not their groups: a worker lets its pool finish."""
        if self._kill_at is not None:
            return
        self._code, self._kill_at = code, time.monotonic() + self._grace_s
        for pid, name in self._names.items():
            self._output.say(f"sending SIGTERM to {name} (pid {pid})")
            os.kill(pid, signal.SIGTERM)

    def _guard_ended(self) -> None:
        """Killed, so nobody waits for a good end: the next start wants the addresses and the lock."""
        kill_descendants()
        os._exit(1)

    def _is_overdue(self) -> bool:
        return self._kill_at is not None and time.monotonic() >= self._kill_at

    def _read(self, lines: Lines) -> None:
        if not lines.read() and not lines.is_open:
            self._selector.unregister(lines.pipe)

    def _drain(self) -> None:
        """What the processes wrote last."""
        for lines in self._lines:
            while lines.is_open and lines.read():
                pass


def launch_shell(name: str, command: str, output: int) -> int:
    """Any line, as a program of its own."""
    process = subprocess.Popen(  # noqa: S602  a line of the Procfile
        # `exec`: a signal reaches the process itself, not a shell in between.
        f"exec {command}",
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        # One thread runs here, so nothing is held that the child could wait for.
        preexec_fn=partial(end_with_parent, os.getpid()),
    )
    process.returncode = 0  # it is waited for with all orphans
    return process.pid


def launch_fork(name: str, command: str, output: int) -> int:
    """A line whose program is a script of this environment: shares what was preloaded."""
    return nursery.fork(name, nursery.words_of(command, os.environ), output)


def _noticed(_number: int, _frame: Any) -> None:
    """The number is in the pipe already."""
