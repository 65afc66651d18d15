"""Every module can be the first to be imported: none leans on the order in which others were."""

from __future__ import annotations

import subprocess
import sys

IMPORT_EACH_FIRST = """
import importlib, pkgutil, sys
import quality.checks, quality.domain
names = [module.name for package in (quality.domain, quality.checks) for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    for loaded in [name for name in sys.modules if name.startswith(("quality.domain", "quality.checks"))]:
        del sys.modules[loaded]
    importlib.import_module(name)
print(len(names))
"""


def test_each_can_be_imported_first() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_EACH_FIRST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30
