"""The command line, as `lakehub` and as `manage.py`: Django's commands and ours, and those that need no instance."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import lakehub
from lakehub.environment import InvalidSetting
from lakehub.installed_apps import INSTALLED_APPS
from lakehub.instance import UnusableInstance, prepare_instance

MIGRATING = ("migrate", "up")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; `arguments` with the program's name first, as in `sys.argv`. Ends with the command's exit code."""
    program, *words = sys.argv if arguments is None else arguments
    match words:
        case ["version" | "--version"]:
            print(f"lakehub {lakehub.__version__}")
        case ["setup", *options]:
            from lakehub.setup.__main__ import main as set_up

            sys.exit(set_up(options))
        case ["demo", *options]:
            from lakehub.demo.__main__ import main as tell

            sys.exit(tell(options))
        case _:
            try:
                _run_command(program, words)
            except (InvalidSetting, UnusableInstance) as problem:
                sys.exit(f"{program}: {problem}")


def _run_command(program: str, words: Sequence[str]) -> None:
    """One of Django's commands, in an instance that is ready; what only explains itself, or is unknown, makes none."""
    if words and words[0] != "help" and not {"-h", "--help"} & set(words) and is_command(words[0]):
        prepare_instance(will_migrate=words[0] in MIGRATING)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakehub.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line([program, *words])


def is_command(name: str) -> bool:
    """Whether Django or an app has it. Django itself can only say once it has read the settings, and these hold the keys."""
    packages = (find_spec(package) for package in ("django.core", *INSTALLED_APPS))
    folders = [folder for package in packages if package for folder in package.submodule_search_locations or ()]
    return any(os.path.isfile(os.path.join(folder, "management", "commands", f"{name}.py")) for folder in folders)


def entry_point() -> None:
    """The `lakehub` command of an installed package."""
    main(["lakehub", *sys.argv[1:]])
