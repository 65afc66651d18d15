"""`make audit ADVISORIES=folder`: compare what is installed here with a folder of advisories.

Ends with 1 where an advisory concerns a package, with 2 where it could not compare.
"""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from tests.supply_chain.advisories import Finding, read_advisories


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0]:
        print("Name the folder of advisories: make audit ADVISORIES=/path/to/advisory-database/vulns", file=sys.stderr)
        return 2
    try:
        advisories = read_advisories(Path(arguments[0]))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    installed = {distribution.name: distribution.version for distribution in distributions()}
    findings = advisories.of(installed)
    for finding in findings:
        print(_line(finding))
    print(
        f"{len(installed)} packages, {len(advisories.entries)} advisories, the newest of {advisories.newest}: "
        f"{len(findings)} of them concern what is installed."
    )
    return 1 if findings else 0


def _line(finding: Finding) -> str:
    fixed = f"fixed in {', '.join(finding.fixed_in)}" if finding.fixed_in else "not fixed yet"
    return f"{finding.package} {finding.version}  {finding.advisory}  {fixed}: {finding.summary[:120]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
