"""The command line, as `lakehub` and as `manage.py`: Django's commands and ours, and those that need no instance."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import lakehub
from lakehub.environment import InvalidSetting
from lakehub.instance import UnusableInstance, prepare_instance


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; `arguments` with the program's name first, as in `sys.argv`. Ends with the command's exit code."""
    program, *words = sys.argv if arguments is None else arguments
    match words:
        case ["version" | "--version"]:
            print(f"lakehub {lakehub.__version__}")
        case ["setup"]:
            from lakehub.setup.__main__ import main as set_up

            sys.exit(set_up())
        case ["demo", *options]:
            from lakehub.demo.__main__ import main as tell

            sys.exit(tell(options))
        case _:
            try:
                _run_command(program, words)
            except (InvalidSetting, UnusableInstance) as problem:
                sys.exit(f"{program}: {problem}")


def _run_command(program: str, words: Sequence[str]) -> None:
    """One of Django's commands, in an instance that is ready; what only explains itself makes none."""
    if words and words[0] != "help" and not {"-h", "--help"} & set(words):
        prepare_instance()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakehub.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line([program, *words])


def entry_point() -> None:
    """The `lakehub` command of an installed package."""
    main(["lakehub", *sys.argv[1:]])
